"""Templates and scripts: nothing inline, no text that becomes markup, nothing from another host, ES modules only."""

from __future__ import annotations

import re

import pytest

from tests.contracts.repo import files_under, project_files, read

TEMPLATES = files_under("templates", suffix=".html")
SCRIPTS = files_under("static", suffix=".js")
STYLES = files_under("static", suffix=".css")

IN_TEMPLATES = {
    "inline script": re.compile(r"<script(?![^>]*\bsrc=)", re.IGNORECASE),
    "inline handler": re.compile(r"<[^>]*\son[a-z]+\s*=", re.IGNORECASE),
    "javascript: address": re.compile(r"javascript:", re.IGNORECASE),
    "inline style sheet": re.compile(r"<style\b", re.IGNORECASE),
    "escaping switched off": re.compile(r"\|\s*safe\b|autoescape\s+false"),
}
IN_SCRIPTS = {
    "text as markup": re.compile(
        r"\b(innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|DOMParser)\b"
    ),
    "text as code": re.compile(r"\beval\s*\(|\bnew Function\b|set(?:Timeout|Interval)\s*\(\s*['\"`]"),
    "handler as attribute": re.compile(r"setAttribute\(\s*['\"]on"),
    "console": re.compile(r"\bconsole\.\w+"),
    "not a module": re.compile(r"\bvar\s|\bmodule\.exports\b|\brequire\("),
}
# Names of XML vocabularies look like addresses and are never fetched.
OTHER_HOST = re.compile(r"""(?:https?:)?//(?!www\.w3\.org/)[a-z0-9-]+\.[a-z]""", re.IGNORECASE)
# A link that a reader may follow is no request of the page's.
LINK = re.compile(r"<a\b[^>]*>", re.IGNORECASE)


def found(patterns: dict[str, re.Pattern[str]], text: str) -> list[str]:
    """Names of the patterns that occur in the text."""
    return [name for name, pattern in patterns.items() if pattern.search(text)]


@pytest.mark.parametrize("path", TEMPLATES)
def test_templates_hold_markup_only(path: str) -> None:
    assert found(IN_TEMPLATES, read(path)) == []


@pytest.mark.parametrize("path", SCRIPTS)
def test_scripts_never_make_markup_of_text(path: str) -> None:
    assert found(IN_SCRIPTS, read(path)) == []


@pytest.mark.parametrize("path", TEMPLATES + SCRIPTS + STYLES)
def test_nothing_is_loaded_from_another_host(path: str) -> None:
    assert OTHER_HOST.findall(LINK.sub("", read(path))) == []


def test_only_one_script_names_the_plotly_global() -> None:
    naming = [path for path in SCRIPTS if re.search(r"\b(?:window|globalThis)\.Plotly\b", read(path))]
    assert len(naming) <= 1


def test_scripts_are_the_projects_own() -> None:
    third_party = re.compile(r"plotly.*\.js$|\.min\.(js|css)$|\.map$")
    own_wrapper = {"static/js/plotly.js"}
    assert [path for path in project_files() if third_party.search(path) and path not in own_wrapper] == []


@pytest.mark.parametrize(
    ("patterns", "text"),
    [
        (IN_TEMPLATES, "<script>run()</script>"),
        (IN_TEMPLATES, '<button type="button" onclick="run()">'),
        (IN_TEMPLATES, "{{ text | safe }}"),
        (IN_SCRIPTS, "node.innerHTML = token"),
        (IN_SCRIPTS, "console.log(token)"),
        (IN_SCRIPTS, "setTimeout('run()', 5)"),
        ({"host": OTHER_HOST}, '<link href="https://fonts.example.org/x.css">'),
        ({"host": OTHER_HOST}, "import x from '//cdn.example.org/x.js'"),
    ],
)
def test_a_violation_is_seen(patterns: dict[str, re.Pattern[str]], text: str) -> None:
    assert found(patterns, text)
