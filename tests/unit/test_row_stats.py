"""Scores of constructed heads, whose answer is known without computing."""

from __future__ import annotations

import math

import pytest
import torch

from models.attention import causal_mask
from models.masks import MaskLayout
from models.row_stats import MIN_ROWS, head_scores

N = 20
CAUSAL = MaskLayout.from_mask(causal_mask(N))


def rows_of(previous: float, itself: float, first: float) -> dict[str, torch.Tensor]:
    """One head whose rows all put these weights on their previous, own and first key."""
    positions = torch.arange(N, dtype=torch.float64)
    return {
        "previous": torch.full((1, N), previous),
        "self": torch.full((1, N), itself),
        "first": torch.full((1, N), first),
        "entropy": (positions + 1).log()[None],  # uniform attention
        "distance": positions[None] / 2,
    }


def test_a_previous_token_head() -> None:
    (head,) = head_scores(rows_of(1.0, 0.0, 0.0), CAUSAL)
    chance = sum(1 / (i + 1) for i in range(1, N)) / (N - 1)
    previous = head["scores"]["previous"]
    assert previous == pytest.approx({"score": 1.0, "chance": chance, "corrected": 1.0, "rows": N - 1})
    assert head["scores"]["self"]["corrected"] == pytest.approx(-chance / (1 - chance))


def test_uniform_attention_is_chance_itself() -> None:
    (head,) = head_scores(rows_of(0.0, 0.0, 0.0), CAUSAL)
    assert head["entropy"]["normalised"] == pytest.approx(1.0)
    assert head["entropy"]["mean"] == pytest.approx(sum(math.log(i + 1) for i in range(1, N)) / (N - 1))
    assert head["distance"]["mean"] == pytest.approx(head["distance"]["uniform"])


def test_too_few_rows_give_no_number() -> None:
    n = MIN_ROWS  # the first row sees one key only: one row too few is left
    mask = MaskLayout.from_mask(causal_mask(n))
    (head,) = head_scores({name: values[:, :n] for name, values in rows_of(1.0, 0.0, 0.0).items()}, mask)
    assert head == {"scores": {"previous": None, "self": None, "first": None}, "entropy": None, "distance": None}


def test_cross_attention_has_no_positions() -> None:
    rows = {name: values for name, values in rows_of(0.0, 0.0, 1.0).items() if name in ("first", "entropy")}
    (head,) = head_scores(rows, MaskLayout.full(N, 7))
    assert head["distance"] is None
    assert head["scores"]["previous"] is None
    assert head["scores"]["first"]["chance"] == pytest.approx(1 / 7)
