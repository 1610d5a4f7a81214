"""Messages of the page: one JSON file per language, read by the templates here and by the scripts in the browser.

It does not know which language a request asked for through what route; it only chooses among what it is given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, get_args

Language = Literal["en", "zh"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
DEFAULT_LANGUAGE: Final[Language] = "en"
HTML_LANG: Final[Mapping[Language, str]] = {"en": "en", "zh": "zh-CN"}

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class MissingMessage(KeyError):
    """A template asked for a message, or for a value in one, that the catalogue does not have."""


class Messages:
    """All messages of one language. Call it with a key and the values of the message's {placeholders}."""

    def __init__(self, language: Language, entries: Mapping[str, str]) -> None:
        self.language: Language = language
        self.html_lang = HTML_LANG[language]
        self.entries = dict(entries)

    def __call__(self, key: str, /, **values: object) -> str:
        """The message with its placeholders filled. Raises MissingMessage rather than showing a hole."""
        if key not in self.entries:
            raise MissingMessage(f"{key} ({self.language})")

        def fill(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise MissingMessage(f"{key} ({self.language}) needs a value for {match[1]}")
            return str(values[match[1]])

        return _PLACEHOLDER.sub(fill, self.entries[key])


def placeholders(message: str) -> frozenset[str]:
    """The names in {braces} of a message."""
    return frozenset(_PLACEHOLDER.findall(message))


def load_messages(folder: Path) -> dict[Language, Messages]:
    """Every language's messages from `folder`/en.json, zh.json. Raises if a file lacks or ill-forms a message."""
    loaded: dict[Language, Messages] = {}
    for language in LANGUAGES:
        entries = json.loads((folder / f"{language}.json").read_text(encoding="utf-8"))
        if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
            raise ValueError(f"{language}.json must be one object of strings")
        loaded[language] = Messages(language, entries)
    return loaded


def as_language(tag: str | None) -> Language | None:
    """The language of ours that a tag such as `zh-Hans-CN` or `en_GB` means, or None."""
    primary = re.split(r"[-_]", (tag or "").strip().lower(), maxsplit=1)[0]
    return next((language for language in LANGUAGES if language == primary), None)


def choose_language(query: str | None, cookie: str | None, accept_language: str | None) -> Language:
    """The language of a page: what the address asks for, else what was chosen before, else what the browser prefers."""
    for explicit in (as_language(query), as_language(cookie)):
        if explicit is not None:
            return explicit
    for tag in _by_preference(accept_language or ""):
        language = as_language(tag)
        if language is not None:
            return language
    return DEFAULT_LANGUAGE


def _by_preference(header: str) -> list[str]:
    """Tags of an Accept-Language header, most wanted first; those with q=0 left out. Ill-formed parts count as q=0."""
    weighted: list[tuple[float, str]] = []
    for part in header.split(","):
        tag, _, parameter = part.partition(";")
        quality = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", parameter)
        weight = float(quality[1]) if quality else (0.0 if parameter.strip() else 1.0)
        if weight > 0:
            weighted.append((weight, tag))
    return [tag for _, tag in sorted(weighted, key=lambda pair: -pair[0])]
