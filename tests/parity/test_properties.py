"""What must hold for any numbers: the blockwise pass and the capture against the readable attention, in float64."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad

from models.attention import (
    attention_scores,
    attention_weights,
    causal_mask,
    mask_scores,
    sliding_window_mask,
    softmax_parts,
    weighted_sum,
)
from models.blockwise import AttentionInputs, AttentionSummary, blockwise_attention
from models.capture import Capture
from models.capture_builder import CaptureBuilder
from models.masks import BiasLayout, MaskLayout
from models.pooling import pooling_step

ROUNDING = 1e-10  # float64, the same formula in another order; distances are larger numbers, hence times the length


def mask_of(kind: str, n: int) -> Tensor:
    return {
        "causal": causal_mask(n),
        "causal_window": causal_mask(n) & sliding_window_mask(n, window=5),
        "window": sliding_window_mask(n, window=4),
        "full": torch.ones(n, n, dtype=torch.bool),
        "dense": torch.rand(n, n) < 0.4,  # some rows see nothing
        "left_padded": causal_mask(n) & (torch.arange(n) >= min(3, n - 1)),
    }[kind]


def doubles(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@st.composite
def attention_inputs(draw: st.DrawFn) -> tuple[AttentionInputs, Tensor]:
    n = draw(st.sampled_from([1, 2, 3, 15, 63, 64, 65, 100, 129, 200]))
    n_kv_heads = draw(st.sampled_from([1, 2, 3]))
    n_heads = n_kv_heads * draw(st.sampled_from([1, 2, 3]))
    d_head, d_value = draw(st.sampled_from([(4, 4), (8, 3), (1, 6)]))
    torch.manual_seed(draw(st.integers(0, 2**16)))
    mask = mask_of(draw(st.sampled_from(["causal", "causal_window", "window", "full", "dense", "left_padded"])), n)
    sharpness = draw(st.sampled_from([0.1, 1.0, 30.0]))
    bias = None
    if draw(st.booleans()):
        table = doubles(n_heads, 2 * n - 1)
        distances = torch.arange(n)[None] - torch.arange(n)[:, None] + n - 1
        whole = table[:, distances] if draw(st.booleans()) else doubles(n_heads, n, n)
        bias = BiasLayout.from_bias(whole)
    inputs = AttentionInputs(
        query=doubles(n_heads, n, d_head) * sharpness,
        key=doubles(n_kv_heads, n, d_head),
        value=doubles(n_kv_heads, n, d_value),
        scaling=d_head**-0.5,
        mask=MaskLayout.from_mask(mask),
        softcap=draw(st.sampled_from([None, 2.0])),
        bias=bias,
        sink_logits=doubles(n_heads) if draw(st.booleans()) else None,
    )
    return inputs, mask


def spans(size: int) -> st.SearchStrategy[tuple[int, int]]:
    """Non-empty half-open spans inside 0:size."""
    ends = st.tuples(st.integers(0, size - 1), st.integers(1, size))
    return ends.filter(lambda span: span[0] < span[1])


def readable_weights(inputs: AttentionInputs, mask: Tensor) -> Tensor:
    whole = ((0, inputs.query.shape[1]), (0, inputs.key.shape[1]))
    bias = None if inputs.bias is None else inputs.bias.block(*whole)
    scores = attention_scores(inputs.query, inputs.key, inputs.scaling, softcap=inputs.softcap, position_bias=bias)
    return softmax_parts(mask_scores(scores, mask), sink_logits=inputs.sink_logits).weights()


def capture_of(inputs: AttentionInputs, summary: AttentionSummary) -> Capture:
    builder = CaptureBuilder()
    builder.add("decoder.self", 0, inputs, summary)
    return builder.build()


def assert_close(ours: Tensor, expected: Tensor, bound: float = ROUNDING) -> None:
    assert ours.shape == expected.shape
    assert bool(((ours - expected).abs() <= bound).all())  # holds for nothing at all, fails for NaN


@settings(max_examples=120, deadline=None)
@given(attention_inputs())
def test_blockwise_pass_is_the_readable_attention(drawn: tuple[AttentionInputs, Tensor]) -> None:
    inputs, mask = drawn
    weights, summary = readable_weights(inputs, mask), blockwise_attention(inputs)
    n = len(mask)
    positions = torch.arange(n, dtype=torch.float64)
    sees_any = mask.any(-1)
    assert torch.equal(inputs.mask.visible((0, n), (0, n)), mask)
    assert_close(summary.output, weighted_sum(weights, inputs.value))
    assert_close(summary.rows["entropy"], -torch.xlogy(weights, weights).sum(-1))
    assert_close(summary.rows["distance"], (weights * (positions[:, None] - positions).abs()).sum(-1), ROUNDING * n)
    assert_close(summary.rows["self"], weights.diagonal(dim1=1, dim2=2))
    assert_close(summary.rows["previous"], pad(weights.diagonal(-1, dim1=1, dim2=2), (1, 0)))
    assert_close(summary.rows["first"], weights[..., 0])
    top = weights.gather(-1, summary.rows["top_key"].clamp(min=0)[..., None])[..., 0]
    assert_close(top[:, sees_any], weights.amax(-1)[:, sees_any])
    assert bool((summary.rows["top_key"][:, ~sees_any] == -1).all())


@settings(max_examples=120, deadline=None)
@given(attention_inputs(), st.data())
def test_capture_gives_every_weight_back(drawn: tuple[AttentionInputs, Tensor], data: st.DataObject) -> None:
    inputs, mask = drawn
    weights = readable_weights(inputs, mask)
    n_heads, n, _ = weights.shape
    capture = capture_of(inputs, blockwise_attention(inputs))
    heads, rows, cols = (data.draw(spans(size)) for size in (n_heads, n, n))
    part = capture.weights("decoder.self", 0, heads, rows, cols)
    assert_close(part, weights[slice(*heads), slice(*rows), slice(*cols)])
    assert bool((part[:, ~mask[slice(*rows), slice(*cols)]] == 0).all())


@settings(max_examples=120, deadline=None)
@given(attention_inputs())
def test_overview_is_the_pooled_weights(drawn: tuple[AttentionInputs, Tensor]) -> None:
    inputs, mask = drawn
    weights, summary = readable_weights(inputs, mask), blockwise_attention(inputs)
    step = pooling_step(len(mask))
    grid = -(-len(mask) // step)
    edge = grid * step - len(mask)
    cells = pad(weights, (0, edge, 0, edge)).view(len(weights), grid, step, grid, step)
    counts = pad(mask, (0, edge, 0, edge)).view(grid, step, grid, step).sum((1, 3))
    assert torch.equal(inputs.mask.cell_counts(step, step), counts)
    assert_close(summary.overview_max, cells.amax((2, 4)))
    assert_close(summary.overview_mean, cells.sum((2, 4)) / counts.clamp(min=1))


@settings(max_examples=60, deadline=None)
@given(attention_inputs())
def test_a_later_token_changes_no_earlier_row(drawn: tuple[AttentionInputs, Tensor]) -> None:
    inputs, _ = drawn
    n = inputs.query.shape[1]
    inputs = replace(inputs, mask=MaskLayout.from_mask(causal_mask(n)))
    before = blockwise_attention(inputs).output
    key, value = inputs.key.clone(), inputs.value.clone()
    key[:, -1] += 3.0
    value[:, -1] -= 5.0
    after = blockwise_attention(replace(inputs, key=key, value=value)).output
    assert torch.equal(before[:, :-1], after[:, :-1])


@settings(max_examples=60, deadline=None)
@given(attention_inputs())
def test_without_mask_permuting_the_keys_changes_nothing(drawn: tuple[AttentionInputs, Tensor]) -> None:
    inputs, _ = drawn
    n = inputs.key.shape[1]
    inputs = replace(inputs, mask=MaskLayout.full(n, n), bias=None)
    order = torch.randperm(n)
    permuted = replace(inputs, key=inputs.key[:, order], value=inputs.value[:, order])
    assert_close(blockwise_attention(permuted).output, blockwise_attention(inputs).output)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**16))
def test_rows_sum_to_one_or_are_all_zero(n: int, seed: int) -> None:
    torch.manual_seed(seed)
    mask = torch.rand(n, n) < 0.3
    sums = attention_weights(torch.randn(2, n, n, dtype=torch.float64) * 50, mask).sum(-1)
    assert_close(sums, mask.any(-1).double().expand_as(sums))
