"""Weights given back from what the pass kept: query, key, and of each row its largest score, its sum and its top key.

    weight = exp(score − row maximum) / row sum

Float32 products of another size than the pass's are some last digits away from its, which beside a score of 34 is 1e-5
of the weight. So the row maximum and the scores of weights that are not small are computed anew in float64: few in a
row, since all sum to 1. What is left is nearly all what the pass itself rounded.

Knows one module, not where it is stored. Tensors are sliced before any arithmetic, so that of a stored one only that is
read which a window needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from models.attention import SoftmaxParts, attention_scores, mask_scores, row_sum_about, softmax_parts
from models.masks import BiasLayout, MaskLayout, index_of, positions
from models.protocol import Rows, Span

SMALL = 1 / 32  # 1e-5 of a weight up to here is less than 4e-7

EXACT_AT_ONCE = 50_000  # pairs of a query and a key in memory together, 100 MB in float64 at 128 numbers a head


@dataclass(frozen=True)
class KeptModule:
    """What is kept of one module.

    Shapes:  query (n_heads, query_len, d_head), key (n_kv_heads, key_len, d_head); row_max, row_sum, top_key (n_heads,
             query_len), top_key −1 for a row without keys; sink_logits (n_heads)
    """

    query: Tensor
    key: Tensor
    row_max: Tensor
    row_sum: Tensor
    top_key: Tensor
    scaling: float
    softcap: float | None
    mask: MaskLayout
    bias: BiasLayout | None
    sink_logits: Tensor | None


def read_weights(kept: KeptModule, heads: Span, rows: Rows, cols: Rows) -> Tensor:
    """Give back the weights of neighbouring heads; rows and columns are each a span or a list.

    Shapes:  -> (heads, rows, cols), in the dtype of the query
    Values:  0 where the mask hides the key
    """
    here = (slice(*heads), index_of(rows))
    head_pos, query_pos = torch.arange(*heads), positions(rows, kept.query.device)
    row_max = _exact_row_max(kept, head_pos, query_pos, kept.top_key[here])
    row_sum = row_sum_about(row_max, kept.row_max[here], kept.row_sum[here])  # of the whole row, not of some columns

    scores = mask_scores(_scores(kept, heads, rows, cols), kept.mask.visible(rows, cols))
    dtype = scores.dtype
    weights = _weights(scores, row_max.to(dtype), row_sum.to(dtype))
    places, key_pos = (weights > SMALL).nonzero(), positions(cols, scores.device)
    for start in range(0, len(places), EXACT_AT_ONCE):
        head, row, col = places[start : start + EXACT_AT_ONCE].unbind(-1)
        exact = _exact_scores(kept, head_pos[head], query_pos[row], key_pos[col])
        weights[head, row, col] = _weights(exact[:, None], row_max[head, row], row_sum[head, row])[:, 0].to(dtype)
    return weights


def _weights(scores: Tensor, row_max: Tensor, row_sum: Tensor) -> Tensor:
    exponentials = softmax_parts(scores, row_max=row_max).exponentials
    return SoftmaxParts(exponentials, row_max, row_sum).weights()


def _scores(kept: KeptModule, heads: Span, rows: Rows, cols: Rows) -> Tensor:
    # -> (heads, rows, cols)
    kv_heads = torch.arange(*heads) // _group(kept)
    first = int(kv_heads[0])
    key = kept.key[first : int(kv_heads[-1]) + 1, index_of(cols)]
    if heads[0] % _group(kept) or heads[1] % _group(kept):  # part of a group: its key once for each query head
        key = key[kv_heads - first]
    bias = None if kept.bias is None else kept.bias.block(rows, cols)
    if bias is not None and len(bias) > 1:
        bias = bias[slice(*heads)]
    query = kept.query[slice(*heads), index_of(rows)]
    return attention_scores(query, key, kept.scaling, softcap=kept.softcap, position_bias=bias)


def _exact_row_max(kept: KeptModule, head_pos: Tensor, query_pos: Tensor, top_key: Tensor) -> Tensor:
    # -> (heads, rows), float64: the score of each row's top key, or the sink where that is more; 0 without keys
    head, row = (places.flatten() for places in torch.meshgrid(head_pos, query_pos, indexing="ij"))
    row_max = _exact_scores(kept, head, row, top_key.flatten().clamp(min=0)).view(top_key.shape)
    if kept.sink_logits is not None:
        row_max = torch.maximum(row_max, kept.sink_logits[head_pos, None])
    return row_max.masked_fill(top_key < 0, 0.0)


def _exact_scores(kept: KeptModule, head: Tensor, query_pos: Tensor, key_pos: Tensor) -> Tensor:
    # (n) each -> (n), float64: each query beside its one key, a head of its own to `attention_scores`
    query = kept.query[head, query_pos][:, None].double()
    key = kept.key[head // _group(kept), key_pos][:, None].double()
    bias = None if kept.bias is None else kept.bias.at(head, query_pos, key_pos)[:, None, None]
    return attention_scores(query, key, kept.scaling, softcap=kept.softcap, position_bias=bias)[:, 0, 0]


def _group(kept: KeptModule) -> int:
    return len(kept.query) // len(kept.key)
