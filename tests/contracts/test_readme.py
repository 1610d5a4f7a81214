"""The README and docs/ tell the truth about the repository: commands, paths, links, settings, calls."""

from __future__ import annotations

import re

import pytest

from app.settings import Settings
from scripts.docs import documents, variable
from tests.contracts.repo import ROOT, project_files, read

PAGES = ["README.md", *sorted(path for path in project_files() if path.startswith("docs/") and path.endswith(".md"))]
README = read("README.md")


def tree_paths(text: str) -> list[str]:
    """Paths named by the annotated tree: the fenced block whose lines are `name  phrase`, indented by two a level."""
    block = re.search(r"## What is where\n+```text\n(.*?)```", text, re.DOTALL)
    assert block, "the README has no annotated tree"
    paths: list[str] = []
    parents: list[str] = []
    for line in block[1].splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        parents = [*parents[:depth], name]
        paths.append("".join(parents))
    return paths


def links(text: str) -> list[str]:
    """Targets of relative Markdown links, without fragments."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target.split("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]


def test_picture_and_commands_come_first() -> None:
    lines = README.splitlines()
    picture = next(number for number, line in enumerate(lines, 1) if line.startswith("!["))
    commands = [number for number, line in enumerate(lines, 1) if re.match(r"make run\b|docker compose up$", line)]
    assert picture <= 10
    assert len(commands) >= 2
    assert commands[1] <= 25


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    assert [target for target in links(read(page)) if not (folder / target).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_make_commands_exist(page: str) -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", "\n".join(re.findall(r"`[^`]*`|^make .*$", read(page), re.MULTILINE))))
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    assert named <= targets


def test_the_tree_is_there() -> None:
    paths = tree_paths(README)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_tree_names_every_module() -> None:
    """Each Python file of app/, app/services/ and models/ has its phrase; single routes are named by their folder."""
    named = set(tree_paths(README))
    modules = [path for path in project_files() if re.fullmatch(r"(app|app/services|models)/\w+\.py", path)]
    assert [path for path in modules if path not in named and not path.endswith("__init__.py")] == []


@pytest.mark.parametrize("page", PAGES)
def test_files_named_in_prose_exist(page: str) -> None:
    named = re.findall(r"`((?:app|models|static|templates|tests|docs|bench|scripts)/[\w./-]*)`", read(page))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_tables_are_those_of_the_code() -> None:
    for path, text in documents().items():
        assert read(path) == text, f"{path} is stale: run `make docs`"


def test_every_setting_is_in_table_and_example() -> None:
    """Said once more without the code that makes the table, so that a mistake in it cannot hide a setting."""
    for name, field in Settings.model_fields.items():
        assert f"| `{variable(name, field)}` |" in README
        assert re.search(rf"^# {variable(name, field)}=", read(".env.example"), re.MULTILINE)
        assert field.description, f"{name} has no help"


def test_calls_named_in_the_readme_exist() -> None:
    served = set(re.findall(r"^\| `([A-Z]+ [^`]+)` \|", read("docs/api.md"), re.MULTILINE))
    named = set(re.findall(r"`((?:GET|POST|DELETE) /[\w/{}-]+)", "".join(read(page) for page in PAGES)))
    known = {re.sub(r"\{\w+\}", "{}", call) for call in served}
    assert {call for call in named if re.sub(r"\{\w+\}", "{}", call) not in known} == set()


def test_every_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "9001")
    monkeypatch.setenv("EVERYHEAD_OFFLINE", "true")
    assert (Settings().port, Settings().offline) == (9001, True)
