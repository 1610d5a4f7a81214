"""The readable attention against torch's: `scaled_dot_product_attention` and `nn.MultiheadAttention`."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from models.attention import (
    attention_scores,
    attention_weights,
    causal_mask,
    padding_mask,
    sliding_window_mask,
    weighted_sum,
)
from models.multi_head import MultiHeadAttention, SelfAttention

EXACT = 1e-12  # float64, the same formula in another order
MASKS = {
    "none": None,
    "causal": causal_mask(9),
    "window": causal_mask(9) & sliding_window_mask(9, window=3),
    "padding": padding_mask(torch.tensor([[1] * 9, [1] * 6 + [0] * 3])),
}


def doubles(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("n_kv_heads", [6, 2, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_output_is_that_of_torchs_kernel(mask: str, n_kv_heads: int) -> None:
    query, key, value = doubles(2, 6, 9, 8), doubles(2, n_kv_heads, 9, 8), doubles(2, n_kv_heads, 9, 5)
    ours = weighted_sum(attention_weights(attention_scores(query, key, 0.7), MASKS[mask]), value)
    theirs = scaled_dot_product_attention(query, key, value, attn_mask=MASKS[mask], scale=0.7, enable_gqa=True)
    assert float((ours - theirs).abs().max()) <= EXACT


@torch.no_grad()
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_attention_is_torchs(cross: bool, masked: bool) -> None:
    theirs = nn.MultiheadAttention(24, 4, batch_first=True, dtype=torch.float64)
    ours = MultiHeadAttention(24, 4).double()
    theirs.in_proj_bias.normal_()
    weights_and_biases = zip(theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True)
    for part, (weight, bias) in zip((ours.query, ours.key, ours.value), weights_and_biases, strict=True):
        part.weight.copy_(weight)
        part.bias.copy_(bias)
    ours.output.load_state_dict(theirs.out_proj.state_dict())
    x = doubles(2, 7, 24)
    source = doubles(2, 11, 24) if cross else x
    mask = causal_mask(7, source.shape[1]) if masked else None
    output, weights = ours(x, source if cross else None, attn_mask=mask)
    expected, expected_weights = theirs(
        x, source, source, attn_mask=None if mask is None else ~mask, average_attn_weights=False
    )
    assert float((output - expected).abs().max()) <= EXACT
    assert float((weights - expected_weights).abs().max()) <= EXACT


@torch.no_grad()
def test_self_attention_with_its_own_d_value_is_torchs_kernel() -> None:
    ours = SelfAttention(16, d_key=5, d_value=3).double()
    x = doubles(2, 6, 16)
    output, weights = ours(x, causal_mask(6))
    theirs = scaled_dot_product_attention(ours.query(x), ours.key(x), ours.value(x), is_causal=True)
    assert output.shape == (2, 6, 3)
    assert weights.shape == (2, 6, 6)
    assert float((output - theirs).abs().max()) <= EXACT


def test_shapes_of_the_articles() -> None:
    output, weights = SelfAttention(16, 16, 16)(torch.randn(2, 5, 16))
    assert (output.shape, weights.shape) == ((2, 5, 16), (2, 5, 5))
    _, weights = MultiHeadAttention(8, 2)(torch.randn(2, 4, 8))
    assert weights.shape == (2, 2, 4, 4)
