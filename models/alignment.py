"""Which tokens of one run belong to which of another: two axes cut into the same segments.

Where two texts are the same characters, both tokenisations are cut wherever neither has a token across the place: the
finest cut that they share. Where the texts differ, equal stretches of tokens are found with difflib, and the rest is
left out. A matrix on the tokens of either run then folds onto the segments: keys are summed, queries averaged.

It knows nothing of models, of heads, or of what the matrices are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from models.protocol import Span
from models.tokens import Token

By = Literal["characters", "tokens"]
MOST_STEPS = 4_000_000  # of difflib's search for one stretch; above, tokens that are everywhere start no stretch


@dataclass(frozen=True)
class Segment:
    """Neighbouring tokens of one run and those of the other that they belong to: half-open ranges of indices."""

    a: Span
    b: Span
    text: str
    special: bool = False


@dataclass(frozen=True)
class Alignment:
    """Segments in order on both sides; tokens between them have no counterpart.

    by  how they were found: "characters" of one text, or equal "tokens" where the texts differ
    """

    by: By
    segments: tuple[Segment, ...]


def align(a: Sequence[Token], b: Sequence[Token]) -> Alignment:
    """Align the tokens of two runs, each text of a pair with its like.

    Values:  segments increase on both sides and never overlap. The same tokens give one segment each
    Source:  difflib's matching blocks (Ratcliff and Obershelp, 1988) where the texts differ
    """
    found: list[Segment] = []
    by: By = "characters"
    for segment in (0, 1):
        ours, theirs = ([token for token in side if token.segment == segment] for side in (a, b))
        if not ours or not theirs:
            continue
        parts_a, parts_b = _parts(ours), _parts(theirs)
        same = _same_text(parts_a[1], parts_b[1])
        if not same and parts_a[1] and parts_b[1]:
            by = "tokens"
        body = _by_characters if same else _by_tokens
        found += _specials(parts_a[0], parts_b[0])
        found += body(parts_a[1], parts_b[1])
        found += _specials(parts_a[2], parts_b[2])
    return Alignment(by, tuple(found))


def fold_rows(values: Tensor, spans: Sequence[Span], first: int = 0) -> Tensor:
    """Average the rows of each span; `first` is the index of the first row that is given. NaN counts as nothing.

    Shapes:  (rows, cols) -> (spans, cols), float64
    Values:  a mean over all rows of the span, NaN where every entry is
    """
    lengths = torch.tensor([stop - start for start, stop in spans], dtype=torch.float64)
    return _folded(values, spans, first) / lengths[:, None]


def fold_cols(values: Tensor, spans: Sequence[Span]) -> Tensor:
    """Sum the columns of each span. NaN counts as nothing.

    Shapes:  (rows, cols) -> (rows, spans), float64
    Values:  NaN where every entry is
    """
    return _folded(values.T, spans, 0).T


def _folded(values: Tensor, spans: Sequence[Span], first: int) -> Tensor:
    # Sums over spans of the first axis, NaN where a span has nothing else.
    values = values.double()
    starts = torch.tensor([start - first for start, _ in spans])
    if all(stop - start == 1 for start, stop in spans):
        return values[starts]
    lengths = torch.tensor([stop - start for start, stop in spans])
    into = torch.repeat_interleave(torch.arange(len(spans)), lengths)
    index = torch.cat([torch.arange(start - first, stop - first) for start, stop in spans])
    taken = values[index]
    empty = torch.zeros(len(spans), values.shape[1], dtype=torch.float64)
    seen = empty.index_add(0, into, (~taken.isnan()).double())
    return empty.index_add(0, into, taken.nan_to_num(0.0)).masked_fill(seen == 0, torch.nan)


# ------------------------------------------------------------------------------------------------------------ the parts


def _parts(tokens: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token], Sequence[Token]]:
    """Special tokens before the text, everything up to its end, special tokens after it."""
    own = [at for at, token in enumerate(tokens) if not token.special]
    first, stop = (own[0], own[-1] + 1) if own else (len(tokens), len(tokens))
    return tokens[:first], tokens[first:stop], tokens[stop:]


def _specials(a: Sequence[Token], b: Sequence[Token]) -> Iterator[Segment]:
    """Special tokens at the same place belong together, one by one, whatever each model calls its own."""
    for one, other in zip(a, b, strict=False):
        yield _segment([one], [other])


def _segment(a: Sequence[Token], b: Sequence[Token]) -> Segment:
    special = a[0].special
    text = _text(a)
    if special and a[0].text != b[0].text:
        text = f"{a[0].text} / {b[0].text}"
    return Segment((a[0].index, a[-1].index + 1), (b[0].index, b[-1].index + 1), text, special)


def _text(tokens: Sequence[Token]) -> str:
    """The characters of neighbouring tokens; pieces of one character have it once."""
    if len(tokens) == 1:
        return tokens[0].text
    text, end = "", tokens[0].start
    for token in tokens:
        if token.start > end:
            text += " "  # what a tokenizer leaves out between tokens is white space
        text += token.text[max(0, end - token.start) :]
        end = max(end, token.end)
    return text


# -------------------------------------------------------------------------------------------------------- by characters


def _characters(tokens: Sequence[Token]) -> dict[int, str]:
    """The characters that the tokens show, by their place in the text."""
    return {
        token.start + at: character
        for token in tokens
        if not token.special
        for at, character in enumerate(token.text[: token.end - token.start])
    }


def _same_text(a: Sequence[Token], b: Sequence[Token]) -> bool:
    """Whether the texts agree wherever both show a character, and do somewhere: one of them may be cut."""
    ours, theirs = _characters(a), _characters(b)
    both = ours.keys() & theirs.keys()
    return bool(both) and all(ours[at] == theirs[at] for at in both)


def _by_characters(a: Sequence[Token], b: Sequence[Token]) -> Iterator[Segment]:
    """Segments between places that no token of either side lies across."""
    cuts = sorted(_clean(a, b) & _clean(b, a))
    ours, theirs = _in_cells(a, cuts), _in_cells(b, cuts)
    for cell in sorted(ours.keys() & theirs.keys()):
        yield from _paired(ours[cell], theirs[cell])


def _paired(a: Sequence[Token], b: Sequence[Token]) -> Iterator[Segment]:
    """One segment, or one for each token where both sides have the same pieces (of one character)."""
    if [token.piece for token in a] == [token.piece for token in b]:
        for one, other in zip(a, b, strict=True):
            yield _segment([one], [other])
    else:
        yield _segment(a, b)


def _clean(tokens: Sequence[Token], others: Sequence[Token]) -> set[int]:
    """Ends of the tokens of both sides that do not lie inside a token of the first."""
    places = sorted({place for token in (*tokens, *others) for place in (token.start, token.end)})
    number = {place: at for at, place in enumerate(places)}
    inside = [0] * (len(places) + 1)
    for token in tokens:
        if token.end > token.start:
            inside[number[token.start] + 1] += 1
            inside[number[token.end]] -= 1
    clean, depth = set(), 0
    for at, place in enumerate(places):
        depth += inside[at]
        if depth == 0:
            clean.add(place)
    return clean


def _in_cells(tokens: Sequence[Token], cuts: Sequence[int]) -> dict[tuple[int, bool], list[Token]]:
    """Tokens by the cell [cut, next cut) that they lie in; special ones, which are before a cell, by themselves."""
    cell_of = {place: at for at, (start, stop) in enumerate(pairwise(cuts)) for place in range(start, stop)}
    places = set(cuts)
    cells: dict[tuple[int, bool], list[Token]] = defaultdict(list)
    for token in tokens:
        if token.start in cell_of and (not token.special or token.start in places):
            cells[cell_of[token.start], not token.special].append(token)
    return cells


# ------------------------------------------------------------------------------------------------------------ by tokens


def _by_tokens(a: Sequence[Token], b: Sequence[Token]) -> Iterator[Segment]:
    """One segment for each token of the stretches that both sides have."""
    ours, theirs = ([_likeness(token) for token in side] for side in (a, b))
    counts = Counter(theirs)
    everywhere = sum(counts[likeness] for likeness in ours) > MOST_STEPS
    matcher = SequenceMatcher(None, ours, theirs, autojunk=everywhere)
    for block in matcher.get_matching_blocks():
        for at in range(block.size):
            yield _segment([a[block.a + at]], [b[block.b + at]])


def _likeness(token: Token) -> tuple[bool, str, int]:
    """What makes two tokens the same one: the text, without the spaces that some models take along."""
    return token.special, token.text.strip() or token.text, token.part if token.parts > 1 else 0
