"""Both languages say the same things: same keys, same placeholders, nothing empty, nothing left in English."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.contracts.repo import files_under, read

CATALOGUES = {
    path.rsplit("/", 1)[1].removesuffix(".json"): path
    for path in files_under("static", suffix=".json")
    if "/i18n/" in path
}
PLACEHOLDER = re.compile(r"\{(\w+)\}")
HAN = re.compile(r"[\u4e00-\u9fff]")


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Messages by dotted key."""
    messages: dict[str, str] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            messages |= flat(value, f"{prefix}{key}.")
        else:
            messages[f"{prefix}{key}"] = str(value)
    return messages


@pytest.fixture(scope="module")
def catalogues() -> dict[str, dict[str, str]]:
    return {language: flat(json.loads(read(path))) for language, path in CATALOGUES.items()}


def test_there_are_two_languages(catalogues: dict[str, dict[str, str]]) -> None:
    assert set(catalogues) == {"en", "zh"}


def test_keys_are_the_same(catalogues: dict[str, dict[str, str]]) -> None:
    assert set(catalogues["en"]) == set(catalogues["zh"])


def test_placeholders_are_the_same(catalogues: dict[str, dict[str, str]]) -> None:
    en, zh = catalogues["en"], catalogues["zh"]
    assert [key for key in en if set(PLACEHOLDER.findall(en[key])) != set(PLACEHOLDER.findall(zh[key]))] == []


def test_nothing_is_empty(catalogues: dict[str, dict[str, str]]) -> None:
    assert [key for messages in catalogues.values() for key, text in messages.items() if not text.strip()] == []


def test_sentences_are_translated(catalogues: dict[str, dict[str, str]]) -> None:
    """A message of three or more English words has Chinese characters in its Chinese form."""
    en, zh = catalogues["en"], catalogues["zh"]
    sentences = [key for key, text in en.items() if len(re.findall(r"[A-Za-z]{3,}", PLACEHOLDER.sub("", text))) >= 3]
    assert [key for key in sentences if not HAN.search(zh[key])] == []
