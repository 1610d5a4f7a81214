"""Which tokens of a text a run is about. Special tokens at both ends always stay; text tokens go from one end.

It knows neither models nor runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from app.services.errors import CharacterRefused, TextDropped, TextTooLong
from app.services.records import TextFacts, Truncate
from models.tokens import CharacterUnknown, Token


def cut_tokens(
    tokens: Sequence[Token], characters: int, limit: int, truncate: Truncate, *, pair: bool = False
) -> tuple[tuple[Token, ...], TextFacts]:
    """The tokens to run, numbered from 0, with offsets into the whole text. Raises TextDropped, TextTooLong.

    A character whose pieces straddle the cut is left out whole. A pair of texts is never cut: which of them to shorten
    is not for us to say.
    """
    head = _count(tokens)
    tail = _count(tokens[head:][::-1])
    middle = list(tokens[head : len(tokens) - tail])
    for segment, field in enumerate(("text", "text_pair") if pair else ("text",)):
        if all(token.special for token in tokens if token.segment == segment):
            raise TextDropped(field)
    if len(tokens) <= limit:
        return tuple(tokens), TextFacts(characters, (0, characters), None, len(tokens))
    if pair:
        raise TextTooLong(len(tokens), limit, "text_pair")
    room = limit - head - tail
    if truncate == "error" or room < 1:
        raise TextTooLong(len(tokens), limit)
    kept = _last(middle, room) if truncate == "cut_head" else _first(middle, room)
    if not kept:
        raise TextTooLong(len(tokens), limit)
    run = [*tokens[:head], *kept, *tokens[len(tokens) - tail :]]
    facts = TextFacts(characters, (kept[0].start, kept[-1].end), truncate, len(tokens))
    return tuple(replace(token, index=index) for index, token in enumerate(run)), facts


@contextmanager
def known_characters() -> Iterator[None]:
    """What a tokenizer has no token for, as a refusal of the text."""
    try:
        yield
    except CharacterUnknown as error:
        raise CharacterRefused(error.position, error.character, str(error)) from None


def _count(tokens: Sequence[Token]) -> int:
    """How many special tokens come first."""
    return next((i for i, token in enumerate(tokens) if not token.special), len(tokens))


def _last(tokens: list[Token], room: int) -> list[Token]:
    """The last `room` tokens, fewer if the first of them is not a character's first piece."""
    kept = tokens[-room:]
    start = next((i for i, token in enumerate(kept) if token.part == 1), len(kept))
    return kept[start:]


def _first(tokens: list[Token], room: int) -> list[Token]:
    """The first `room` tokens, fewer if the last of them is not a character's last piece."""
    kept = tokens[:room]
    while kept and kept[-1].part != kept[-1].parts:
        kept.pop()
    return kept
