"""Masks and position biases in compact form: analysed once, asked for any block afterwards.

A mask that lets each query see one run of keys (causal, windowed, full) is kept as the two ends of that run; any other
is kept whole. A position bias that depends on key − query alone is kept as one row a head. True = may attend, as
everywhere.

This module knows nothing of scores or of models; where masks come from is `models/huggingface.py`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.errors import ShapeError
from models.pooling import PooledCells, into_cells, split_aligned
from models.protocol import MaskKind, Rows, Span

ROWS_AT_ONCE = (
    512  # rows of an n² mask looked at together, so that the analysis needs little memory beside the mask itself
)


class MaskLayout:
    """One mask: which keys each query may attend to.

    starts, stops  (query_len), int64: query i sees the keys starts[i] ≤ j < stops[i]; both 0 for a query that sees none
    dense          (query_len, key_len), boolean, only where a query's keys are not one run
    kind           the mask in words
    looks_back     no query sees a key after its own position
    """

    def __init__(self, starts: Tensor, stops: Tensor, key_len: int, dense: Tensor | None = None) -> None:
        self.starts, self.stops, self.key_len, self.dense = starts, stops, key_len, dense
        self.query_len = len(starts)
        self.kind = MaskKind("dense") if dense is not None else _kind_of(starts, stops, key_len)
        self.looks_back = bool((stops <= torch.arange(1, self.query_len + 1, device=stops.device)).all())

    @classmethod
    def full(cls, query_len: int, key_len: int, device: torch.device | None = None) -> MaskLayout:
        """The mask that hides nothing."""
        starts = torch.zeros(query_len, dtype=torch.int64, device=device)
        return cls(starts, torch.full_like(starts, key_len), key_len)

    @classmethod
    def from_mask(cls, mask: Tensor) -> MaskLayout:
        """Analyse a mask.

        Shapes:  mask (query_len, key_len), boolean
        Raises:  ShapeError if it is not a boolean matrix
        """
        if mask.dim() != 2 or mask.dtype != torch.bool:
            raise ShapeError(
                f"a mask to analyse is a boolean (query_len, key_len), got {mask.dtype} {tuple(mask.shape)}"
            )
        key_len = mask.shape[1]
        ends = [_ends_of_rows(part) for part in mask.split(ROWS_AT_ONCE)]
        starts, stops, counts = (torch.cat(column) for column in zip(*ends, strict=True))
        one_run = bool(((stops - starts) == counts).all())
        return cls(starts, stops, key_len, None if one_run else mask.clone())

    def key_range(self, rows: Span) -> Span:
        """The keys that any query of these rows sees, as one half-open range; (0, 0) if they see none."""
        starts, stops = self.starts[rows[0] : rows[1]], self.stops[rows[0] : rows[1]]
        sees_any = stops > starts
        return (int(starts[sees_any].min()), int(stops.max())) if bool(sees_any.any()) else (0, 0)

    def visible(self, rows: Rows, cols: Rows) -> Tensor:
        """Cut some rows and columns out of the mask, each a span or a list.

        Shapes:  -> (rows, cols), boolean; False beyond key_len, where only a span may reach
        """
        here = index_of(rows)
        if self.dense is not None:
            part = self.dense[here][:, index_of(cols)]
            return pad(part, (0, cols[1] - cols[0] - part.shape[1])) if isinstance(cols, tuple) else part
        key_pos = positions(cols, self.starts.device)
        starts, stops = self.starts[here, None], self.stops[here, None]
        return (key_pos >= starts) & (key_pos < stops)

    def hidden(self, rows: Span, cols: Span) -> tuple[slice, Tensor] | None:
        """Find what is hidden in a rectangle, leaving out the columns on the left that all its rows see.

        Shapes:  -> (columns, where): `where` (rows, columns), boolean, True = hidden, speaks of cols[0] + columns;
                 None if nothing is hidden
        """
        first = cols[0]
        if self.dense is None and int(self.starts[rows[0] : rows[1]].max()) <= first:
            first = min(max(int(self.stops[rows[0] : rows[1]].min()), first), cols[1])
        where = ~self.visible(rows, (first, cols[1]))
        return (slice(first - cols[0], cols[1] - cols[0]), where) if bool(where.any()) else None

    def visible_counts(self) -> Tensor:
        """Count the keys each query sees.

        Shapes:  -> (query_len), int64
        """
        return self.stops - self.starts if self.dense is None else self.dense.sum(-1)

    def cell_counts(self, row_step: int, col_step: int, rows: Span | None = None, cols: Span | None = None) -> Tensor:
        """Count the visible weights in each cell of a pooled window, by default of the whole matrix.

        Shapes:  -> (row cells, col cells), int64; cells are aligned to index 0, the first and last may be partial
        """
        rows, cols = rows or (0, self.query_len), cols or (0, self.key_len)
        if self.dense is not None:
            cells = PooledCells(rows, cols, (row_step, col_step), "mean", self.dense.device)
            for part in split_aligned(rows, row_step, lambda first: first + ROWS_AT_ONCE):  # sums of them are int64
                cells.count(part, self.visible(part, cols))
            return cells.counts.long()
        edges = torch.arange(cols[0] // col_step, -(-cols[1] // col_step) + 1, device=self.starts.device) * col_step
        edges = edges.clamp(*cols)
        starts, stops = self.starts[rows[0] : rows[1], None], self.stops[rows[0] : rows[1], None]
        overlap = torch.minimum(stops, edges[1:]) - torch.maximum(starts, edges[:-1])  # of a row's run with a cell
        return into_cells(overlap.clamp(min=0), 0, rows[0], row_step).sum(1)

    def mean_distances(self) -> Tensor:
        """Mean |query − key| over the keys each query sees: what uniform attention would give.

        Shapes:  -> (query_len), float64; 0 for a query that sees none
        """
        return self._mean_distances

    @cached_property
    def _mean_distances(self) -> Tensor:
        if self.dense is not None:
            key_pos = torch.arange(self.key_len, device=self.dense.device, dtype=torch.float64)
            query_pos = torch.arange(self.query_len, device=self.dense.device, dtype=torch.float64)
            parts = zip(query_pos.split(ROWS_AT_ONCE), self.dense.split(ROWS_AT_ONCE), strict=True)
            total = torch.cat([((key_pos - some[:, None]).abs_() * seen).sum(-1) for some, seen in parts])
            return total / self.visible_counts().clamp(min=1)
        query_pos = torch.arange(self.query_len, device=self.starts.device, dtype=torch.float64)
        before = (query_pos - self.starts).clamp(min=0)  # the run reaches this far back …
        after = (self.stops - 1 - query_pos).clamp(min=0)  # … and this far ahead: sums 1 + 2 + … + reach on both sides
        skipped_before = (query_pos - self.stops).clamp(min=0)  # a run that ends before the query, or begins after it
        skipped_after = (self.starts - 1 - query_pos).clamp(min=0)
        total = _triangle(before) - _triangle(skipped_before) + _triangle(after) - _triangle(skipped_after)
        return total / self.visible_counts().clamp(min=1)

    def tensors(self) -> dict[str, Tensor]:
        """What must be stored; `from_tensors` gives the mask back."""
        stored = {"starts": self.starts.to("cpu", torch.int32), "stops": self.stops.to("cpu", torch.int32)}
        if self.dense is not None:
            stored["dense"] = self.dense.to("cpu", torch.uint8)
        return stored

    @classmethod
    def from_tensors(cls, stored: Mapping[str, Tensor], key_len: int) -> MaskLayout:
        """The mask that `tensors` gave."""
        dense = stored.get("dense")
        return cls(stored["starts"].long(), stored["stops"].long(), key_len, None if dense is None else dense.bool())


class BiasLayout:
    """One additive position bias.

    toeplitz  (n_heads, query_len + key_len − 1): the bias of key j for query i is toeplitz[:, j − i + query_len − 1]
    dense     (n_heads, query_len, key_len), only where the bias is not a function of j − i
    """

    def __init__(
        self, query_len: int, key_len: int, *, toeplitz: Tensor | None = None, dense: Tensor | None = None
    ) -> None:
        self.query_len, self.key_len, self.toeplitz, self.dense = query_len, key_len, toeplitz, dense

    @classmethod
    def from_bias(cls, bias: Tensor) -> BiasLayout:
        """Analyse a bias.

        Shapes:  bias (n_heads or 1, query_len, key_len)
        """
        _, query_len, key_len = bias.shape
        if torch.equal(bias[:, 1:, 1:], bias[:, :-1, :-1]):
            first_column, first_row = (
                bias[:, :, 0].flip(-1),
                bias[:, 0, 1:],
            )  # keys from furthest back to furthest ahead
            return cls(query_len, key_len, toeplitz=torch.cat([first_column, first_row], -1))
        return cls(query_len, key_len, dense=bias.clone())

    def block(self, rows: Rows, cols: Rows) -> Tensor:
        """Cut some rows and columns out of the bias, each a span or a list.

        Shapes:  -> (n_heads or 1, rows, cols); 0 beyond key_len, where only a span may reach
        """
        inside = (cols[0], min(cols[1], self.key_len)) if isinstance(cols, tuple) else cols
        if self.dense is not None:
            part = self.dense[:, index_of(rows)][:, :, index_of(inside)]
        else:
            assert self.toeplitz is not None
            query_pos, key_pos = (positions(span, self.toeplitz.device) for span in (rows, inside))
            part = self.toeplitz[:, key_pos[None, :] - query_pos[:, None] + self.query_len - 1]
        return pad(part, (0, cols[1] - inside[1])) if isinstance(cols, tuple) else part

    def at(self, head: Tensor, query_pos: Tensor, key_pos: Tensor) -> Tensor:
        """Read single entries.

        Shapes:  int64, broadcastable to one another -> their shape together
        """
        if self.dense is not None:
            return self.dense[head if len(self.dense) > 1 else 0, query_pos, key_pos]
        assert self.toeplitz is not None
        return self.toeplitz[head if len(self.toeplitz) > 1 else 0, key_pos - query_pos + self.query_len - 1]

    def tensors(self) -> dict[str, Tensor]:
        """What must be stored; `from_tensors` gives the bias back."""
        stored = {"toeplitz": self.toeplitz, "dense": self.dense}
        return {name: tensor.cpu().contiguous() for name, tensor in stored.items() if tensor is not None}

    @classmethod
    def from_tensors(cls, stored: Mapping[str, Tensor], query_len: int, key_len: int) -> BiasLayout:
        """The bias that `tensors` gave."""
        parts: dict[str, Any] = dict(stored)
        return cls(query_len, key_len, **parts)


def index_of(rows: Rows) -> slice | list[int]:
    """What cuts these rows out of a tensor: a span is cut without a copy."""
    return slice(*rows) if isinstance(rows, tuple) else rows


def positions(rows: Rows, device: torch.device | None = None) -> Tensor:
    """The indices of these rows or columns.

    Shapes:  -> (rows), int64
    """
    if isinstance(rows, tuple):
        return torch.arange(*rows, device=device)
    return torch.tensor(rows, dtype=torch.int64, device=device)


def _ends_of_rows(mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # argmax of 0/1 values is the first 1: of the row, and of the row read backwards
    bits = mask.to(torch.uint8)
    counts = mask.sum(-1)
    seen = counts > 0
    starts = bits.argmax(-1) * seen
    stops = (mask.shape[1] - bits.flip(-1).argmax(-1)) * seen
    return starts, stops, counts


def _triangle(n: Tensor) -> Tensor:
    return n * (n + 1) / 2


def _kind_of(starts: Tensor, stops: Tensor, key_len: int) -> MaskKind:
    query_pos = torch.arange(len(starts), device=starts.device)
    if bool((stops == query_pos + 1).all()):
        if bool((starts == 0).all()):
            return MaskKind("causal")
        window = int((stops - starts).max())
        if bool((starts == (query_pos + 1 - window).clamp(min=0)).all()):
            return MaskKind("causal_window", window)
    if bool((starts == 0).all()) and bool((stops == key_len).all()):
        return MaskKind("full")
    reach = int((stops - 1 - query_pos).max())
    if reach >= 0:
        both = (starts == (query_pos - reach).clamp(min=0)) & (stops == (query_pos + reach + 1).clamp(max=key_len))
        if bool(both.all()):
            return MaskKind("window", reach)
    return MaskKind("ranges")
