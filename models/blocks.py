"""Which query rows are computed together: the blocks of a mask, worked out once, and the buffers that they reuse.

This module knows nothing of what is computed in a block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from models.attention import MASKED
from models.masks import MaskLayout
from models.pooling import cells_of, pooling_step
from models.protocol import Span

CHUNK = 64  # keys whose maximum is taken together; block widths are multiples of it


@dataclass(frozen=True)
class Block:
    """Query rows that are computed together, the keys that any of them sees, and where in there a key is hidden.

    cols    a span of the padded keys, both ends multiples of CHUNK
    hidden  (columns of the block, (rows, columns) float32: MASKED where a key is hidden, else 0), None if nothing is
    cells   the overview's cells that the rows lie in
    in_cell (cells, rows) float32: 1 where a row lies in a cell, else 0
    """

    rows: Span
    cols: Span
    hidden: tuple[slice, Tensor] | None
    cells: Span
    in_cell: Tensor


class Workspace:
    """What the modules of one pass share: buffers, and the blocks and counts of each distinct mask."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}
        # Each entry holds its mask, which keeps the mask's id from being used again.
        self._blocks: dict[tuple[int, int], tuple[MaskLayout, list[Block]]] = {}
        self._counts: dict[int, tuple[MaskLayout, Tensor]] = {}

    def buffer(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """A contiguous tensor with the dtype and device of `like`, which the next call for this name reuses.

        Shapes:  -> `shape`; its contents are arbitrary
        """
        size = math.prod(shape)
        held = self._buffers.get(name)
        if held is None or held.numel() < size or held.dtype != like.dtype:
            held = None
            self._buffers.pop(name, None)  # let go of the old one first
            held = self._buffers[name] = like.new_empty(size)
        return held[:size].view(shape)

    def zeros(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """A buffer that holds zeros.

        Shapes:  -> `shape`
        """
        return self.buffer(name, shape, like).zero_()

    def blocks(self, mask: MaskLayout, rows: int) -> list[Block]:
        """The blocks of a mask with about `rows` query rows each, worked out once and then remembered."""
        place = (id(mask), rows)
        if place not in self._blocks:
            self._blocks[place] = (mask, _plan_blocks(mask, rows))
        return self._blocks[place][1]

    def cell_counts(self, mask: MaskLayout) -> Tensor:
        """How many visible weights each cell of the overview has, counted once for each mask.

        Shapes:  -> (g_rows, g_cols), int64
        """
        if id(mask) not in self._counts:
            steps = pooling_step(mask.query_len), pooling_step(mask.key_len)
            self._counts[id(mask)] = (mask, mask.cell_counts(*steps))
        return self._counts[id(mask)][1]


def _plan_blocks(mask: MaskLayout, rows: int) -> list[Block]:
    padded_len, step = mask.key_len + -mask.key_len % CHUNK, pooling_step(mask.query_len)
    blocks = []
    for span in _row_spans(mask.query_len, rows):
        first, stop = mask.key_range(span)
        if first == stop:
            continue  # no query of the block sees a key: output, weights and statistics stay 0
        cols = (first - first % CHUNK, min(stop + -stop % CHUNK, padded_len))
        hidden = mask.hidden(span, cols)
        if hidden is not None:
            columns, where = hidden
            hidden = (columns, torch.zeros(where.shape, device=where.device).masked_fill_(where, MASKED))
        cells = cells_of(span, step)
        of_row = torch.arange(*span, device=mask.starts.device) // step
        in_cell = (torch.arange(*cells, device=of_row.device)[:, None] == of_row).float()
        blocks.append(Block(span, cols, hidden, cells, in_cell))
    return blocks


def _row_spans(query_len: int, rows: int) -> list[Span]:
    # Whole overview cells, or equal parts of one: no block holds parts of two cells.
    step = pooling_step(query_len)
    size = rows // step * step if rows >= step else -(-step // -(-step // rows))
    within = query_len if rows >= step else step
    return [
        (first, min(first + size, cell + within, query_len))
        for cell in range(0, query_len, within)
        for first in range(cell, min(cell + within, query_len), size)
    ]
