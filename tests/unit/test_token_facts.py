"""What the statistics of heads call punctuation: tokens of nothing else, as Unicode has it."""

from __future__ import annotations

import pytest

from models.token_facts import facts_of
from models.tokens import Token, tokens_from_text
from tests.unit.test_tokens import byte_level


def token(text: str, *, special: bool = False) -> Token:
    return Token(0, 7, text, text, 0, 0 if special else len(text), special, None, 1, 1, None)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (".", True),
        (" ...", True),  # as a model of bytes writes it, with the space before
        ("?!\n", True),
        (" 。", True),
        ("—", True),
        ("don't", False),
        (".com", False),  # begins with it
        (" .5", False),
        ("end.", False),  # ends with it
        ("+", False),  # symbols: categories Sm, Sc, Sk and So
        ("$", False),
        ("``", False),
        (" ©", False),
        (" ", False),
        ("", False),
    ],
)
def test_only_a_token_of_nothing_but_punctuation_counts(text: str, counts: bool) -> None:
    assert facts_of([token(text)]).punctuation == (counts,)


def test_a_special_token_is_no_punctuation_however_it_is_written() -> None:
    found = facts_of([token("--", special=True), token("--")])
    assert (found.special, found.punctuation) == ((True, False), (False, True))


def test_every_piece_of_a_punctuation_character_counts() -> None:
    """Of a byte-level vocabulary that knows no "…" nor "☃": each is three bytes, none of them a character."""
    tokens = tokens_from_text(byte_level(), "so… ☃!")
    pieces = {text: [one.text == text and one.parts == 3 for one in tokens] for text in ("…", "☃")}
    assert [sum(of_text) for of_text in pieces.values()] == [3, 3]
    assert facts_of(tokens).punctuation == (*pieces["…"][:-1], True)  # the "!" at the end
