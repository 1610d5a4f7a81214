"""Pooling a matrix with hidden entries into cells. Knows nothing of attention: NaN is hidden, the rest are numbers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.protocol import Pool, Span


def fit_steps(rows: Span, cols: Span, max_cells: int) -> tuple[int, int]:
    """Find the smallest equal steps at which a window needs at most max_cells cells.

    Values:  (row_step, col_step) for cells aligned to index 0; one row stays one row
    """
    step = 1
    while cell_count(rows, step) * cell_count(cols, step) > max_cells:
        step += 1
    return (step if rows[1] - rows[0] > 1 else 1), step


def cell_count(span: Span, step: int) -> int:
    """How many cells of `step` entries, aligned to index 0, a span touches."""
    return -(-span[1] // step) - span[0] // step


def pool_cells(weights: Tensor, first_row: int, first_col: int, row_step: int, col_step: int, pool: Pool) -> Tensor:
    """Pool a rectangle whose first entry is (first_row, first_col) of the whole matrix.

    Shapes:  weights (rows, cols) -> (row cells, col cells), cells aligned to index 0 of the whole matrix
    Values:  the largest, or the mean of the entries which are not NaN; NaN for a cell without any
    """
    if row_step == col_step == 1:
        return weights
    n_rows, n_cols = weights.shape
    top, left = first_row % row_step, first_col % col_step
    edges = (left, -(left + n_cols) % col_step, top, -(top + n_rows) % row_step)
    cells: Tensor = pad(weights, edges, value=torch.nan).unflatten(1, (-1, col_step)).unflatten(0, (-1, row_step))
    # (row cells, row_step, col cells, col_step): reduce the long axis first
    hidden = cells.isnan()
    seen = (~hidden).sum(1).sum(-1)
    if pool == "max":
        pooled = cells.masked_fill(hidden, -1.0).amax(1).amax(-1)  # weights are at least 0
    else:
        pooled = cells.masked_fill(hidden, 0.0).sum(1).sum(-1) / seen.clamp(min=1)
    return pooled.masked_fill(seen == 0, torch.nan)
