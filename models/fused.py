"""Torch's fused attention behind the same call as `explicit_attention`: for training, and to compare with.

It gives the same output without ever forming the weights, so it has none to show. No picture comes from here.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from models.attention import mask_scores
from models.multi_head import MultiHeadAttention


def fused_attention(
    module: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    position_bias: Tensor | None,
) -> tuple[Tensor, None]:
    """Attend with torch's own kernel.

    Shapes:  as for `explicit_attention` -> output (batch, n_heads, query_len, d_head), no weights
    Values:  a row without a key to attend to is 0, as everywhere here
    Raises:  ShapeError if the mask does not fit
    Source:  Dao et al. 2022 (FlashAttention), in torch's implementation
    """
    if attn_mask is not None:  # the scores' shape without the scores: nothing is computed on this device
        mask_scores(torch.empty(*query.shape[:-1], key.shape[-2], device="meta"), attn_mask.to("meta"))
    mask = attn_mask
    if position_bias is not None:
        mask = position_bias if mask is None else position_bias.masked_fill(~mask, float("-inf"))
    output = scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=module.dropout if module.training else 0.0,
        scale=module.scaling,
        enable_gqa=module.n_kv_heads != module.n_heads,
    )
    if attn_mask is not None:
        output = output.masked_fill(~attn_mask.any(-1, keepdim=True), 0.0)
    return output, None
