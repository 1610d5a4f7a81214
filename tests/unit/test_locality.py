"""How far layers reach: curves against pencil and paper, verdicts of constructed layers, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from models.attention import causal_mask, sliding_window_mask
from models.blockwise import AttentionInputs, blockwise_attention
from models.head_scores import distance_bins, within
from models.head_targets import HeadTargets
from models.locality import layer_locality, uniform_by_distance
from models.masks import MaskLayout
from models.token_facts import TokenFacts

N = 80
SHARE = 1e-6  # of the mass: six decimals are told, and masses are kept in float32
DISTANCE = 3e-6  # of a mean of 40 tokens: half a digit of its float32 masses, and half of the last decimal
CAUSAL = causal_mask(N)
OTHERS = {
    "causal": CAUSAL,
    "window": CAUSAL & sliding_window_mask(N, window=9),
    "full": torch.ones(N, N, dtype=torch.bool),
    "both ways": sliding_window_mask(N, window=6),
    "dense": CAUSAL & (torch.arange(N)[None] % 3 != 1),
}


@pytest.mark.parametrize("without_first", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_equal_weights_by_distance(name: str, without_first: bool) -> None:
    mask = OTHERS[name].clone()
    layout, rows = MaskLayout.from_mask(mask), torch.rand(N, generator=torch.Generator().manual_seed(3)).double()
    mask[:, 0] &= not without_first
    rows[mask.sum(-1) < 2] = 0.0
    found = uniform_by_distance(layout, rows, without_first=without_first)
    expected = [0.0] * N
    for i in range(N):
        keys = [j for j in range(N) if mask[i, j]]
        for j in keys:
            expected[abs(i - j)] += float(rows[i]) / len(keys)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)  # 80 rows, in float64 on both sides


def locality(weights: Sequence[Tensor], masks: Sequence[Tensor] | None = None) -> dict[str, Any]:
    """The layers with just these weights, each (heads, rows, keys), and these masks, or all causal ones."""
    made = {id(mask): MaskLayout.from_mask(mask) for mask in (CAUSAL, *(masks or ()))}
    layouts = [made[id(mask)] for mask in masks or [CAUSAL] * len(weights)]
    figures = []
    for layer, layout in zip(weights, layouts, strict=True):
        targets = HeadTargets(layout, TokenFacts(tuple(range(N))), same_sequence=True)
        query = layer.clamp(min=1e-30).double().log()
        key = torch.eye(N, dtype=torch.float64).expand(len(layer), -1, -1)
        value = torch.zeros(len(layer), N, 1, dtype=torch.float64)
        figures.append(blockwise_attention(AttentionInputs(query, key, value, 1.0, layout, targets=targets)).figures)
    return layer_locality({name: torch.stack([one[name] for one in figures]) for name in figures[0]}, layouts)


def heads(*offsets: int) -> Tensor:
    """Heads that look so far back, or at the first token where there is nothing so far."""
    weights = torch.zeros(len(offsets), N, N)
    for head, offset in enumerate(offsets):
        for row in range(N):
            weights[head, row, max(0, row - offset)] = 1.0
    return weights


NEAR, EVEN = heads(1, 3), (CAUSAL.float() / torch.arange(1, N + 1)[:, None]).expand(2, -1, -1)
FAR = heads(N, N)


def test_layers_are_told_with_their_numbers() -> None:
    found = locality([NEAR, EVEN, FAR])
    near, even, far = (layer["all"] for layer in found["layers"])
    assert [near["kind"], even["kind"], far["kind"]] == ["near", "even", "far"]
    assert near["distance"]["low"] == pytest.approx(1.0, abs=DISTANCE)
    assert near["distance"]["spread"] == pytest.approx(
        (near["distance"]["high"] - near["distance"]["low"]) / 2, abs=DISTANCE
    )
    assert (near["near"]["share"], near["window"]["within_50"], near["window"]["within_90"]) == (1.0, 1, 3)
    assert even["curve"] == pytest.approx(even["uniform_curve"], abs=SHARE)
    assert even["distance"]["mean"] == pytest.approx(even["distance"]["uniform"], abs=DISTANCE)
    assert far["distance"]["mean"] == pytest.approx(sum(range(1, N)) / (N - 1), abs=DISTANCE)
    assert sum(far["curve"]) == pytest.approx(1.0, abs=SHARE * len(far["curve"]))
    assert found["verdicts"]["all"][0] == {
        "code": "near",
        "layers": [0, 0],
        "of": "all",
        "sink": None,
        "share": 1.0,
        "chance": near["near"]["chance"],
        "mean": near["distance"]["mean"],
        "uniform": near["distance"]["uniform"],
        "whole": None,
    }
    assert found["warnings"]["all"] == []


TEN = CAUSAL & sliding_window_mask(N, window=10)
EVEN_OF_TEN = (TEN / TEN.sum(-1, keepdim=True)).expand(2, -1, -1)
SEVEN = [EVEN, heads(10, 10), torch.stack([EVEN[0], FAR[0]]), EVEN_OF_TEN, NEAR, NEAR, NEAR]
MASKS = [CAUSAL, CAUSAL, CAUSAL, TEN, TEN, CAUSAL, CAUSAL]


def test_each_layer_stands_beside_equal_weights_under_its_own_mask() -> None:
    # causal: row i of 1 to 79 sees i + 1 keys, i / 2 away in the mean: 20 over all rows. Rows 1 to 4 see only keys
    # within 4, row i after them 5 of its i + 1. Of 79 rows' mass 38.7 is within 14 and 40.4 within 15: half is 39.5;
    # 70.8 is within 46 and 71.3 within 47: nine tenths are 71.1
    causal = (20.0, (4 + sum(5 / (i + 1) for i in range(5, N))) / 79, 15, 47)
    # ten keys: rows 1 to 8 as above, rows 9 to 79 see ten, 4.5 away in the mean, five of them within 4: 0.534 of all
    # mass, so no more is needed for half of it; nine tenths of theirs within 8, more than that of the first rows'
    ten = ((18 + 71 * 4.5) / 79, (4 + 5 / 6 + 5 / 7 + 5 / 8 + 5 / 9 + 71 / 2) / 79, 4, 8)
    found = locality(SEVEN, MASKS)
    for layer, mask in zip(found["layers"], MASKS, strict=True):
        told = layer["all"]
        uniform, chance, half, most = ten if mask is TEN else causal
        assert told["distance"]["uniform"] == pytest.approx(uniform, abs=DISTANCE)
        assert told["near"]["chance"] == pytest.approx(chance, abs=SHARE)
        assert (told["window"]["uniform_50"], told["window"]["uniform_90"]) == (half, most)
    # ten back, the first rows at the first key; then 20 and 40 away; then one and three, all of it near, but under a
    # window where half of equal weights is near that is not twice as much
    means = [20, (45 + 70 * 10) / 79, 30, ten[0], *[(79 + 1 + 2 + 77 * 3) / 79 / 2] * 3]
    assert [layer["all"]["distance"]["mean"] for layer in found["layers"]] == pytest.approx(means, abs=DISTANCE)
    kinds = ["even", "between", "far", "even", "between", "near", "near"]
    assert [layer["all"]["kind"] for layer in found["layers"]] == kinds


def test_each_layer_stands_beside_equal_weights_over_its_own_rows() -> None:
    """Under one mask: without the first token a head that looks ten back has nothing left in its first ten rows."""
    every, late = (layer["first"] for layer in locality(SEVEN, MASKS)["layers"][:2])
    # row i sees i keys, (i − 1) / 2 away in the mean, 5 of them within 4: rows 2 to 79, and rows 11 to 79
    assert every["distance"]["uniform"] == pytest.approx((1 / 2 + 78 / 2) / 2, abs=DISTANCE)
    assert every["near"]["chance"] == pytest.approx((4 + sum(5 / i for i in range(6, N))) / 78, abs=SHARE)
    assert late["distance"]["uniform"] == pytest.approx((10 / 2 + 78 / 2) / 2, abs=DISTANCE)
    assert late["near"]["chance"] == pytest.approx(sum(5 / i for i in range(11, N)) / 69, abs=SHARE)


@pytest.mark.parametrize(
    ("share", "other", "kind"),
    [
        (0.25, FAR, "far"),  # a mean of 20 + 0.25 · 20 is 1.25 times that of equal weights
        (0.15, FAR, "even"),  # 1.15 times
        (0.3, heads(10, 10), "even"),  # 20 − 0.3 · 10.6 is 1 / 1.19 of it
        (0.33, heads(10, 10), "between"),  # 1 / 1.21
        (0.37, NEAR, "near"),  # 0.22 of the rest and all of this: 0.51 within four tokens
        (0.35, NEAR, "between"),  # 0.49
    ],
)
def test_a_layer_is_of_the_kind_that_its_numbers_say(share: float, other: Tensor, kind: str) -> None:
    (layer,) = locality([(1 - share) * EVEN + share * other])["layers"]
    assert layer["all"]["kind"] == kind


def test_a_layer_that_only_rests_has_nothing_left_without_the_first_token() -> None:
    assert locality([FAR, FAR, FAR])["layers"][0]["first"] is None


def test_high_layers_that_are_all_local_are_warned_of() -> None:
    found = locality([EVEN, NEAR, NEAR])
    assert found["verdicts"]["all"][-1]["layers"] == [1, 2]
    (warning,) = found["warnings"]["all"]
    assert (warning["code"], warning["layers"], warning["share"]) == ("high_layers_local", [2, 2], 1.0)


def test_the_last_third_of_the_layers_are_high() -> None:
    (warning,) = locality([*[EVEN] * 5, NEAR, NEAR])["warnings"]["all"]  # of seven layers the last two
    assert warning["layers"] == [5, 6]
    assert locality([*[EVEN] * 6, NEAR])["warnings"]["all"] == [], "one of the two reaches further"
    assert locality([*[EVEN] * 5, NEAR, EVEN])["warnings"]["all"] == []
    assert locality([NEAR, NEAR])["warnings"]["all"] == [], "two layers have no third"


def test_layers_that_cannot_be_told_part_the_others() -> None:
    found = locality([NEAR, FAR, NEAR])
    assert found["layers"][1]["first"] is None
    assert [verdict["layers"] for verdict in found["verdicts"]["first"]] == [[0, 0], [2, 2]]
    found = locality([EVEN, NEAR, FAR])
    assert [verdict["layers"] for verdict in found["verdicts"]["first"]] == [[0, 0], [1, 1]]
    assert [verdict["code"] for verdict in found["verdicts"]["all"]] == ["even", "near", "sink"]
    assert found["warnings"]["first"] == [], "the highest layer is not known to be local"


def test_heads_without_numbers_are_left_out() -> None:
    broken = [NEAR.clone() for _ in range(3)]
    broken[0][0, 40] = torch.nan
    broken[1][:, 40] = torch.nan
    first, second, _third = locality(broken)["layers"]
    assert (first["all"]["heads"], first["all"]["distance"]["spread"]) == (1, 0.0)
    assert second["all"] is None


def test_chance_is_over_the_rows_that_count() -> None:
    """Heads that rest on the first token in the second half: without it only the first half is left."""
    weights = EVEN.clone()
    weights[:, N // 2 :] = FAR[:, N // 2 :]
    layer = locality([weights] * 3)["layers"][0]["first"]
    assert layer["distance"]["mean"] == pytest.approx(layer["distance"]["uniform"], abs=DISTANCE)
    assert layer["uniform_curve"] == pytest.approx(layer["curve"], abs=SHARE)


def test_bins_and_windows() -> None:
    assert distance_bins(1) == [(0, 1)]
    assert distance_bins(9) == [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16)]
    mass = torch.tensor([[0.25, 0.25, 0.5, 0.0]])
    for total in (1.0, 8.0):
        assert (int(within(total * mass, 0.5)), int(within(total * mass, 0.9))) == (1, 2)
