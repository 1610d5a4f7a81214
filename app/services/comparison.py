"""Two heads side by side: the difference of their weights on the axes that both runs share.

Read back in parts of a few rows at a time, so that memory does not grow with the size of the matrix. Nothing here knows
HTTP; how tokens are aligned is told by `models/alignment.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from app.services.errors import ComparisonTooLarge
from app.services.store import Stored
from app.services.windows import nested
from models.alignment import Alignment, Segment, align, fold_cols, fold_rows
from models.pooling import fit_steps, into_cells, pool_cells
from models.protocol import Index, SiteDescription, Span
from models.tokens import Token

Reason = Literal["sites", "nothing_in_common"]
LARGEST = 20  # changes that are listed
MOST_WEIGHTS = 600_000_000  # read for one comparison, both sides together: some ten seconds
AT_ONCE = 2_000_000  # weights of one side in memory: 16 MB in float64


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
    def axes(self) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """Tokens of the queries and of the keys."""
        record = self.run[0]
        source, target = record.tokens, record.target
        if self.is_cross:
            return target, source
        own = target if self.site.site == "decoder.self" and target else source
        return own, own

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


def pair_up(a: Side, b: Side) -> Pair:
    """Align the axes of two heads."""
    rows = align(a.axes[0], b.axes[0])
    cols = align(a.axes[1], b.axes[1]) if a.is_cross or b.is_cross else rows
    if a.is_cross != b.is_cross:
        return Pair(a, b, Alignment(rows.by, ()), Alignment(cols.by, ()), "sites")
    if not rows.segments or not cols.segments:
        return Pair(a, b, Alignment(rows.by, ()), Alignment(cols.by, ()), "nothing_in_common")
    return Pair(a, b, rows, cols)


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
    cells, largest = [], _Largest()
    for part in _parts(pair, rows, steps[0]):
        ours, theirs = (_folded(pair, name, part, cols) for name in ("a", "b"))
        difference = ours - theirs
        visible = ~difference.isnan()
        largest.add(part[0], cols[0], ours, theirs, difference)
        counts = _counts(visible, (part[0], cols[0]), steps)
        cells.append(pool_cells(difference.nan_to_num(0.0), counts, (part[0], cols[0]), steps, "mean"))
    return _answer(pair, rows, cols, steps, torch.cat(cells), largest.found)


def _refuse_above(pair: Pair, rows: Span, cols: Span) -> None:
    weights = 0
    for name, side in (("a", pair.a), ("b", pair.b)):
        (top, bottom), (left, right) = (
            _range(alignment.segments[slice(*span)], name) for alignment, span in ((pair.rows, rows), (pair.cols, cols))
        )
        weights += (bottom - top) * (right - left) * side.depth
    if weights > MOST_WEIGHTS:
        raise ComparisonTooLarge(weights, MOST_WEIGHTS)


def _parts(pair: Pair, rows: Span, step: int) -> Iterator[Span]:
    """Ranges of segments whose rows of either side fit into memory, beginning at multiples of the step."""
    wide = max((side.axes[1][-1].index + 1) * max(side.site.n_heads, side.site.n_layers) for side in (pair.a, pair.b))
    first = stop = rows[0]
    while first < rows[1]:
        while stop < rows[1]:
            further = min(stop - stop % step + step, rows[1])
            spans = [_range(pair.rows.segments[first:further], name) for name in ("a", "b")]
            if stop > first and max(end - start for start, end in spans) * wide > AT_ONCE:
                break
            stop = further
        yield first, stop
        first = stop


def _range(segments: tuple[Segment, ...], name: str) -> Span:
    """The tokens of one side from the first segment to the last, those between them that have no counterpart too."""
    return getattr(segments[0], name)[0], getattr(segments[-1], name)[1]


def _folded(pair: Pair, name: Literal["a", "b"], rows: Span, cols: Span) -> Tensor:
    """One side's weights on the shared axes, NaN where it can see nothing."""
    side: Side = getattr(pair, name)
    down, across = pair.rows.segments[slice(*rows)], pair.cols.segments[slice(*cols)]
    top, left = _range(down, name), _range(across, name)
    size = (top[1] - top[0]) * (left[1] - left[0])
    window = side.run[1].window(side.site.site, side.layer, side.head, top, left, size, "mean")
    spans = [getattr(segment, name) for segment in across]
    folded = fold_cols(window.weights, [(start - left[0], stop - left[0]) for start, stop in spans])
    return fold_rows(folded, [getattr(segment, name) for segment in down], first=top[0])


def _counts(visible: Tensor, first: tuple[int, int], steps: tuple[int, int]) -> Tensor:
    """How many entries of each cell both sides can see."""
    down = into_cells(visible.double(), 0, first[0], steps[0]).sum(1)
    return into_cells(down, 1, first[1], steps[1]).sum(-1)


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
