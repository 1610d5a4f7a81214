"""Masks and weights worked out by hand, and what wrong shapes get."""

from __future__ import annotations

import pytest
import torch

from models.attention import (
    attention_scores,
    attention_weights,
    causal_mask,
    combine_masks,
    mask_scores,
    padding_mask,
    sliding_window_mask,
    weighted_sum,
)
from models.errors import ConfigError, ShapeError
from models.multi_head import MultiHeadAttention, SelfAttention, merge_heads, split_heads


def rows(mask: torch.Tensor) -> list[str]:
    return ["".join("x" if seen else "." for seen in row) for row in mask.tolist()]


def test_masks_as_pictures() -> None:
    assert rows(causal_mask(3)) == ["x..", "xx.", "xxx"]
    assert rows(causal_mask(2, 4)) == ["xxx.", "xxxx"]  # queries are the last positions of the keys
    assert rows(sliding_window_mask(4, window=2)) == ["xx..", "xxx.", ".xxx", "..xx"]
    both = combine_masks(causal_mask(4), sliding_window_mask(4, window=2), None)
    assert both is not None
    assert rows(both) == ["x...", "xx..", ".xx.", "..xx"]
    assert combine_masks(None, None) is None


def test_padding_and_causal_together() -> None:
    is_token = torch.tensor([[1, 1, 1], [1, 1, 0]])
    mask = combine_masks(padding_mask(is_token), causal_mask(3))
    assert mask is not None
    assert mask.shape == (2, 1, 3, 3)
    assert rows(mask[1, 0]) == ["x..", "xx.", "xx."]


def test_the_example_of_three_words() -> None:
    """Query of one word against three keys, d_head 2: scores 0.82, 0.42, 0.98; weights 0.348, 0.262, 0.390."""
    query = torch.tensor([[[1.0, 0.2]]])
    key = torch.tensor([[[0.8, 0.1], [0.3, 0.6], [0.9, 0.4]]])
    value = torch.tensor([[[0.5, -0.2], [0.2, 0.7], [-0.4, 0.3]]])
    assert attention_scores(query, key, 1.0).flatten().tolist() == pytest.approx([0.82, 0.42, 0.98])
    weights = attention_weights(attention_scores(query, key, 2**-0.5))
    assert weights.flatten().tolist() == pytest.approx([0.348, 0.262, 0.390], abs=5e-4)  # three digits are given
    assert weighted_sum(weights, value).flatten().tolist() == pytest.approx([0.070, 0.231], abs=1e-3)


def test_a_row_without_keys_is_all_zero() -> None:
    mask = torch.tensor([[True, False], [False, False]])
    assert attention_weights(torch.randn(2, 2), mask).tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_large_scores_do_not_overflow() -> None:
    assert attention_weights(torch.tensor([[1e4, 1e4, -1e4]])).tolist() == [[0.5, 0.5, 0.0]]


def test_padding_keeps_each_text_to_itself() -> None:
    attention, x = SelfAttention(8, 4, 4), torch.randn(2, 4, 8)
    mask = combine_masks(causal_mask(4), padding_mask(torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])))
    output, weights = attention(x, mask)
    assert (output.shape, weights.shape) == ((2, 4, 4), (2, 4, 4))
    assert weights[1, :, 2:].count_nonzero() == 0
    assert weights[0, 3, 2:].count_nonzero() == 2


def test_gradients_flow_through_every_option() -> None:
    query, key = torch.randn(1, 2, 3, 4, requires_grad=True), torch.randn(1, 2, 3, 4)
    scores = attention_scores(query, key, 0.5, softcap=2.0, position_bias=torch.randn(2, 3, 3))
    attention_weights(scores, causal_mask(3)).square().sum().backward()
    assert query.grad is not None
    assert query.grad.isfinite().all()
    assert query.grad.count_nonzero() > 0


def test_splitting_and_merging_heads_is_the_identity() -> None:
    x = torch.randn(2, 5, 12)
    assert torch.equal(merge_heads(split_heads(x, 3)), x)
    assert torch.equal(split_heads(x, 3)[:, 1], x[..., 4:8])  # a head is a run of neighbouring numbers


def test_errors_name_what_was_expected_and_given() -> None:
    with pytest.raises(ShapeError, match=r"\(1, 3, 2, 4\)"):
        attention_scores(torch.zeros(1, 3, 2, 4), torch.zeros(1, 2, 2, 4), 1.0)
    with pytest.raises(ShapeError, match=r"\(2, 3\) does not fit scores of shape \(1, 2, 2\)"):
        mask_scores(torch.zeros(1, 2, 2), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ShapeError, match=r"\(2, 1, 1, 4\) does not fit scores of shape \(4, 4\)"):
        mask_scores(torch.zeros(4, 4), padding_mask(torch.ones(2, 4)))  # would make two texts of one
    with pytest.raises(ShapeError, match=r"\(3, 3\) and \(2, 2\) do not fit"):
        combine_masks(causal_mask(3), causal_mask(2))
    with pytest.raises(ConfigError, match=r"float32 or wider .* got torch\.float16"):
        mask_scores(torch.zeros(4, 4).half(), causal_mask(4))
    with pytest.raises(ConfigError, match="at least one head, got n_heads=0"):
        MultiHeadAttention(8, 0)
    with pytest.raises(ShapeError, match=r"True = may attend, got torch\.int64"):
        mask_scores(torch.zeros(1, 2, 2), torch.ones(2, 2, dtype=torch.int64))
    with pytest.raises(ShapeError, match="query_len=3, key_len=2"):
        causal_mask(3, 2)
    with pytest.raises(ConfigError, match="d_model=10, n_heads=3"):
        MultiHeadAttention(10, 3)
    with pytest.raises(ConfigError, match="n_heads=4, n_kv_heads=3"):
        MultiHeadAttention(8, 4, n_kv_heads=3)
    with pytest.raises(ConfigError, match="got 0"):
        sliding_window_mask(3, window=0)
