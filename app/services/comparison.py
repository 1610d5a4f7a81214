"""Two heads side by side: the difference of their weights on the axes that both runs share.

Read back a few rows at a time, whatever the cells and the gaps between what the runs share, so that memory does not
grow with the size of the matrix. Nothing here knows HTTP; how tokens are aligned is told by `models/alignment.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from app.services.errors import ComparisonTooLarge
from app.services.kept import Kept
from app.services.lenses import Side as Text
from app.services.lenses import sides_of, tokens_of
from app.services.run_files import Stored
from app.services.windows import nested
from models.alignment import Alignment, Columns, Segment, align, fold
from models.pooling import cell_count, fit_steps, into_cells
from models.protocol import Index, SiteDescription, Span
from models.tokens import Token

SIDES = ("a", "b")
Reason = Literal["sites", "nothing_in_common"]
LARGEST = 20  # changes that are listed
KEPT_ALIGNMENTS = 8  # of pairs of texts: lists of a few thousand entries
MOST_WEIGHTS = 600_000_000  # read for one comparison, both sides together: some twenty seconds of one thread
AT_ONCE = 500_000  # weights of one side in memory, 4 MB in float64, of which a few copies are made


@dataclass(frozen=True)
class Side:
    """One head of a finished run; layer and head may be "mean" or "max"."""

    run: Stored
    site: SiteDescription
    layer: Index
    head: Index

    @property
    def is_cross(self) -> bool:
        """Whether queries and keys are different texts."""
        return self.site.site == "decoder.cross"

    @property
    def texts(self) -> tuple[Text, Text]:
        """Which of the run's texts the queries and the keys are."""
        return sides_of(self.run[0], self.site.site)

    def axis(self, number: int) -> tuple[Token, ...]:
        """Tokens of the queries (0) or of the keys (1)."""
        return tokens_of(self.run[0], self.texts[number])

    @property
    def depth(self) -> int:
        """How many heads are read for each weight."""
        return self._layers * self._heads

    @property
    def held(self) -> int:
        """How many weights are in memory for each one that is wanted."""
        return max(self._layers, self._heads)

    @property
    def _layers(self) -> int:
        return self.site.n_layers if isinstance(self.layer, str) else 1

    @property
    def _heads(self) -> int:
        return self.site.n_heads if isinstance(self.head, str) else 1


@dataclass(frozen=True)
class Pair:
    """Two heads with their shared axes; `reason` says why there are none."""

    a: Side
    b: Side
    rows: Alignment
    cols: Alignment
    reason: Reason | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many segments are down and across."""
        return len(self.rows.segments), len(self.cols.segments)


class Alignments:
    """Which tokens of two runs belong together, of the last pairs: every step of a zoom asks for the same ones."""

    def __init__(self) -> None:
        self._known: Kept[Alignment] = Kept(KEPT_ALIGNMENTS)

    def pair_up(self, a: Side, b: Side) -> Pair:
        """Align the axes of two heads."""
        rows = self._aligned(a, b, 0)
        cols = self._aligned(a, b, 1) if a.is_cross or b.is_cross else rows
        if a.is_cross != b.is_cross:
            return Pair(a, b, Alignment(rows.by, ()), Alignment(cols.by, ()), "sites")
        if not rows.segments or not cols.segments:
            return Pair(a, b, Alignment(rows.by, ()), Alignment(cols.by, ()), "nothing_in_common")
        return Pair(a, b, rows, cols)

    def forget(self, run_id: str) -> None:
        """Drop what was found of a run."""
        self._known.forget(run_id)

    def _aligned(self, a: Side, b: Side, axis: int) -> Alignment:
        of, texts = [side.run[0] for side in (a, b)], tuple(side.texts[axis] for side in (a, b))
        return self._known.find(of, texts, lambda: align(a.axis(axis), b.axis(axis)))


def compare(pair: Pair, rows: Span | None, cols: Span | None, max_cells: int) -> dict[str, Any]:
    """The difference a − b over a range of the shared axes, JSON-ready, with the largest changes in it.

    Values:  cells are means of at most max_cells aligned cells; null where either side can see nothing. The largest
             changes are those of single segments, whatever the cells
    Raises:  ComparisonTooLarge
    """
    if pair.reason is not None:
        return _answer(pair, (0, 0), (0, 0), (1, 1), None, [])
    rows, cols = rows or (0, pair.shape[0]), cols or (0, pair.shape[1])
    _refuse_above(pair, rows, cols)
    steps = fit_steps(rows, cols, max_cells)
    shape = cell_count(rows, steps[0]), cell_count(cols, steps[1])
    sums, counts = torch.zeros(2, *shape, dtype=torch.float64)
    columns = {name: Columns([getattr(one, name) for one in pair.cols.segments[slice(*cols)]]) for name in SIDES}
    largest, at_once = _Largest(), max(1, AT_ONCE // (cols[1] - cols[0]))
    for first in range(rows[0], rows[1], at_once):
        part = (first, min(first + at_once, rows[1]))
        ours, theirs = (_folded(pair, name, part, columns[name]) for name in columns)
        difference = ours - theirs
        largest.add(first, cols[0], ours, theirs, difference)
        into = torch.arange(*part) // steps[0] - rows[0] // steps[0]
        for total, values in ((sums, difference.nan_to_num(0.0)), (counts, (~difference.isnan()).double())):
            total.index_add_(0, into, into_cells(values, 1, cols[0], steps[1]).sum(-1))
    return _answer(pair, rows, cols, steps, sums / counts, largest.found)  # NaN where neither sees anything: 0 / 0


def _refuse_above(pair: Pair, rows: Span, cols: Span) -> None:
    weights = 0
    for name, side in (("a", pair.a), ("b", pair.b)):
        (top, bottom), (left, right) = (
            _range(alignment.segments[slice(*span)], name) for alignment, span in ((pair.rows, rows), (pair.cols, cols))
        )
        weights += (bottom - top) * (right - left) * side.depth
    if weights > MOST_WEIGHTS:
        raise ComparisonTooLarge(weights, MOST_WEIGHTS)


def _range(segments: tuple[Segment, ...], name: str) -> Span:
    """The tokens of one side from the first segment to the last, those between them that have no counterpart too."""
    return getattr(segments[0], name)[0], getattr(segments[-1], name)[1]


def _folded(pair: Pair, name: str, rows: Span, cols: Columns) -> Tensor:
    """One side's weights on the shared axes, NaN where it can see nothing."""
    side: Side = getattr(pair, name)
    down = [getattr(segment, name) for segment in pair.rows.segments[slice(*rows)]]

    def read(top: Span, left: Span) -> Tensor:
        size = (top[1] - top[0]) * (left[1] - left[0])
        return side.run[1].window(side.site.site, side.layer, side.head, top, left, size, "mean").weights

    return fold(read, down, cols, max(1, AT_ONCE // ((cols.across[1] - cols.across[0]) * side.held)))


class _Largest:
    """The changes of greatest size so far: {row, col, a, b, difference}."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def add(self, top: int, left: int, a: Tensor, b: Tensor, difference: Tensor) -> None:
        sizes = difference.abs().nan_to_num(-1.0).flatten()
        best = sizes.topk(min(LARGEST, len(sizes)))
        for at in best.indices[best.values > 0].tolist():
            row, col = divmod(at, difference.shape[1])
            values = {"a": float(a[row, col]), "b": float(b[row, col]), "difference": float(difference[row, col])}
            self.found.append({"row": top + row, "col": left + col, **values})
        self.found.sort(key=lambda one: (-abs(one["difference"]), one["row"], one["col"]))
        del self.found[LARGEST:]


def _answer(
    pair: Pair, rows: Span, cols: Span, steps: tuple[int, int], cells: Tensor | None, largest: list[dict[str, Any]]
) -> dict[str, Any]:
    aligned = pair.reason is None
    exactly = pair.rows.by == pair.cols.by == "characters"
    return {
        "aligned": aligned,
        "reason": pair.reason,
        "by": ("characters" if exactly else "tokens") if aligned else None,
        "axis_rows": [vars(segment) for segment in pair.rows.segments],
        "axis_cols": [vars(segment) for segment in pair.cols.segments],
        "rows": rows,
        "cols": cols,
        "row_step": steps[0],
        "col_step": steps[1],
        "difference": None if cells is None else nested(cells),
        "largest": largest,
    }
