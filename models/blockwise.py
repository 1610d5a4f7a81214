"""Attention over blocks of query rows: the output, and what is worth knowing of the weights, without keeping them.

A block holds some query rows and all the keys that they may attend to, so its softmax is complete. Its weights exist
for a moment: they give the output (weights · value), the statistics of each row and their share of the pooled overview,
and are overwritten by the next block. Keys that the mask hides from a whole block are never touched. Memory is O(rows
in a block · key_len).

The arithmetic is `models/attention.py`'s. This module knows nothing of models, layers or storage.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.attention import MASKED, attention_scores, reciprocal_row_sum, softmax_parts
from models.masks import BiasLayout, MaskLayout
from models.pooling import into_cells
from models.protocol import Span

OVERVIEW_CELLS = 64  # an overview has at most this many cells a side
CHUNK = 64  # keys whose maximum is taken together; block widths are multiples of it
ROWS_ON_CPU = (
    64  # tried: 16 to 128 rows; fewer lose to call overhead, more fall out of the cache and skip less of a causal mask
)
WEIGHTS_ON_CPU = 2_400_000  # weights in a block at most, two buffers of 10 MB in float32
SHARE_OF_GPU = 0.25  # of the free memory, for the two buffers


@dataclass(frozen=True)
class AttentionInputs:
    """What one attention module computes with, for one text.

    Shapes:  query (n_heads, query_len, d_head), key (n_kv_heads, key_len, d_head), value (n_kv_heads, key_len,
             d_value), sink_logits (n_heads); all of one float dtype, float32 or float64
    """

    query: Tensor
    key: Tensor
    value: Tensor
    scaling: float
    mask: MaskLayout
    softcap: float | None = None
    bias: BiasLayout | None = None
    sink_logits: Tensor | None = None
    same_sequence: bool = True  # queries and keys are the same positions; False in cross-attention


@dataclass(frozen=True)
class AttentionSummary:
    """What is left of the weights after the pass.

    Shapes:  output (n_heads, query_len, d_value); rows: each (n_heads, query_len); overviews (n_heads, g_rows, g_cols)
    Values:  rows has row_max, row_sum, entropy (nats), top_key (int64, −1 for a row without keys), first, and, where
             queries and keys are the same positions, distance (mean |query − key| in tokens), self, previous (weights
             on those keys). overview_max: largest weight of the cell, overview_mean: mean over its visible weights; 0
             where all are hidden
    """

    output: Tensor
    rows: dict[str, Tensor]
    overview_max: Tensor
    overview_mean: Tensor


@dataclass(frozen=True)
class Block:
    """Query rows that are computed together, the keys that any of them sees, and where in there a key is hidden.

    cols    a span of the padded keys, both ends multiples of CHUNK
    hidden  (columns of the block, boolean (rows, columns)), None if nothing is hidden
    """

    rows: Span
    cols: Span
    hidden: tuple[slice, Tensor] | None


class Workspace:
    """What the modules of one pass share: two buffers (scores, weights), and the blocks of each distinct mask."""

    def __init__(self) -> None:
        self._buffers: tuple[Tensor, Tensor] | None = None
        self._blocks: dict[tuple[int, int], tuple[MaskLayout, list[Block]]] = {}
        self._counts: dict[int, tuple[MaskLayout, Tensor]] = {}

    def buffers(self, shape: tuple[int, int, int], like: Tensor) -> tuple[Tensor, Tensor]:
        """Two contiguous tensors of this shape, with the dtype and device of `like`; their contents are arbitrary.

        Shapes:  -> twice `shape`
        """
        size = shape[0] * shape[1] * shape[2]
        if self._buffers is None or self._buffers[0].numel() < size or self._buffers[0].dtype != like.dtype:
            self._buffers = None  # let go of the old ones first
            self._buffers = (like.new_empty(size), like.new_empty(size))
        scores, weights = (buffer[:size].view(shape) for buffer in self._buffers)
        return scores, weights

    def blocks(self, mask: MaskLayout, rows: int) -> list[Block]:
        """The blocks of a mask with about `rows` query rows each, worked out once and then remembered.

        Shapes:  see Block
        """
        place = (id(mask), rows)
        if place not in self._blocks:
            self._blocks[place] = (
                mask,
                _plan_blocks(mask, rows),
            )  # holding the mask keeps its id from being used again
        return self._blocks[place][1]

    def cell_counts(self, mask: MaskLayout) -> Tensor:
        """How many visible weights each cell of the overview has, counted once for each mask.

        Shapes:  -> (g_rows, g_cols), int64
        """
        if id(mask) not in self._counts:
            steps = pooling_step(mask.query_len), pooling_step(mask.key_len)
            self._counts[id(mask)] = (mask, mask.cell_counts(*steps))
        return self._counts[id(mask)][1]


def blockwise_attention(inputs: AttentionInputs, workspace: Workspace | None = None) -> AttentionSummary:
    """Attend, block of rows by block of rows.

    Shapes:  see AttentionInputs and AttentionSummary
    Values:  output equals weighted_sum(attention_weights(…)) up to rounding
    Source:  Vaswani et al. 2017, eq. 1; blocks of rows as in Rabe and Staats 2021, but with all keys of a row together
    """
    workspace = workspace or Workspace()
    n_heads = inputs.query.shape[0]
    summary = _empty_summary(inputs)
    key = pad(inputs.key, (0, 0, 0, -inputs.key.shape[1] % CHUNK))
    value = pad(inputs.value, (0, 0, 0, -inputs.value.shape[1] % CHUNK))
    for block in workspace.blocks(inputs.mask, rows_per_block(inputs)):
        shape = (n_heads, block.rows[1] - block.rows[0], block.cols[1] - block.cols[0])
        _attend_block(inputs, key, value, block, workspace.buffers(shape, inputs.query), summary)
    summary.overview_mean.div_(workspace.cell_counts(inputs.mask).clamp(min=1))  # sums so far
    return summary


def _attend_block(
    inputs: AttentionInputs,
    key: Tensor,
    value: Tensor,
    block: Block,
    buffers: tuple[Tensor, Tensor],
    summary: AttentionSummary,
) -> None:
    """Compute one block and add it to the summary: scores, softmax, weighted sum, statistics, overview."""
    rows, cols = block.rows, block.cols
    here, keys = slice(*rows), slice(*cols)
    n_kv_heads = key.shape[0]
    scores, weights = buffers  # (n_heads, rows, cols)
    bias = None if inputs.bias is None else inputs.bias.block(rows, cols)
    attention_scores(
        inputs.query[:, here], key[:, keys], inputs.scaling, softcap=inputs.softcap, position_bias=bias, out=scores
    )
    if block.hidden is not None:
        columns, where = block.hidden
        scores[..., columns].masked_fill_(where, MASKED)
    row_max, top_key = _row_max_and_top_key(scores, cols[0], inputs.sink_logits)
    parts = softmax_parts(
        scores, row_max=row_max, sink_logits=inputs.sink_logits, out=weights
    )  # scores − row_max stay in scores
    weights.mul_(reciprocal_row_sum(parts.row_sum)[..., None])

    output = torch.bmm(weights.view(n_kv_heads, -1, weights.shape[-1]), value[:, keys])
    summary.output[:, here] = output.view(*weights.shape[:2], -1)
    _pool_into(summary, weights, rows, cols, inputs)
    found = {
        "row_max": parts.row_max,
        "row_sum": parts.row_sum,
        "top_key": top_key,
        "first": weights[..., 0] if cols[0] == 0 else torch.zeros_like(row_max),
        **(_position_stats(weights, inputs.mask, rows, cols) if inputs.same_sequence else {}),
        "entropy": _entropy(weights, scores, parts.row_sum),  # last: it overwrites the scores
    }
    for name, values in found.items():
        summary.rows[name][:, here] = values


def _row_max_and_top_key(scores: Tensor, first_key: int, sink_logits: Tensor | None) -> tuple[Tensor, Tensor]:
    # torch's argmax over a whole row costs more than the exponentials; the maximum of chunks, then argmax of one chunk,
    # is cheap.
    chunks = scores.unflatten(-1, (-1, CHUNK))  # (n_heads, rows, n_chunks, CHUNK)
    row_max, best = chunks.amax(-1).max(-1)  # both (n_heads, rows)
    index = best[..., None, None].expand(*best.shape, 1, CHUNK)
    inside = chunks.gather(-2, index).squeeze(-2).argmax(-1)
    top_key = torch.where(row_max > MASKED / 2, first_key + best * CHUNK + inside, -1)
    if sink_logits is not None:
        row_max = torch.maximum(row_max, sink_logits[:, None])
    return row_max, top_key


def _position_stats(weights: Tensor, mask: MaskLayout, rows: Span, cols: Span) -> dict[str, Tensor]:
    offset = rows[0] - cols[0]  # column of the block that holds its first row's own position
    query_pos = torch.arange(*rows, device=weights.device)
    key_pos = torch.arange(*cols, device=weights.device)
    if mask.looks_back:  # |i − j| = i − j = (i − middle) + (middle − j): one matrix–vector product, small numbers in it
        middle = (rows[0] + rows[1]) // 2
        column = (middle - key_pos).to(weights.dtype)
        total = torch.mv(weights.view(-1, weights.shape[-1]), column).view(weights.shape[:2])
        distance = total + (query_pos - middle) * weights.sum(-1)
    else:
        distances = (query_pos[:, None] - key_pos).abs().to(weights.dtype)  # (rows, cols)
        distance = torch.stack([torch.linalg.vecdot(head, distances) for head in weights])
    return {
        "distance": distance,
        "self": _diagonal(weights, offset),
        "previous": _diagonal(weights, offset - 1),
    }


def _diagonal(weights: Tensor, offset: int) -> Tensor:
    # weights[h, i, i + offset] for every row i of the block, 0 where that column is outside it
    n_rows = weights.shape[1]
    values = weights.diagonal(offset, dim1=1, dim2=2)
    first = max(0, -offset)  # the first row whose column is not before the block
    return pad(values, (first, n_rows - first - values.shape[-1]))


def _entropy(weights: Tensor, shifted: Tensor, row_sum: Tensor) -> Tensor:
    # −Σ w ln w with ln w = (score − row max) − ln(row sum); `shifted` is overwritten
    log_sum = row_sum.log().masked_fill(row_sum == 0, 0.0)
    return log_sum * weights.sum(-1) - shifted.mul_(weights).sum(-1)


def _pool_into(summary: AttentionSummary, weights: Tensor, rows: Span, cols: Span, inputs: AttentionInputs) -> None:
    # Rows first: that reduces over a long stride, which is fast, and leaves little to do for the columns.
    row_step, col_step = pooling_step(inputs.query.shape[1]), pooling_step(inputs.key.shape[1])
    n_rows = weights.shape[1]
    whole = n_rows // row_step * row_step
    groups = [weights[:, :whole].unflatten(1, (-1, row_step))] if whole else []
    if whole < n_rows:
        groups.append(weights[:, whole:].unsqueeze(1))  # the last rows of all, or a block inside one cell
    row_cell, col_cell = rows[0] // row_step, cols[0] // col_step
    for group in groups:  # (n_heads, cells, rows in a cell, cols)
        largest = into_cells(group.amax(2), 2, cols[0], col_step).amax(-1)  # (n_heads, cells, col cells)
        total = into_cells(group.sum(2), 2, cols[0], col_step).sum(-1)
        here = slice(row_cell, row_cell + group.shape[1])
        there = slice(col_cell, min(col_cell + largest.shape[-1], summary.overview_max.shape[-1]))
        width = there.stop - there.start  # cells beyond it hold nothing but padding
        best = summary.overview_max[:, here, there]
        torch.maximum(best, largest[..., :width], out=best)
        summary.overview_mean[:, here, there] += total[..., :width]
        row_cell += group.shape[1]


def pooling_step(length: int, cells: int = OVERVIEW_CELLS) -> int:
    """How many positions share a cell, so that at most `cells` are needed."""
    return max(1, -(-length // cells))


def rows_per_block(inputs: AttentionInputs) -> int:
    """How many query rows to compute together on this device."""
    n_heads, query_len, _ = inputs.query.shape
    key_len = inputs.key.shape[1]
    if inputs.query.is_cuda:
        free, _total = torch.cuda.mem_get_info(inputs.query.device)
        rows = int(free * SHARE_OF_GPU) // (2 * n_heads * key_len * inputs.query.element_size())
    else:
        rows = min(ROWS_ON_CPU, WEIGHTS_ON_CPU // (n_heads * key_len))
    return max(1, min(rows, query_len))


def _plan_blocks(mask: MaskLayout, rows: int) -> list[Block]:
    padded_len = mask.key_len + -mask.key_len % CHUNK
    blocks = []
    for span in _row_spans(mask.query_len, rows):
        first, stop = mask.key_range(span)
        if first == stop:
            continue  # no query of the block sees a key: output, weights and statistics stay 0
        cols = (first - first % CHUNK, min(stop + -stop % CHUNK, padded_len))
        blocks.append(Block(span, cols, mask.hidden(span, cols)))
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


def _empty_summary(inputs: AttentionInputs) -> AttentionSummary:
    query, value = inputs.query, inputs.value
    n_heads, query_len, _ = query.shape
    key_len = inputs.key.shape[1]
    names = ["row_max", "row_sum", "entropy", "first"] + (
        ["distance", "self", "previous"] if inputs.same_sequence else []
    )
    rows = {name: query.new_zeros(n_heads, query_len) for name in names}
    rows["top_key"] = torch.full((n_heads, query_len), -1, dtype=torch.int64, device=query.device)
    grid = (n_heads, -(-query_len // pooling_step(query_len)), -(-key_len // pooling_step(key_len)))
    return AttentionSummary(
        output=query.new_zeros(n_heads, query_len, value.shape[-1]),
        rows=rows,
        overview_max=query.new_zeros(grid),
        overview_mean=query.new_zeros(grid),
    )
