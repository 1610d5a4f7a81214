"""The reference texts: what heads do on more than the reader's own text. Ours to use, in our own words.

Three texts lie beside this file: prose, code, Chinese. A fourth input has no text at all: random tokens of the model's
own vocabulary, twice in a row, on which induction and duplicate-token heads show themselves. Its tokens are drawn from
those that the three texts have on this model, so that none is special or never used.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from models.tokens import Token, truncate_tokens

TEXTS = ("prose", "code", "chinese")
REPEATED = "repeated"
NAMES = (*TEXTS, REPEATED)
VERSION = 4  # of texts, averages and roles; a change makes what was computed before stale
LONGEST = 256  # tokens of one input, as many as a run compares whole within itself
ONCE = 48  # tokens of the random stretch, which then comes again
SEED = 20_240_229

Tokenize = Callable[[str], list[Token]]


@dataclass(frozen=True)
class Reference:
    """One input of the panel, as tokens of one model."""

    name: str
    tokens: tuple[Token, ...]


def read_text(name: str) -> str:
    """One of TEXTS."""
    return Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8").rstrip()


def references_for(tokenize: Tokenize, limit: int) -> Iterator[Reference]:
    """Every input as this model cuts it, at most `limit` tokens each; what is longer loses its end."""
    most = min(limit, LONGEST)
    cut = {name: tokenize(read_text(name)) for name in TEXTS}
    for name, tokens in cut.items():
        yield Reference(name, tuple(truncate_tokens(tokens, most, "cut_tail")))
    yield Reference(REPEATED, tuple(repeated(list(cut.values()), most)))


def repeated(texts: Sequence[Sequence[Token]], limit: int) -> list[Token]:
    """Random ordinary tokens of these texts twice in a row, between the special tokens that the model adds.

    Values:  the same for the same tokens; no token occurs twice within the stretch
    """
    ordinary = sorted({token.id: token for text in texts for token in text if not token.special}.items())
    first = texts[0]
    head = [token for token in first if token.special and token.index == 0]
    tail = [token for token in first if token.special and token.index == len(first) - 1 and token.index > 0]
    room = max(1, (limit - len(head) - len(tail)) // 2)
    drawn = random.Random(SEED).sample(ordinary, min(ONCE, room, len(ordinary)))  # noqa: S311 - a fixed choice
    stretch = [token for _, token in drawn]
    return [token.at(index) for index, token in enumerate([*head, *stretch, *stretch, *tail])]
