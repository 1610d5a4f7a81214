"""What the statistics of heads need to know of tokens: which are the same, which are special, which are punctuation.

Knows tokens, not texts, models or weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from models.tokens import Token

_PUNCTUATION = regex.compile(r"\s*\p{P}+\s*")  # Unicode's general category P; symbols such as + and $ are not in it


@dataclass(frozen=True)
class TokenFacts:
    """One sequence of tokens; each field has one entry a token, or is None where nobody said."""

    ids: tuple[int, ...]
    special: tuple[bool, ...] | None = None
    punctuation: tuple[bool, ...] | None = None


def facts_of(tokens: Sequence[Token]) -> TokenFacts:
    """Read the facts off tokens. All pieces of a punctuation character count as punctuation."""
    return TokenFacts(
        tuple(token.id for token in tokens),
        tuple(token.special for token in tokens),
        tuple(not token.special and _PUNCTUATION.fullmatch(token.text) is not None for token in tokens),
    )
