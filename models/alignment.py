"""Which tokens of one run belong to which of another: two axes cut into the same segments.

Where two texts are the same characters, both tokenisations are cut wherever neither has a token across the place: the
finest cut that they share. Where the texts differ, equal stretches of tokens are found with difflib, and the rest is
left out. A matrix on the tokens of either run then folds onto the segments: keys are summed, queries averaged.

It knows nothing of models, of heads, or of what the matrices are.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from models.protocol import Span
from models.tokens import Token

By = Literal["characters", "tokens"]
MOST_STEPS = 10_000_000  # of all searches of one kind together, a second or two; what is left then is left out


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


class Columns:
    """Neighbouring columns that are summed into one each: spans in order, which may leave columns out between them."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.across: Span = (spans[0][0], spans[-1][1])
        self._n = len(spans)
        lengths = torch.tensor([stop - start for start, stop in spans])
        self._single = bool((lengths == 1).all())
        self._into = torch.repeat_interleave(torch.arange(self._n), lengths)
        self._taken = torch.cat([torch.arange(*span) for span in spans]) - self.across[0]

    def __len__(self) -> int:
        return self._n

    def sums(self, values: Tensor) -> Tensor:
        """Sum the columns of each span.

        Shapes:  (rows, columns of `across`) -> (rows, spans), float64
        Values:  NaN, which counts as nothing, only where a span has nothing else
        """
        taken = values[:, self._taken].double()
        if self._single:
            return taken
        empty = taken.new_zeros(len(values), self._n)
        seen = empty.index_add(1, self._into, (~taken.isnan()).double())
        return empty.index_add(1, self._into, taken.nan_to_num(0.0)).masked_fill(seen == 0, torch.nan)


def fold(read: Callable[[Span, Span], Tensor], rows: Sequence[Span], cols: Columns, most_rows: int) -> Tensor:
    """Fold a matrix, read at most `most_rows` rows at a time: rows of a span averaged, its columns summed.

    Shapes:  read(rows, cols) -> (rows, cols), NaN where hidden; -> (row spans, col spans), float64
    Values:  NaN, which counts as nothing, only where every entry is; a mean is over all rows of the span
    """
    lengths = torch.tensor([stop - start for start, stop in rows])
    into = torch.repeat_interleave(torch.arange(len(rows)), lengths)
    indices = torch.cat([torch.arange(*span) for span in rows])
    sums, seen = torch.zeros(2, len(rows), len(cols), dtype=torch.float64)
    first = 0
    while first < len(indices):  # a small gap between spans is read along, a large one begins another part
        stop = int(torch.searchsorted(indices, indices[first] + most_rows))
        own, down = into[first:stop], indices[first:stop]
        start = int(down[0])
        part = cols.sums(read((start, int(down[-1]) + 1), cols.across)[down - start])
        sums.index_add_(0, own, part.nan_to_num(0.0))
        seen.index_add_(0, own, (~part.isnan()).double())
        first = stop
    means: Tensor = sums / lengths[:, None]
    return means.masked_fill(seen == 0, torch.nan)


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
    for first_a, first_b, size in sorted(stretches(ours, theirs)):
        for at in range(size):
            yield _segment([a[first_a + at]], [b[first_b + at]])


def stretches(a: Sequence[Hashable], b: Sequence[Hashable]) -> Iterator[tuple[int, int, int]]:
    """Equal stretches, the longest of all and then those on either side of it: (start in a, start in b, length).

    difflib's own get_matching_blocks searches every range whatever that takes, in time that may grow with the cube of
    the tokens. Here ranges are searched in full while there are steps for it, then with stretches that begin with a
    token which is not everywhere; large ranges come before their parts, so none is left out for one far down.
    """
    # with autojunk tokens that are everywhere in b (more than 1 % of 200 or more) begin no stretch
    searches = [_Search(SequenceMatcher(None, a, b, autojunk=rare)) for rare in (False, True)]
    ranges: deque[tuple[Span, Span]] = deque([((0, len(a)), (0, len(b)))])
    while ranges:
        of_a, of_b = ranges.popleft()
        search = next((one for one in searches if one.steps(of_a) <= one.left), None)
        if search is None:
            continue
        first_a, first_b, size = search.longest(of_a, of_b)
        if size:
            yield first_a, first_b, size
            before = (of_a[0], first_a), (of_b[0], first_b)
            after = (first_a + size, of_a[1]), (first_b + size, of_b[1])
            ranges.extend(some for some in (before, after) if all(start < stop for start, stop in some))


class _Search:
    """difflib's search for the longest equal stretch, with the steps that are left for it."""

    def __init__(self, matcher: Any) -> None:  # noqa: ANN401  a SequenceMatcher, whose b2j is not typed
        self._matcher = matcher
        self._before = [0, *accumulate(1 + len(matcher.b2j.get(token, ())) for token in matcher.a)]
        self.left = MOST_STEPS

    def steps(self, of_a: Span) -> int:
        """What a search of this range takes at most: each token is looked up at all its places in b."""
        return self._before[of_a[1]] - self._before[of_a[0]]

    def longest(self, of_a: Span, of_b: Span) -> tuple[int, int, int]:
        """The longest equal stretch of two ranges, the first of several; its length is 0 where there is none."""
        self.left -= self.steps(of_a)
        first_a, first_b, size = self._matcher.find_longest_match(*of_a, *of_b)
        return first_a, first_b, size


def _likeness(token: Token) -> tuple[bool, str, tuple[int, int, str | None]]:
    """What makes two tokens the same one: the text, without the spaces that some models take along.

    Pieces of one character share its text; they are the same only where the character is cut alike, byte by byte
    """
    piece = (token.part, token.parts, token.bytes) if token.parts > 1 else (1, 1, None)
    return token.special, token.text.strip() or token.text, piece
