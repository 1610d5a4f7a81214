"""Blocks of weights read along their diagonals: keys at the same distance from their queries.

A block whose rows are read one longer than they are has the offsets key − query as its columns. Knows no scores.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def near_keys(weights: Tensor, own: int, near: int, *, looks_back: bool) -> Tensor:
    """Read the weights on the keys around each row's own; `own` is the column of the first row's own position.

    Shapes:  weights (n_heads, rows, cols), contiguous -> (offsets, n_heads, rows), a view where it can be: offsets from
             −near to near, to 0 if rows look back only; 0 where there is no such column
    """
    n_heads, n_rows, n_cols = weights.shape
    after = 0 if looks_back else near
    if own < near or own + n_rows + after > n_cols:
        weights, own = _columns(weights, own - near, own + n_rows + after), near
        n_cols = weights.shape[2]
    step = (1, n_rows * n_cols, n_cols + 1)
    return weights.as_strided((near + 1 + after, n_heads, n_rows), step, weights.storage_offset() + own - near)


def sum_by_offset(weights: Tensor, factors: Tensor, own: int, *, looks_back: bool) -> tuple[int, Tensor]:
    """Sum a block along its diagonals, each row times a factor; `own` as in near_keys.

    Shapes:  weights (n_heads, rows, cols), contiguous, factors (n_heads, n, rows) -> (first offset, sums (n_heads, n,
             offsets)), offsets key − query ascending
    """
    n_heads, n_rows, n_cols = weights.shape
    if looks_back and (own < 0 or own + n_rows > n_cols):  # the mask hides the first or last of the rows' own keys
        weights, own = _columns(weights, min(own, 0), own + n_rows), max(own, 0)
        n_cols = weights.shape[2]
    if not looks_back:
        around = pad(weights, (n_rows - 1, n_rows - 1)).contiguous()
        step = (n_rows * around.shape[2], around.shape[2] + 1, 1)
        return 1 - n_rows - own, torch.bmm(factors, around.as_strided((n_heads, n_rows, n_cols + n_rows - 1), step))
    # Where a row would begin left of the block, this view shows the end of the row before: keys after that row's own,
    # which are hidden, so their weights are 0. Only the first row has none before it; it is added by itself.
    first_row = factors[..., :1] * weights[:, None, 0, : own + 1]  # (n_heads, n, own + 1)
    if n_rows == 1:
        return -own, first_row
    step = (n_rows * n_cols, n_cols + 1, 1)
    view = weights.as_strided((n_heads, n_rows - 1, own + n_rows), step, weights.storage_offset() + n_cols + 2 - n_rows)
    sums = torch.bmm(factors[..., 1:], view)
    sums[..., n_rows - 1 :] += first_row
    return 1 - n_rows - own, sums


def _columns(weights: Tensor, start: int, stop: int) -> Tensor:
    # the columns from start to stop, contiguous, with zeros where there are none
    n_cols = weights.shape[2]
    inside = weights[..., min(max(start, 0), n_cols) : min(max(stop, 0), n_cols)]
    left = min(max(-start, 0), stop - start)
    return pad(inside, (left, stop - start - left - inside.shape[2])).contiguous()
