"""Weights read back beside large scores: as near to the true ones as float32 scores let the pass be."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models import read_back as module
from models.attention import attention_scores, attention_weights, causal_mask, sliding_window_mask
from models.blockwise import AttentionInputs, blockwise_attention
from models.capture import Capture
from models.capture_builder import CaptureBuilder
from models.errors import RangeError
from models.masks import BiasLayout, MaskLayout

SITE, HEADS, D_HEAD = "decoder.self", 4, 32
SCALE = 4.0  # of the entries of query and key: the largest scores are 60 to 80
HALF_A_DIGIT = 64 * 2**-24  # of a float32 score from 64 to 128; read back in float32 it would be up to twice as much


def captured(n: int, bias: Tensor | None = None, sinks: Tensor | None = None) -> tuple[Capture, Tensor]:
    """A capture of peaked heads, and their weights by float64."""
    torch.manual_seed(n)
    query, key = torch.randn(HEADS, n, D_HEAD) * SCALE, torch.randn(HEADS // 2, n, D_HEAD) * SCALE
    mask, builder = causal_mask(n), CaptureBuilder()
    layout = None if bias is None else BiasLayout.from_bias(bias)
    inputs = AttentionInputs(query, key, key, D_HEAD**-0.5, MaskLayout.from_mask(mask), bias=layout, sink_logits=sinks)
    builder.add(SITE, 0, inputs, blockwise_attention(inputs))
    scores = attention_scores(query.double(), key.double(), D_HEAD**-0.5, position_bias=bias)
    assert scores.max() > 60
    if sinks is None:
        return builder.build(), attention_weights(scores, mask)
    one_more = sinks.double()[:, None, None].expand(-1, n, 1)
    seen = torch.cat([mask, torch.ones(n, 1, dtype=torch.bool)], 1)
    return builder.build(), attention_weights(torch.cat([scores, one_more], -1), seen)[..., :-1]


@pytest.mark.parametrize("n", [91, 115, 123])
@pytest.mark.parametrize("kind", ["plain", "bias by distance", "any bias", "sinks"])
def test_they_are_the_true_ones_to_half_a_digit_of_the_score(n: int, kind: str) -> None:
    distance = (torch.arange(n)[:, None] - torch.arange(n)).float()
    bias = {"bias by distance": -distance.abs().expand(HEADS, -1, -1) / 8, "any bias": torch.rand(HEADS, n, n)}.get(
        kind
    )
    capture, exact = captured(n, bias, torch.full((HEADS,), 30.0) if kind == "sinks" else None)
    for rows, cols in (((0, n), (0, n)), ((n - 1, n), (0, n)), ((5, 40), (3, 40))):
        for heads in ((0, HEADS), (1, 4)):  # heads share keys by twos
            found = capture.weights(SITE, 0, heads, rows, cols)
            assert float((found - exact[slice(*heads), slice(*rows), slice(*cols)]).abs().max()) <= HALF_A_DIGIT


def test_weights_that_are_not_small_are_exact_however_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 115
    capture, exact = captured(n)
    assert int((exact > module.SMALL).sum()) > 4 * 100  # so they come in several parts
    monkeypatch.setattr(module, "EXACT_AT_ONCE", 100)
    found = capture.weights(SITE, 0, (0, HEADS), (0, n), (0, n))
    assert float((found - exact).abs().max()) <= HALF_A_DIGIT


def test_the_same_entry_is_the_same_in_every_window() -> None:
    n = 115
    capture, _ = captured(n)
    whole = capture.weights(SITE, 0, (0, HEADS), (0, n), (0, n))
    for row in range(0, n, 10):
        alone = capture.weights(SITE, 0, (1, 2), (row, row + 1), (0, n))
        torch.testing.assert_close(alone[0, 0], whole[1, row], rtol=0, atol=4e-7)  # SMALL weights in float32


# ---------------------------------------------------------------------------------------------------- layers together


def mixed(n: int) -> Capture:
    """Nine layers of seven kinds, of which the first, third and last are of one."""
    causal = MaskLayout.from_mask(causal_mask(n))
    near = MaskLayout.from_mask(causal_mask(n) & sliding_window_mask(n, window=9))
    distance = (torch.arange(n)[:, None] - torch.arange(n)).float().abs()
    bias, sinks = BiasLayout.from_bias(-distance.expand(HEADS, -1, -1) / 8), torch.full((HEADS,), 20.0)
    layers: list[tuple[MaskLayout, BiasLayout | None, Tensor | None]]
    layers = [(causal, None, None), (near, None, None), (causal, None, None), (causal, bias, None)]
    layers += [(causal, None, sinks), (causal, None, sinks + 5), *[(causal, None, None)] * 3]
    builder = CaptureBuilder()
    for layer, (mask, of_layer, sink_logits) in enumerate(layers):
        query, key = torch.randn(HEADS, n, D_HEAD) * SCALE, torch.randn(HEADS // 2, n, D_HEAD) * SCALE
        scaling, softcap = D_HEAD**-0.5 * (0.2 if layer == 6 else 1), 9.0 if layer == 7 else None
        inputs = AttentionInputs(query, key, key, scaling, mask, softcap, of_layer, sink_logits)
        builder.add(SITE, layer, inputs, blockwise_attention(inputs))
    return builder.build()


@pytest.mark.parametrize("together", [1, 2 * HEADS * 60 * D_HEAD, 10**9])
@pytest.mark.parametrize("heads", [(0, HEADS), (1, 2), (1, 4)])
def test_layers_together_are_what_each_is_alone(
    heads: tuple[int, int], together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = mixed(70)
    for rows, cols in (((40, 70), (0, 70)), ([69, 12, 40], [*range(69, -1, -2)]), ((5, 6), [5, 2, 4, 1])):
        alone = torch.stack([capture.weights(SITE, layer, heads, rows, cols) for layer in range(9)])
        with monkeypatch.context() as patch:
            patch.setattr(module, "TOGETHER", together)
            some = capture.weights_of_layers(SITE, (1, 9), heads, rows, cols)
        torch.testing.assert_close(some, alone[1:], rtol=0, atol=4e-7)  # SMALL weights in float32
        others = alone[[*range(2, 9), 1]]
        assert bool(((some - others).abs().flatten(1).amax(1) > 1e-3).all())  # every layer has weights of its own


def test_layers_that_are_not_there_are_refused() -> None:
    with pytest.raises(RangeError, match="layers"):
        mixed(20).weights_of_layers(SITE, (3, 10), (0, HEADS), (0, 1), (0, 1))
