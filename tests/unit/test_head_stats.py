"""What is collected from blocks against all weights at once; and heads made so that the answer is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from models.attention import attention_scores, attention_weights, causal_mask, sliding_window_mask
from models.blockwise import AttentionInputs, blockwise_attention, rows_per_block
from models.head_stats import HeadCollector
from models.head_sums import Collected, layer_figures
from models.head_targets import SCORES, HeadTargets
from models.masks import MaskLayout
from models.token_facts import TokenFacts
from tests.dense_heads import Dense, assert_same

HEADS, N = 4, 200  # two blocks of rows
TOLERANCE = 1e-5  # the issue's own bound; float32 sums over 200 rows give about 1e-6


def prefix_mask(n: int) -> Tensor:
    """The first ten keys for everyone, and every third before: no run of keys."""
    i, j = torch.arange(n)[:, None], torch.arange(n)[None]
    return ((j < 10) | ((i - j) % 3 == 0)) & (j <= i + 2)


MASKS = {
    "causal": causal_mask(N),
    "window": causal_mask(N) & sliding_window_mask(N, window=30),
    "full": torch.ones(N, N, dtype=torch.bool),
    "both ways": sliding_window_mask(N, window=25),
    "dense": prefix_mask(N),
    "prefix only": causal_mask(N) & (torch.arange(N) < 150)[None],  # the last rows' own keys are hidden
    "late": causal_mask(N) & (torch.arange(N) >= 70)[None],
    "lag": causal_mask(N) & sliding_window_mask(N, window=200) & (torch.arange(N)[:, None] - torch.arange(N) >= 100),
    "lead": torch.arange(N)[None] - torch.arange(N)[:, None] >= 130,
}


def facts(n: int, *, special: bool, repeats: int = 20) -> TokenFacts:
    """Random tokens of a small vocabulary; some punctuation, and special tokens at the ends and in the middle."""
    torch.manual_seed(n + repeats)
    ids = torch.randint(10, 10 + repeats, (n,)).tolist()
    marks = [special and i in (0, 70, n - 1) for i in range(n)]
    return TokenFacts(tuple(ids), tuple(marks), tuple(i % 17 == 5 for i in range(n)))


def layer(mask: Tensor, known: TokenFacts, *, dtype: torch.dtype, sinks: bool = False, **other: Any) -> tuple[Any, Any]:
    """The figures of a layer of random heads, the last of which looks at the first key nearly all the time."""
    torch.manual_seed(1)
    n, m = mask.shape
    query, key = torch.randn(HEADS, n, 16, dtype=dtype) * 2, torch.randn(2, m, 16, dtype=dtype)
    query[3, :, 0], key[1, :, 0], key[1, 0, 0] = 30.0, 0.0, 0.6
    value = torch.randn(2, m, 8, dtype=dtype)
    logits = torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=dtype) if sinks else None
    layout = MaskLayout.from_mask(mask)
    targets = HeadTargets(layout, known, same_sequence=other.get("same_sequence", True))
    inputs = AttentionInputs(query, key, value, 0.25, layout, sink_logits=logits, targets=targets, **other)
    found = blockwise_attention(inputs).figures
    scores = attention_scores(query.double(), key.double(), 0.25)
    seen = mask
    if logits is not None:  # a sink is one more key, which everyone sees and whose weight is not shown
        scores = torch.cat([scores, logits.double()[:, None, None].expand(-1, n, 1)], -1)
        seen = torch.cat([mask, torch.ones(n, 1, dtype=torch.bool)], -1)
    weights = attention_weights(scores, seen)[..., :m]
    return found, Dense(weights, mask, known, other.get("same_sequence", True))


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("name", MASKS)
def test_every_figure_is_that_of_all_weights_at_once(name: str, special: bool) -> None:
    found, dense = layer(MASKS[name], facts(N, special=special), dtype=torch.float32)
    assert assert_same(found, dense, TOLERANCE) > (7 if name in ("lag", "lead") else 30)  # they see few targets


def test_in_float64_nothing_is_lost() -> None:
    for special in (True, False):
        found, dense = layer(MASKS["causal"], facts(N, special=special), dtype=torch.float64)
        assert_same(found, dense, 1e-7)  # by_distance is kept in float32


@pytest.mark.parametrize("repeats", [1, 2, 500])
def test_many_and_few_repeats(repeats: int) -> None:
    found, dense = layer(MASKS["causal"], facts(N, special=False, repeats=repeats), dtype=torch.float32)
    assert_same(found, dense, TOLERANCE)


def test_rows_with_a_sink_do_not_sum_to_one() -> None:
    found, dense = layer(MASKS["causal"], facts(N, special=True), dtype=torch.float32, sinks=True)
    assert_same(found, dense, TOLERANCE)


def test_cross_attention_has_no_positions() -> None:
    mask = torch.ones(90, 130, dtype=torch.bool)
    found, dense = layer(mask, facts(130, special=True), dtype=torch.float32, same_sequence=False)
    assert "by_distance" not in found
    assert_same(found, dense, TOLERANCE)


def test_the_comparison_sees_a_wrong_score() -> None:
    found, dense = layer(MASKS["causal"], facts(N, special=False), dtype=torch.float32)
    found["scores"][1, SCORES.index("induction"), 0, 2] += 2e-5
    with pytest.raises(AssertionError, match="induction of first"):
        assert_same(found, dense, TOLERANCE)


def test_repeats_that_are_not_kept_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.repeats.PLACES_KEPT", 0)
    found, dense = layer(MASKS["causal"], facts(N, special=True), dtype=torch.float32)
    assert_same(found, dense, TOLERANCE)
    targets = HeadTargets(MaskLayout.from_mask(MASKS["causal"]), facts(N, special=True), same_sequence=True)
    assert targets.repeats is not None
    assert targets.repeats.places((0, 100), (0, 128), 4) is not targets.repeats.places((0, 100), (0, 128), 4)
    monkeypatch.undo()
    assert targets.repeats.places((0, 100), (0, 128), 4) is targets.repeats.places((0, 100), (0, 128), 4)


def test_repeats_that_are_half_of_a_block_are_never_kept() -> None:
    """Of a text of one token the marks of every block would be n² bytes a head."""
    targets = HeadTargets(MaskLayout.from_mask(MASKS["causal"]), facts(N, special=False, repeats=1), same_sequence=True)
    assert targets.repeats is not None
    marked = targets.repeats.places((0, 100), (0, 128), 4).marked
    assert marked is not None
    assert targets.repeats.places((0, 100), (0, 128), 4).marked is not marked


def test_what_was_collected_and_given_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64 what is collected is what figures are made of, without a copy between."""
    add = HeadCollector.add

    def looked_at(self: HeadCollector, weights: Tensor, scratch: Tensor, *rest: Any) -> None:
        before = rest[1].clone()
        add(self, weights, scratch, *rest)
        assert torch.equal(rest[1], before), "the factors are the caller's own"

    def summed_up(targets: HeadTargets, found: Collected, *rest: Any) -> dict[str, Tensor]:
        before = found.by_key.clone()
        figures = layer_figures(targets, found, *rest)
        assert torch.equal(found.by_key, before)
        return figures

    monkeypatch.setattr(HeadCollector, "add", looked_at)
    monkeypatch.setattr("models.head_stats.layer_figures", summed_up)
    found, dense = layer(MASKS["causal"], facts(N, special=True), dtype=torch.float64, sinks=True)
    assert_same(found, dense, 1e-7)  # by_distance is kept in float32


def test_places_in_a_block_are_counted_with_its_filled_up_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """25 heads over 20,971 keys: without the padding 4,096 rows fit into int32, with it they do not."""
    shape, free = (25, 20_971, 64), 69 * 2**30
    query = SimpleNamespace(shape=shape, is_cuda=True, device=None, element_size=lambda: 4)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, free))
    rows = rows_per_block(SimpleNamespace(query=query, key=SimpleNamespace(shape=shape)))  # type: ignore[arg-type]
    assert 0 < rows * 25 * 20_992 < 2**31  # 20,971 filled up to a multiple of 64
