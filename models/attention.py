"""Attention from scratch: masks, scaled scores, the softmax, the weighted sum.

    scores  = query · keyᵀ · scaling             attention_scores
    weights = exp(scores − row max) / row sum    softmax_parts, attention_weights: the project's only softmax over
    scores
    output  = weights · value                    weighted_sum

Conventions, here and everywhere in the project:

- Axes. query (…, n_heads, query_len, d_head), key (…, n_kv_heads, key_len, d_head), value (…, n_kv_heads, key_len,
  d_value); scores and weights (…, n_heads, query_len, key_len): a row is a query, a column is a key.
- Grouped heads. n_heads is a multiple of n_kv_heads; query head h reads key/value head h // (n_heads / n_kv_heads).
- Masks are boolean and True = may attend. A row without any key to attend to is all 0: never NaN, never uniform.

The `out` arguments are for `models/blockwise.py`, which reuses its buffers; a reader can pass over them.

The modules made of these functions are in `models/multi_head.py`. This one knows nothing of them, of blocks of rows
(`models/blockwise.py`) or of what is kept (`models/capture.py`). There is no fused kernel in it; the tests compare it
with `torch.nn.functional.scaled_dot_product_attention` and `torch.nn.MultiheadAttention`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from models.errors import ConfigError, ShapeError

# The score of a key that may not be attended to. Finite, so that 0 · MASKED is 0 (entropy needs weight · score), and so
# low that its exponential is exactly 0 in float32 and float64.
MASKED = -1e30
LOG2_E = math.log2(math.e)
SMALLEST_ROW_SUM = 1e-30  # row sums are at least 1, the exponential of the row maximum, or 0


# ---------------------------------------------------------------------------------------------------------------- masks


def causal_mask(query_len: int, key_len: int | None = None, *, device: torch.device | None = None) -> Tensor:
    """Let each query attend to the keys up to its own position; queries are the last positions of the keys.

    Shapes:  (query_len, key_len), boolean; key_len defaults to query_len
    Values:  True where key ≤ query + (key_len − query_len)
    Raises:  ShapeError if there are more queries than keys
    Source:  Vaswani et al. 2017, §3.2.3
    """
    key_len = query_len if key_len is None else key_len
    if query_len > key_len:
        raise ShapeError(f"a causal mask needs query_len ≤ key_len, got query_len={query_len}, key_len={key_len}")
    return torch.ones(query_len, key_len, dtype=torch.bool, device=device).tril(key_len - query_len)


def sliding_window_mask(
    query_len: int, key_len: int | None = None, *, window: int, device: torch.device | None = None
) -> Tensor:
    """Let each query attend to the keys less than `window` positions away, on both sides.

    Shapes:  (query_len, key_len), boolean; key_len defaults to query_len
    Values:  True where |query − key| < window, so with a causal mask itself and window − 1 keys before it
    Raises:  ConfigError if window < 1
    Source:  Beltagy et al. 2020 (Longformer); Jiang et al. 2023 (Mistral 7B)
    """
    if window < 1:
        raise ConfigError(f"window must be at least 1, got {window}")
    key_len = query_len if key_len is None else key_len
    query_pos = torch.arange(query_len, device=device)[:, None] + (key_len - query_len)
    key_pos = torch.arange(key_len, device=device)[None, :]
    return (query_pos - key_pos).abs() < window


def padding_mask(is_token: Tensor) -> Tensor:
    """Let every query attend to the real tokens of its own text, not to the padding.

    Shapes:  is_token (batch, key_len), boolean or 0/1 -> (batch, 1, 1, key_len), boolean
    Values:  True where is_token is true
    Raises:  ShapeError if is_token is not 2-D
    """
    if is_token.dim() != 2:
        raise ShapeError(f"is_token must be (batch, key_len), got {tuple(is_token.shape)}")
    return is_token.bool()[:, None, None, :]  # (batch, 1, 1, key_len): the same for all heads and queries


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """Let a query attend where every mask lets it; None stands for a mask that hides nothing.

    Shapes:  broadcastable to (…, query_len, key_len), boolean -> their broadcast shape, or None if all are None
    Raises:  ShapeError if a mask is not boolean (0/1 and additive masks have another polarity) or they do not fit
    """
    combined: Tensor | None = None
    for mask in masks:
        if mask is None:
            continue
        if mask.dtype != torch.bool:
            raise ShapeError(f"masks are boolean with True = may attend, got {mask.dtype}")
        if combined is not None and _broadcast(combined, mask) is None:
            raise ShapeError(f"masks of shapes {tuple(combined.shape)} and {tuple(mask.shape)} do not fit together")
        combined = mask if combined is None else combined & mask
    return combined


def _broadcast(*tensors: Tensor) -> torch.Size | None:
    # the shape that the tensors have together, None if they do not fit
    try:
        shape: torch.Size = torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except RuntimeError:
        return None
    return shape


# ---------------------------------------------------------------------------------------------- scores, weights, output


def attention_scores(
    query: Tensor,
    key: Tensor,
    scaling: float,
    *,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compare each query with each key: scaled dot products, before the mask and the softmax.

    Shapes:  query (…, n_heads, query_len, d_head), key (…, n_kv_heads, key_len, d_head) -> (…, n_heads, query_len,
             key_len); position_bias broadcastable to the result; out: where to write it, contiguous, only for 3-D query
             and key
    Values:  query · key · scaling, then softcap · tanh(score / softcap), then + position_bias, each if given
    Raises:  ShapeError if d_head differs or n_heads is not a multiple of n_kv_heads
    Source:  Vaswani et al. 2017, eq. 1; Shazeer 2019 and Ainslie et al. 2023 (shared key heads); Gemma 2 report, §2
             (soft cap); Raffel et al. 2020, §2.1 (position bias)
    """
    n_heads, query_len, d_head = query.shape[-3:]
    n_kv_heads, key_len, key_d_head = key.shape[-3:]
    if d_head != key_d_head or n_heads % n_kv_heads:
        raise ShapeError(
            "query (…, n_heads, query_len, d_head) and key (…, n_kv_heads, key_len, d_head) need the same d_head "
            f"and n_heads a multiple of n_kv_heads, got {tuple(query.shape)} and {tuple(key.shape)}"
        )
    batch = query.shape[:-3]
    # Heads that share a key head are stacked as more rows: (…, n_kv_heads, group · query_len, d_head or key_len)
    stacked = (query * scaling).reshape(*batch, n_kv_heads, -1, d_head)
    stacked_out = None if out is None else out.view(n_kv_heads, -1, key_len)
    scores = torch.matmul(stacked, key.transpose(-1, -2), out=stacked_out)
    scores = scores.view(*batch, n_heads, query_len, key_len)
    if softcap is not None:
        scores = torch.mul(torch.tanh(scores / softcap), softcap, out=None if out is None else scores)
    if position_bias is not None:
        scores = torch.add(scores, position_bias, out=None if out is None else scores)
    return scores


def mask_scores(scores: Tensor, attn_mask: Tensor | None) -> Tensor:
    """Give the keys that may not be attended to a score whose exponential is 0.

    Shapes:  scores (…, query_len, key_len), attn_mask boolean and broadcastable to it -> same as scores
    Values:  MASKED where attn_mask is False, else the score
    Raises:  ShapeError if the mask is not boolean or does not broadcast to the scores, ConfigError for float16 scores
    """
    if attn_mask is None:
        return scores
    if attn_mask.dtype != torch.bool:
        raise ShapeError(f"masks are boolean with True = may attend, got {attn_mask.dtype}")
    if torch.finfo(scores.dtype).min > MASKED:
        raise ConfigError(f"scores must be float32 or wider (bfloat16 at least), got {scores.dtype}")
    fits = attn_mask.shape == scores.shape[-attn_mask.dim() :]  # the common case, told without torch's slow way
    if not fits and _broadcast(attn_mask, scores) != scores.shape:  # a larger mask would make more scores
        raise ShapeError(f"mask of shape {tuple(attn_mask.shape)} does not fit scores of shape {tuple(scores.shape)}")
    return scores.masked_fill(~attn_mask, MASKED)


class SoftmaxParts(NamedTuple):
    """A softmax before its division: weights = exponentials / row_sum. See `softmax_parts` for the shapes."""

    exponentials: Tensor
    row_max: Tensor
    row_sum: Tensor

    def weights(self) -> Tensor:
        """Divide; rows without a visible key stay 0.

        Shapes:  -> (…, n_heads, query_len, key_len)
        """
        return self.exponentials * reciprocal_row_sum(self.row_sum)[..., None]


def softmax_parts(
    scores: Tensor,
    *,
    row_max: Tensor | None = None,
    sink_logits: Tensor | None = None,
    out: Tensor | None = None,
) -> SoftmaxParts:
    """Turn masked scores into exponentials, row maximum and row sum: the softmax of the whole project, undivided.

    Shapes:  scores (…, n_heads, query_len, key_len) -> exponentials of the same shape, row_max and row_sum
             (…, n_heads, query_len); sink_logits (n_heads); out: where the exponentials go. With out, `scores` is left
             holding (scores − row_max) · log2 e, which the entropy needs
    Values:  exponentials = exp(scores − row_max), row_max is the largest visible score or sink logit, 0 for a row
             without any; row_sum counts the sink, so the weights of a head with a sink sum to less than 1
    Args:    row_max skips the search for the maximum, for callers that know it
    Source:  Vaswani et al. 2017, eq. 1; sinks: Xiao et al. 2023, §3.3, in the form of GPT-OSS
    """
    if row_max is None:
        row_max = scores.amax(-1)
        if sink_logits is not None:
            row_max = torch.maximum(row_max, sink_logits[:, None])
    row_max = row_max.masked_fill(
        row_max <= MASKED / 2, 0.0
    )  # no visible key: exp(MASKED − 0) = 0, where MASKED − MASKED is 1
    # exp(x) = 2^(x · log2 e): on the CPU torch's exp2 takes half the time of its exp. The factor comes along with the
    # subtraction, in one operation: scores · log2 e − row_max · log2 e.
    shift = (row_max * -LOG2_E)[..., None]
    shifted = torch.add(shift, scores, alpha=LOG2_E, out=None if out is None else scores)
    exponentials = torch.exp2(shifted, out=out)
    row_sum = exponentials.sum(-1)
    if sink_logits is not None:
        row_sum = row_sum + (sink_logits[:, None] - row_max).exp()
    return SoftmaxParts(exponentials, row_max, row_sum)


def row_sum_about(exact_max: Tensor, row_max: Tensor, row_sum: Tensor) -> Tensor:
    """Give the row sum that softmax_parts would have found for a more exact row maximum than its own.

    Shapes:  any, all alike -> same, float64
    Values:  row_sum = c · (1 + rest): c is what softmax_parts makes of the maximum itself, 1 but for the rounding of
             row_max · log2 e, and rest that of all others -> 1 + rest · exp(row_max − exact_max)
    """
    rounded, shift = (
        softmax_parts(scores[..., None], row_max=about).exponentials[..., 0]
        for scores, about in ((row_max, row_max), (row_max.double(), exact_max))
    )
    return 1 + (row_sum.double() / rounded - 1) * shift


def reciprocal_row_sum(row_sum: Tensor) -> Tensor:
    """Divide 1 by the row sum; a row without a visible key, whose exponentials are all 0, gets a finite number.

    Shapes:  any -> same
    """
    return row_sum.clamp_min(SMALLEST_ROW_SUM).reciprocal()


def sink_share(sink_logits: Tensor, row_max: Tensor, row_sum: Tensor) -> Tensor:
    """Give the share of each row that goes to its head's sink, which is one key for every row.

    Shapes:  sink_logits (n_heads), row_max and row_sum (n_heads, query_len) -> (n_heads, query_len)
    Source:  the sinks of GPT-OSS, as in softmax_parts
    """
    sinks = sink_logits[:, None, None].expand(*row_max.shape, 1)
    return softmax_parts(sinks, row_max=row_max).exponentials[..., 0] * reciprocal_row_sum(row_sum)


def attention_weights(scores: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Turn scores into probabilities over keys, one row per query.

    Shapes:  scores (…, query_len, key_len), attn_mask boolean, broadcastable to it -> same as scores
    Values:  each row sums to 1, or is all 0 if every key is masked
    Raises:  ShapeError if the mask does not fit
    Source:  Vaswani et al. 2017, eq. 1
    """
    return softmax_parts(mask_scores(scores, attn_mask)).weights()


def weighted_sum(weights: Tensor, value: Tensor) -> Tensor:
    """Average the values with the weights: what each query takes away.

    Shapes:  weights (…, n_heads, query_len, key_len), value (…, n_kv_heads, key_len, d_value)
             -> (…, n_heads, query_len, d_value)
    Raises:  ShapeError if key_len differs or n_heads is not a multiple of n_kv_heads
    Source:  Vaswani et al. 2017, eq. 1
    """
    n_heads, query_len, key_len = weights.shape[-3:]
    n_kv_heads, value_len, d_value = value.shape[-3:]
    if key_len != value_len or n_heads % n_kv_heads:
        raise ShapeError(
            "weights (…, n_heads, query_len, key_len) and value (…, n_kv_heads, key_len, d_value) need the same "
            f"key_len and n_heads a multiple of n_kv_heads, got {tuple(weights.shape)} and {tuple(value.shape)}"
        )
    batch = weights.shape[:-3]
    stacked = weights.reshape(*batch, n_kv_heads, -1, key_len)  # heads that share a value head become more rows
    return (stacked @ value).view(*batch, n_heads, query_len, d_value)
