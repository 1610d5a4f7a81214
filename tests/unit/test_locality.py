"""How far layers reach: curves against pencil and paper, verdicts of constructed layers, warnings."""

from __future__ import annotations

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
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def locality(weights: Tensor, mask: Tensor = CAUSAL) -> dict[str, Any]:
    """The layers with just these weights, (layers, heads, rows, keys)."""
    layout = MaskLayout.from_mask(mask)
    targets = HeadTargets(layout, TokenFacts(tuple(range(N))), same_sequence=True)
    figures = []
    for layer in weights:
        query = layer.clamp(min=1e-30).double().log()
        key = torch.eye(N, dtype=torch.float64).expand(len(layer), -1, -1)
        value = torch.zeros(len(layer), N, 1, dtype=torch.float64)
        figures.append(blockwise_attention(AttentionInputs(query, key, value, 1.0, layout, targets=targets)).figures)
    return layer_locality({name: torch.stack([one[name] for one in figures]) for name in figures[0]}, [layout] * 3)


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
    found = locality(torch.stack([NEAR, EVEN, FAR]))
    near, even, far = (layer["all"] for layer in found["layers"])
    assert [near["kind"], even["kind"], far["kind"]] == ["near", "even", "far"]
    assert near["distance"]["low"] == pytest.approx(1.0, abs=1e-6)
    assert near["distance"]["spread"] == pytest.approx(
        (near["distance"]["high"] - near["distance"]["low"]) / 2, abs=1e-6
    )
    assert (near["near"]["share"], near["window"]["within_50"], near["window"]["within_90"]) == (1.0, 1, 3)
    assert even["curve"] == pytest.approx(even["uniform_curve"], abs=1e-6)
    assert even["distance"]["mean"] == pytest.approx(even["distance"]["uniform"], abs=1e-5)
    assert far["distance"]["mean"] == pytest.approx(sum(range(1, N)) / (N - 1), abs=1e-4)
    assert sum(far["curve"]) == pytest.approx(1.0, abs=1e-6)
    assert found["verdicts"]["all"][0] == {
        "code": "near",
        "layers": [0, 0],
        "share": 1.0,
        "chance": near["near"]["chance"],
        "mean": near["distance"]["mean"],
        "uniform": near["distance"]["uniform"],
    }
    assert found["warnings"]["all"] == []


def test_a_layer_that_only_rests_has_nothing_left_without_the_first_token() -> None:
    assert locality(torch.stack([FAR, FAR, FAR]))["layers"][0]["first"] is None


def test_high_layers_that_are_all_local_are_warned_of() -> None:
    found = locality(torch.stack([EVEN, NEAR, NEAR]))
    assert found["verdicts"]["all"][-1]["layers"] == [1, 2]
    (warning,) = found["warnings"]["all"]
    assert (warning["code"], warning["layers"], warning["share"]) == ("high_layers_local", [1, 2], 1.0)


def test_layers_that_cannot_be_told_part_the_others() -> None:
    found = locality(torch.stack([NEAR, FAR, NEAR]))
    assert found["layers"][1]["first"] is None
    assert [verdict["layers"] for verdict in found["verdicts"]["first"]] == [[0, 0], [2, 2]]
    found = locality(torch.stack([EVEN, NEAR, FAR]))
    assert [verdict["layers"] for verdict in found["verdicts"]["first"]] == [[0, 0], [1, 1]]
    assert found["warnings"]["first"] == [], "the highest layer is not known to be local"


def test_heads_without_numbers_are_left_out() -> None:
    broken = torch.stack([NEAR] * 3)
    broken[0, 0, 40] = torch.nan
    broken[1, :, 40] = torch.nan
    first, second, _third = locality(broken)["layers"]
    assert (first["all"]["heads"], first["all"]["distance"]["spread"]) == (1, 0.0)
    assert second["all"] is None


def test_chance_is_over_the_rows_that_count() -> None:
    """Heads that rest on the first token in the second half: without it only the first half is left."""
    weights = EVEN.clone()
    weights[:, N // 2 :] = FAR[:, N // 2 :]
    layer = locality(torch.stack([weights] * 3))["layers"][0]["first"]
    assert layer["distance"]["mean"] == pytest.approx(layer["distance"]["uniform"], abs=1e-4)
    assert layer["uniform_curve"] == pytest.approx(layer["curve"], abs=1e-6)


def test_bins_and_windows() -> None:
    assert distance_bins(1) == [(0, 1)]
    assert distance_bins(9) == [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16)]
    mass = torch.tensor([[0.25, 0.25, 0.5, 0.0]])
    assert (int(within(mass, 0.5)), int(within(mass, 0.9))) == (1, 2)
