"""Pooling a matrix into cells that are aligned to index 0. Knows nothing of attention: numbers ≥ 0, and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import max_pool1d, pad

from models.protocol import Pool, Span

OVERVIEW_CELLS = 64  # an overview has at most this many cells a side


def pooling_step(length: int, cells: int = OVERVIEW_CELLS) -> int:
    """How many positions share a cell, so that at most `cells` are needed."""
    return max(1, -(-length // cells))


def fit_steps(rows: Span, cols: Span, max_cells: int) -> tuple[int, int]:
    """Find the smallest equal steps at which a window needs at most max_cells cells.

    Values:  (row_step, col_step) for cells aligned to index 0; one row stays one row
    """
    step = 1
    while cell_count(rows, step) * cell_count(cols, step) > max_cells:
        step += 1
    return (step if rows[1] - rows[0] > 1 else 1), step


def cells_of(span: Span, step: int) -> Span:
    """Which cells of `step` entries, aligned to index 0, a span touches."""
    return span[0] // step, -(-span[1] // step)


def cell_count(span: Span, step: int) -> int:
    """How many these are."""
    first, stop = cells_of(span, step)
    return stop - first


def widened(span: Span, step: int, length: int) -> Span:
    """The span with the rest of the cells that it touches, inside 0:length."""
    first, stop = cells_of(span, step)
    return first * step, min(stop * step, length)


def split_aligned(span: Span, step: int, reach: Callable[[int], int]) -> Iterator[Span]:
    """Cut a span into parts, each inside one cell of `step` or ending where a cell does; reach(first) says how far."""
    first = span[0]
    while first < span[1]:
        stop = min(max(reach(first), first + 1), span[1])
        whole = stop - stop % step
        if first < whole:  # the last part too: filled up to whole cells it may take a multiple of its size
            stop = whole
        yield first, stop
        first = stop


def into_cells(matrix: Tensor, dim: int, first: int, step: int) -> Tensor:
    """Cut one axis into cells aligned to index 0, filling the first and last with zeros where they are partial.

    Shapes:  (…, length, …) -> (…, cells, step, …), with `first` the index of the axis's first entry
    """
    length = matrix.shape[dim]
    before = first % step
    after = -(before + length) % step
    if before or after:
        matrix = pad(matrix, [0, 0] * (matrix.dim() - 1 - dim) + [before, after])
    cells: Tensor = matrix.unflatten(dim, (-1, step))
    return cells


def max_of_cells(matrix: Tensor, step: int) -> Tensor:
    """Take the largest of each `step` neighbours along the last axis: torch's pooling does in a fifth of amax's time.

    Shapes:  (n_heads, rows, length) of numbers ≥ 0 -> (n_heads, rows, ceil(length / step))
    """
    if matrix.is_cuda or step == 1:
        return into_cells(matrix, 2, 0, step).amax(-1)
    return max_pool1d(matrix, step, step, ceil_mode=True)


class PooledCells:
    """Pools a window part by part, of which no more than one is ever in memory.

    rows, cols   the window, within the whole matrix, to whose index 0 cells are aligned
    cells        (row cells, col cells), float64: the largest number or the sum so far
    counts       the same, of the entries that are not hidden, as far as they were given
    """

    def __init__(
        self, rows: Span, cols: Span, steps: tuple[int, int], pool: Pool, device: torch.device | None = None
    ) -> None:
        self._rows, self._cols, self._steps, self._pool = rows, cols, steps, pool
        shape = cell_count(rows, steps[0]), cell_count(cols, steps[1])
        self.cells: Tensor = torch.zeros(shape, dtype=torch.float64, device=device)
        self.counts: Tensor = torch.zeros_like(self.cells)

    def add(self, part: Span, numbers: Tensor, visible: Tensor | None = None) -> None:
        """Add some rows of the window: those of one cell, or up to where a cell ends.

        Shapes:  numbers (rows of the part, cols), 0 where hidden; visible (rows of the part, cols), boolean, where the
                 entries that are not hidden are to be counted
        """
        here, by_rows = self._into_rows(part, numbers)
        across = (self._cols[0], self._steps[1])
        # Rows first: that reduces over a long stride, which is fast, and leaves little to do for the columns.
        if self._pool == "max":
            cells = self.cells[here]
            torch.maximum(cells, into_cells(by_rows.amax(1), 1, *across).amax(-1), out=cells)
        else:
            self.cells[here] += into_cells(by_rows.sum(1), 1, *across).sum(-1)
        if visible is not None:
            self.count(part, visible)

    def count(self, part: Span, visible: Tensor) -> None:
        """Count the entries of some rows that are not hidden.

        Shapes:  visible (rows of the part, cols), boolean
        """
        here, by_rows = self._into_rows(part, visible)
        self.counts[here] += into_cells(by_rows.sum(1), 1, self._cols[0], self._steps[1]).sum(-1)

    def _into_rows(self, part: Span, entries: Tensor) -> tuple[slice, Tensor]:
        # which row cells, and the entries of each (row cells, row_step, cols): what lies in one cell is not filled up
        # to a whole one, which may have all rows
        first, stop = cells_of(part, self._steps[0])
        offset = self._rows[0] // self._steps[0]
        down = (part[0], self._steps[0]) if stop - first > 1 else (0, part[1] - part[0])
        return slice(first - offset, stop - offset), into_cells(entries, 0, *down)

    def pooled(self, counts: Tensor | None = None) -> Tensor:
        """What the cells hold once every part is added.

        Shapes:  counts (row cells, col cells) of entries that are not hidden, None for those that were counted
                 -> (row cells, col cells), float64
        Values:  the largest, or the mean of the entries that are not hidden; NaN for a cell without any
        """
        counts = self.counts if counts is None else counts
        values = self.cells if self._pool == "max" else self.cells / counts.clamp(min=1)
        return values.masked_fill(counts == 0, torch.nan)
