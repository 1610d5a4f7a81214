"""Pairs: every head's weight on them is that of its exact window, with spans, masks, biases and what chance gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from models import pairs as module
from models.attention import attention_scores, attention_weights, causal_mask, sliding_window_mask
from models.blockwise import AttentionInputs, blockwise_attention
from models.capture import Capture
from models.capture_builder import CaptureBuilder
from models.errors import RangeError
from models.masks import BiasLayout, MaskLayout
from models.pairs import Pair, pair_figures, pair_weights, to_digits
from models.protocol import Rows, Span

SITE, LAYERS, HEADS, N, KEYS = "decoder.self", 3, 6, 90, 40
ROUNDING = 2e-6  # the same float32 weights out of another product, summed over up to 30 keys
PAIRS = [Pair((70, 71), (12, 13)), Pair((30, 32), (5, 7)), Pair((40, 60), (0, 30)), Pair((0, 1), (0, 1))]


class Kind(NamedTuple):
    """One kind of attention: its mask, and what else goes into the scores."""

    mask: Callable[[], Tensor]
    softcap: float | None = None
    bias: bool = False
    sinks: bool = False


def random_mask() -> Tensor:
    mask = (torch.rand(N, N) < 0.5) | torch.eye(N, dtype=torch.bool)
    mask[70, 12] = True
    return mask


KINDS = {
    "causal": Kind(lambda: causal_mask(N)),
    "window": Kind(lambda: causal_mask(N) & sliding_window_mask(N, window=64)),
    "encoder": Kind(lambda: torch.ones(N, N, dtype=torch.bool), bias=True),
    "cross": Kind(lambda: torch.ones(N, KEYS, dtype=torch.bool)),
    "dense": Kind(random_mask, bias=True),
    "softcap and sinks": Kind(lambda: causal_mask(N), softcap=5.0, sinks=True),
}


def build(kind: Kind, key_heads: int = 2) -> Capture:
    """A capture of random heads; every layer has a mask of this kind."""
    mask = kind.mask()
    query_len, key_len = mask.shape
    layout, builder = MaskLayout.from_mask(mask), CaptureBuilder()
    far = torch.randn(HEADS, query_len + key_len - 1)
    bias = BiasLayout(query_len, key_len, toeplitz=far) if kind.bias else None
    for layer in range(LAYERS):
        query, key = torch.randn(HEADS, query_len, 8) * 3, torch.randn(key_heads, key_len, 8)
        value = torch.randn(key_heads, key_len, 8)
        sinks = torch.randn(HEADS) if kind.sinks else None
        inputs = AttentionInputs(query, key, value, 8**-0.5, layout, kind.softcap, bias, sinks)
        builder.add(SITE, layer, inputs, blockwise_attention(inputs))
    return builder.build()


def from_windows(capture: Capture, chosen: list[Pair]) -> Tensor:
    """(layers, heads, pairs) out of each head's exact window, pair by pair."""
    return torch.stack(
        [
            torch.stack(
                [capture.weights(SITE, layer, (0, HEADS), q, k).double().sum(-1).mean(-1) for q, k in chosen], -1
            )
            for layer in range(LAYERS)
        ]
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_head_has_the_weight_of_its_window(kind: Kind) -> None:
    capture = build(kind)
    found = pair_weights(capture, SITE, PAIRS)
    seen = ~found.chances.isnan()
    assert bool(seen.any())
    expected = from_windows(capture, PAIRS).masked_fill(~seen[:, None], torch.nan)
    torch.testing.assert_close(found.weights, expected, rtol=0, atol=ROUNDING, equal_nan=True)


def test_a_pair_turned_round_is_seen() -> None:
    capture = build(KINDS["encoder"])
    turned = [Pair(pair.key, pair.query) for pair in PAIRS]
    expected = from_windows(capture, PAIRS)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(pair_weights(capture, SITE, turned).weights, expected, rtol=0, atol=ROUNDING)


def test_they_are_those_of_a_dense_computation() -> None:
    query, key, mask = torch.randn(HEADS, N, 8) * 3, torch.randn(HEADS, N, 8), causal_mask(N)
    inputs = AttentionInputs(query, key, key, 8**-0.5, MaskLayout.from_mask(mask))
    builder = CaptureBuilder()
    builder.add(SITE, 0, inputs, blockwise_attention(inputs))
    dense = attention_weights(attention_scores(query.double(), key.double(), 8**-0.5), mask)
    found = pair_weights(builder.build(), SITE, PAIRS).weights[0]
    for number, (q, k) in enumerate(PAIRS):
        of_pair = dense[:, slice(*q), slice(*k)].sum(-1).mean(-1)
        torch.testing.assert_close(found[:, number], of_pair, rtol=0, atol=1e-5)  # float32 against float64


@pytest.mark.parametrize(("at_once", "in_memory"), [(1, 4_000_000), (4096, 500), (10**9, 4_000_000)])
def test_how_pairs_are_put_together_changes_nothing(
    at_once: int, in_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = build(KINDS["causal"])
    before = pair_weights(capture, SITE, PAIRS).weights
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    monkeypatch.setattr(module, "NUMBERS_IN_MEMORY", in_memory)
    torch.testing.assert_close(pair_weights(capture, SITE, PAIRS).weights, before, rtol=0, atol=ROUNDING)


def test_many_pairs_on_one_key_need_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each pair takes of the weights is as large as the weights times the pairs."""
    capture, asked = build(KINDS["causal"]), []
    read = capture.weights_of_layers

    def noting(site: str, layers: Span, heads: Span, rows: Rows, cols: Rows) -> Tensor:
        found = read(site, layers, heads, rows, cols)
        asked.append(found[..., 0].numel() * max(32, found.shape[-1]))
        return found

    monkeypatch.setattr(capture, "weights_of_layers", noting)
    monkeypatch.setattr(module, "NUMBERS_IN_MEMORY", 32 * HEADS * 10)
    found = pair_weights(capture, SITE, [Pair((0, N), (3, 4))] * 32)
    assert max(asked) == 32 * HEADS * 10
    torch.testing.assert_close(
        found.weights[..., :1], from_windows(capture, [Pair((0, N), (3, 4))]), rtol=0, atol=ROUNDING
    )


def test_chance_is_the_visible_share() -> None:
    found = pair_weights(
        build(KINDS["causal"]), SITE, [Pair((3, 4), (1, 3)), Pair((1, 4), (2, 3)), Pair((0, 1), (0, 1))]
    )
    # query 3 sees four keys, two of them marked; queries 1, 2, 3 see 2, 3, 4 keys, key 2 among those of 2 and 3 alone
    expected = torch.tensor([2 / 4, (0 + 1 / 3 + 1 / 4) / 3, 1.0], dtype=torch.float64)
    assert torch.equal(found.chances, expected.expand(LAYERS, 3))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_chance_is_that_of_the_whole_mask(kind: Kind) -> None:
    mask = kind.mask()
    capture = build(kind._replace(mask=lambda: mask))
    shares = [mask[slice(*q), slice(*k)].sum(-1) / mask[slice(*q)].sum(-1).double() for q, k in PAIRS]
    expected = torch.stack([share.mean() if bool(share.any()) else share.new_tensor(torch.nan) for share in shares])
    found = pair_weights(capture, SITE, PAIRS).chances[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_a_uniform_head_is_at_chance_and_a_sure_one_at_one() -> None:
    layout, builder = MaskLayout.from_mask(causal_mask(N)), CaptureBuilder()
    query, key = torch.zeros(2, N, 8), torch.zeros(2, N, 8)
    query[1, :, 0], key[1, 12, 0] = 40.0, 40.0  # head 1 looks at key 12 wherever it can
    inputs = AttentionInputs(query, key, key, 1.0, layout)
    builder.add(SITE, 0, inputs, blockwise_attention(inputs))
    capture = builder.build()
    uniform, sure = pair_figures(pair_weights(capture, SITE, [Pair((70, 71), (12, 13)), Pair((50, 60), (12, 13))]))
    assert uniform["mean"] == pytest.approx(uniform["chance"], abs=1e-6)
    assert uniform["corrected"] == pytest.approx(0, abs=1e-6)
    assert (sure["weights"], sure["corrected"]) == ([1.0, 1.0], 1.0)
    uniform, sure = pair_figures(pair_weights(capture, SITE, [Pair((89, 90), (1, 90))]))  # all that it sees but one
    assert uniform["chance"] == pytest.approx(89 / 90)
    assert uniform["corrected"] == pytest.approx(0, abs=1e-5)  # float32 weights' 1e-7 times 90
    assert (sure["weights"], sure["corrected"]) == ([1.0], 1.0)


def test_a_layer_that_cannot_see_a_pair_has_no_number_there() -> None:
    builder = CaptureBuilder()
    for layer, mask in enumerate((causal_mask(N), causal_mask(N) & sliding_window_mask(N, window=8))):
        query, key = torch.randn(2, N, 8), torch.randn(2, N, 8)
        inputs = AttentionInputs(query, key, key, 1.0, MaskLayout.from_mask(mask))
        builder.add(SITE, layer, inputs, blockwise_attention(inputs))
    capture = builder.build()
    near, far = Pair((50, 51), (48, 49)), Pair((50, 51), (10, 11))
    both = pair_weights(capture, SITE, [near, far])
    assert both.weights.isnan().any(1).tolist() == [[False, False], [False, True]]
    figures = pair_figures(both)
    assert figures[2]["mean"] == pytest.approx(figures[2]["weights"][0] / 2)  # the hidden pair counts as 0
    assert figures[2]["chance"] == pytest.approx(1 / 8 / 2)
    only = pair_figures(pair_weights(capture, SITE, [far]))
    assert only[0]["mean"] > 0
    assert all(str(only[2][name]) == "nan" for name in ("mean", "chance", "corrected"))


def test_figures_have_as_many_digits_as_tell_float32_numbers_apart() -> None:
    weights = torch.rand(20_000).pow(4) + 1e-13
    told = to_digits(weights.double())
    assert torch.equal(told.float(), weights)
    assert max(len(f"{value:.17g}") for value in weights.tolist()) > 17
    assert max(len(repr(value).partition("e")[0].replace(".", "").lstrip("0")) for value in told.tolist()) == 9
    some = torch.tensor([0.0, torch.nan, -2 / 3, 1.0, 1e-20, 2**-140], dtype=torch.float64)
    assert [repr(value) for value in to_digits(some).tolist()] == [
        "0.0",
        "nan",
        "-0.666666667",
        "1.0",
        "1e-20",
        repr(2**-140),
    ]


def test_a_forced_weight_is_not_corrected() -> None:
    (figures, *_) = pair_figures(pair_weights(build(KINDS["causal"]), SITE, [Pair((0, 1), (0, 1))]))
    assert (figures["mean"], figures["chance"]) == (1.0, 1.0)
    assert str(figures["corrected"]) == "nan"


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (Pair((3, 4), (9, 10)), "a key that its query may attend to, among 0 to 3"),
        (Pair((90, 91), (0, 1)), "queries 0 to 89, keys 0 to 89"),
        (Pair((5, 6), (0, 91)), "queries 0 to 89, keys 0 to 89"),
        (Pair((6, 5), (0, 1)), "a <= b"),
    ],
)
def test_what_cannot_be_is_refused_with_the_valid_range(pair: Pair, said: str) -> None:
    with pytest.raises(RangeError) as refused:
        pair_weights(build(KINDS["causal"]), SITE, [PAIRS[0], pair])
    assert refused.value.name == "pairs"
    assert said in refused.value.valid


def test_a_query_without_any_key_is_refused_and_an_unknown_site_too() -> None:
    mask = causal_mask(N)
    mask[4] = False
    capture = build(Kind(lambda: mask))
    with pytest.raises(RangeError, match="attend to any key"):
        pair_weights(capture, SITE, [Pair((4, 5), (1, 2))])
    with pytest.raises(RangeError, match=SITE):
        pair_weights(capture, "encoder.self", PAIRS)


def test_spans_that_hold_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WEIGHTS", 100 * LAYERS * HEADS)
    capture = build(KINDS["causal"])
    pair_weights(capture, SITE, [Pair((50, 60), (10, 20))])
    with pytest.raises(RangeError, match="at most"):
        pair_weights(capture, SITE, [Pair((50, 61), (10, 20))])


def test_pairs_that_hold_too_much_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [Pair((50, 60), (10, 20)), Pair((30, 40), (0, 10))]
    capture = build(KINDS["causal"])
    monkeypatch.setattr(module, "AT_ONCE", 1)  # so that each is read by itself: 100 weights of each head
    monkeypatch.setattr(module, "MOST_WEIGHTS", 200 * LAYERS * HEADS)
    pair_weights(capture, SITE, pairs)
    monkeypatch.setattr(module, "MOST_WEIGHTS", 200 * LAYERS * HEADS - 1)
    with pytest.raises(RangeError, match="at most"):
        pair_weights(capture, SITE, pairs)


def test_one_pair_that_is_too_much_is_refused_before_pairs_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of all rows and columns of 32 long pairs took seconds, only to be refused."""
    capture = build(KINDS["causal"])
    monkeypatch.setattr(module, "MOST_WEIGHTS", 100)
    monkeypatch.setattr(module, "_grouped", lambda _: pytest.fail("rows and columns were listed"))
    with pytest.raises(RangeError, match="at most 100"):
        pair_weights(capture, SITE, [Pair((0, 1), (0, 1)), Pair((0, N), (0, N))])


def test_what_is_too_much_is_refused_before_its_mask_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = build(KINDS["dense"])
    monkeypatch.setattr(module, "MOST_WEIGHTS", 100)
    monkeypatch.setattr(MaskLayout, "visible", lambda *_: pytest.fail("a mask of the pair's size was made"))
    with pytest.raises(RangeError, match="at most 100"):
        pair_weights(capture, SITE, [Pair((0, N), (0, N))])
