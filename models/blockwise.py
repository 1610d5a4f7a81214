"""Attention over blocks of query rows: the output, and what is worth knowing of the weights, without keeping them.

A block holds some query rows and all the keys that they may attend to, so its softmax is complete. Its weights exist
for a moment: they give the output (weights · value), the statistics of each row and their share of the pooled overview,
and are overwritten by the next block. Keys that the mask hides from a whole block are never touched. Memory is O(rows
in a block · key_len).

The arithmetic is `models/attention.py`'s. This module knows nothing of models, layers or storage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.attention import LOG2_E, MASKED, attention_scores, reciprocal_row_sum, sink_share, softmax_parts
from models.blocks import CHUNK, Block, Workspace
from models.diagonals import near_keys
from models.head_stats import HeadCollector
from models.head_targets import NEAR, HeadTargets
from models.masks import BiasLayout, MaskLayout
from models.pooling import into_cells, max_of_cells, pooling_step

# Tried: 16 to 256 rows. Fewer lose to call overhead, more fall out of the cache and skip less of a causal mask.
ROWS_ON_CPU = 128
WEIGHTS_ON_CPU = 2_400_000  # weights in a block at most, two buffers of 10 MB in float32
MOST_WEIGHTS = 2**31 - 1  # in a block: places in it are counted in int32
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
    targets: HeadTargets | None = None  # what the figures of heads are about; without it none are taken


@dataclass(frozen=True)
class AttentionSummary:
    """What is left of the weights after the pass.

    Shapes:  output (n_heads, query_len, d_value); rows: each (n_heads, query_len); overviews (n_heads, g_rows, g_cols)
    Values:  rows has row_max, row_sum, entropy (nats), top_key (int64, −1 for a row without keys), first, and, where
             queries and keys are the same positions, distance (mean |query − key| in tokens), self, previous (weights
             on those keys). overview_max: largest weight of the cell, overview_mean: mean over its visible weights; 0
             where all are hidden. figures: see HeadCollector.figures; empty without targets
    """

    output: Tensor
    rows: dict[str, Tensor]
    overview_max: Tensor
    overview_mean: Tensor
    figures: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class _Found:
    """What the blocks write, each its own rows. A block does as few operations as it can; the rest is done once, after.

    Shapes:  as in AttentionSummary; padded_len is key_len rounded up to a multiple of CHUNK
    Values:  rows: row_max, row_sum, top_key, first; score = Σ weight · (score − row max) · log2 e;
             position = Σ weight · (key − middle), or Σ weight · |query − key| where a query sees keys after itself
    near (offsets, n_heads, query_len): weights on the keys around a row's own, empty in cross-attention
    cells_max, cells_sum (n_heads, g_rows, padded_len): over the rows of an overview cell, columns not pooled yet
    """

    output: Tensor
    rows: dict[str, Tensor]
    near: Tensor
    cells_max: Tensor
    cells_sum: Tensor
    heads: HeadCollector | None


def blockwise_attention(inputs: AttentionInputs, workspace: Workspace | None = None) -> AttentionSummary:
    """Attend, block of rows by block of rows.

    Shapes:  see AttentionInputs and AttentionSummary
    Values:  output equals weighted_sum(attention_weights(…)) up to rounding
    Source:  Vaswani et al. 2017, eq. 1; blocks of rows as in Rabe and Staats 2021, but with all keys of a row together
    """
    workspace = workspace or Workspace()
    pieces = _pieces_per_head(inputs)
    key, value = (
        pad(tensor, (0, 0, 0, -tensor.shape[1] % CHUNK)).repeat_interleave(pieces, 0)
        for tensor in (inputs.key, inputs.value)
    )
    found = _nothing_yet(inputs, key.shape[1], workspace)

    for block in workspace.blocks(inputs.mask, rows_per_block(inputs)):
        _attend_block(inputs, key, value, block, workspace, found)
    return _summary(inputs, found, workspace)


def _attend_block(
    inputs: AttentionInputs, key: Tensor, value: Tensor, block: Block, workspace: Workspace, found: _Found
) -> None:
    """Compute one block: scores, softmax, weighted sum, statistics, pooled rows."""
    rows, cols = block.rows, block.cols
    here, keys = slice(*rows), slice(*cols)
    shape = (inputs.query.shape[0], rows[1] - rows[0], cols[1] - cols[0])
    # both are (n_heads, rows, cols)
    scores, weights = (workspace.buffer(name, shape, inputs.query) for name in ("scores", "weights"))
    bias = None if inputs.bias is None else inputs.bias.block(rows, cols)
    pieces = key.shape[0] // inputs.key.shape[0]
    if shape[1] % pieces:
        key, value, pieces = key[::pieces], value[::pieces], 1
    attention_scores(
        inputs.query[:, here].reshape(shape[0] * pieces, -1, inputs.query.shape[2]),
        key[:, keys],
        inputs.scaling,
        softcap=inputs.softcap,
        position_bias=bias,
        out=scores.view(shape[0] * pieces, -1, shape[2]),
    )
    if block.hidden is not None:
        columns, additive = block.hidden
        scores[..., columns] += additive  # quicker than filling; a score beside MASKED is lost in rounding
    row_max, found.rows["top_key"][:, here] = _row_max_and_top_key(scores, cols[0], inputs.sink_logits)
    # (scores − row_max) · log2 e stay in scores
    parts = softmax_parts(scores, row_max=row_max, sink_logits=inputs.sink_logits, out=weights)
    weights.mul_(reciprocal_row_sum(parts.row_sum)[..., None])

    output = torch.bmm(weights.view(key.shape[0], -1, shape[2]), value[:, keys])
    found.output[:, here] = output.view(*shape[:2], -1)
    found.rows["row_max"][:, here] = parts.row_max
    found.rows["row_sum"][:, here] = parts.row_sum
    found.rows["score"][:, here] = scores.mul_(weights).sum(-1)  # from here on `scores` is free
    if cols[0] == 0:
        found.rows["first"][:, here] = weights[..., 0]
    if inputs.same_sequence:
        found.near[..., here] = near_keys(weights, rows[0] - cols[0], NEAR, looks_back=inputs.mask.looks_back)
        _note_positions(weights, scores, inputs.mask.looks_back, block, found)
    _note_largest(weights, block, found)
    factors = None
    if found.heads is not None:
        total = None
        if inputs.sink_logits is not None:
            total = 1.0 - sink_share(inputs.sink_logits, parts.row_max, parts.row_sum)
        factors = found.heads.begin_block(weights, found.rows["first"][:, here], block, total)
    sums = _sum_rows(weights, block, factors, found)
    if found.heads is not None and factors is not None:
        found.heads.add(weights, scores, block, factors, sums)


def _pieces_per_head(inputs: AttentionInputs) -> int:
    # The products run over the key heads, each on one thread: three heads on two threads leave one waiting. So each
    # head's rows are cut into as many pieces as give every thread the same number of products.
    if inputs.query.is_cuda or inputs.bias is not None:
        return 1
    threads = torch.get_num_threads()
    return threads // math.gcd(inputs.key.shape[0], threads)


def _row_max_and_top_key(scores: Tensor, first_key: int, sink_logits: Tensor | None) -> tuple[Tensor, Tensor]:
    # torch's argmax over a whole row costs more than the exponentials; the maximum of chunks, then argmax of one chunk,
    # is cheap.
    n_heads, n_rows, n_cols = scores.shape
    n_chunks = n_cols // CHUNK
    row_max, best = scores.view(n_heads, n_rows, n_chunks, CHUNK).amax(-1).max(-1)  # both (n_heads, rows)
    chunk_of_row = torch.arange(0, n_heads * n_rows * n_chunks, n_chunks, device=scores.device) + best.view(-1)
    inside = scores.view(-1, CHUNK).index_select(0, chunk_of_row).argmax(-1)
    top_key = inside.view(n_heads, n_rows).add_(best, alpha=CHUNK).add_(first_key)
    top_key.masked_fill_(row_max <= MASKED / 2, -1)
    if sink_logits is not None:
        row_max = torch.maximum(row_max, sink_logits[:, None])
    return row_max, top_key


def _note_positions(weights: Tensor, scratch: Tensor, looks_back: bool, block: Block, found: _Found) -> None:
    # the sum that gives a row's mean distance; `scratch` is overwritten
    (first_row, stop_row), cols = block.rows, block.cols
    here = slice(first_row, stop_row)
    key_pos = torch.arange(*cols, dtype=weights.dtype, device=weights.device)
    # |i − j| = i − j: one matrix–vector product, with positions counted from the middle to keep them small
    if looks_back:
        total = torch.mv(weights.view(-1, weights.shape[2]), key_pos.sub_(found.output.shape[1] // 2))
        found.rows["position"][:, here] = total.view(weights.shape[:2])
    else:
        query_pos = torch.arange(first_row, stop_row, dtype=weights.dtype, device=weights.device)
        distances = (query_pos[:, None] - key_pos).abs_()  # (rows, cols)
        found.rows["position"][:, here] = torch.mul(weights, distances, out=scratch).sum(-1)


def _note_largest(weights: Tensor, block: Block, found: _Found) -> None:
    # Rows first: that reduces over a long stride, which is fast, and leaves little to do for the columns.
    row_step, keys = pooling_step(found.output.shape[1]), slice(*block.cols)
    n_rows, cell = weights.shape[1], block.cells[0]
    whole = n_rows // row_step * row_step
    if whole:
        groups = weights[:, :whole].unflatten(1, (-1, row_step))  # (n_heads, cells, row_step, cols)
        torch.amax(groups, 2, out=found.cells_max[:, cell : cell + groups.shape[1], keys])
    if whole < n_rows:  # the last rows of all, or one of several blocks inside one cell
        best = found.cells_max[:, cell + whole // row_step, keys]
        torch.maximum(best, weights[:, whole:].amax(1), out=best)


def _sum_rows(weights: Tensor, block: Block, factors: Tensor | None, found: _Found) -> Tensor:
    """Sum over rows, for the overview's cells and with whatever factors: a single product, which reads the block once.

    Shapes:  weights (n_heads, rows, cols), factors (n_heads, n, rows) -> (n_heads, n, cols)
    """
    in_cell = block.in_cell.to(weights.dtype).expand(len(weights), -1, -1)
    sums = torch.bmm(in_cell if factors is None else torch.cat([in_cell, factors], 1), weights)
    n_cells = in_cell.shape[1]
    found.cells_sum[:, slice(*block.cells), slice(*block.cols)] += sums[:, :n_cells]
    return sums[:, n_cells:]


def _summary(inputs: AttentionInputs, found: _Found, workspace: Workspace) -> AttentionSummary:
    rows = found.rows
    without_keys = rows["top_key"] < 0  # in skipped blocks too: row maximum and sum are 0, whatever a sink would add
    rows["row_max"].masked_fill_(without_keys, 0.0)
    rows["row_sum"].masked_fill_(without_keys, 0.0)
    total = torch.ones_like(rows["row_sum"])  # of a row's weights: 1 less what a sink takes, 0 without keys
    if inputs.sink_logits is not None:
        total -= sink_share(inputs.sink_logits, rows["row_max"], rows["row_sum"])
    total.masked_fill_(without_keys, 0.0)
    # −Σ w ln w, with ln w = (score − row max) − ln(row sum)
    log_sum = rows["row_sum"].log().masked_fill_(without_keys, 0.0)
    kept = {name: rows[name] for name in ("row_max", "row_sum", "top_key", "first")}
    kept["entropy"] = log_sum * total - rows["score"] / LOG2_E
    if inputs.same_sequence:
        kept |= {
            "self": found.near[NEAR].clone(),
            "previous": found.near[NEAR - 1].clone(),
            "distance": rows["position"],
        }
        if inputs.mask.looks_back:
            n = inputs.query.shape[1]
            query_pos = torch.arange(n, dtype=total.dtype, device=total.device) - n // 2
            kept["distance"] = query_pos * total - rows["position"]
    col_step, key_len = pooling_step(inputs.key.shape[1]), inputs.key.shape[1]
    largest, totals = (cells[..., :key_len] for cells in (found.cells_max, found.cells_sum))
    return AttentionSummary(
        output=found.output,
        rows=kept,
        overview_max=max_of_cells(largest, col_step),
        overview_mean=into_cells(totals, 2, 0, col_step).sum(-1) / workspace.cell_counts(inputs.mask).clamp(min=1),
        figures={} if found.heads is None else found.heads.figures(kept["entropy"], kept["first"], found.near),
    )


def rows_per_block(inputs: AttentionInputs) -> int:
    """How many query rows to compute together on this device."""
    n_heads, query_len, _ = inputs.query.shape
    key_len = inputs.key.shape[1]
    if inputs.query.is_cuda:
        free, _total = torch.cuda.mem_get_info(inputs.query.device)
        a_row = n_heads * _padded(key_len)  # weights that a row takes in a block, whose columns are filled up
        rows = int(free * SHARE_OF_GPU) // (2 * a_row * inputs.query.element_size())
        rows = min(rows, MOST_WEIGHTS // a_row)
        rows = 1 << max(rows, 1).bit_length() - 1  # a power of two: the same blocks in every layer
    else:
        rows = min(ROWS_ON_CPU, WEIGHTS_ON_CPU // (n_heads * key_len))
    return max(1, min(rows, query_len))


def _padded(key_len: int) -> int:
    return key_len + -key_len % CHUNK


def _nothing_yet(inputs: AttentionInputs, padded_len: int, workspace: Workspace) -> _Found:
    query = inputs.query
    n_heads, query_len, _ = query.shape
    names = ("row_max", "row_sum", "score", "position", "first")
    rows = {name: query.new_zeros(n_heads, query_len) for name in names}
    rows["top_key"] = torch.full((n_heads, query_len), -1, dtype=torch.int64, device=query.device)
    n_near = (NEAR + 1 if inputs.mask.looks_back else 2 * NEAR + 1) if inputs.same_sequence else 0
    cells = (n_heads, -(-query_len // pooling_step(query_len)), padded_len)
    return _Found(
        output=query.new_zeros(n_heads, query_len, inputs.value.shape[-1]),
        rows=rows,
        near=query.new_zeros(n_near, n_heads, query_len),
        cells_max=workspace.zeros("cells_max", cells, query),
        cells_sum=workspace.zeros("cells_sum", cells, query),
        heads=None if inputs.targets is None else HeadCollector(inputs.targets, n_heads, query),
    )
