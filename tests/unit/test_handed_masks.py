"""Additive masks: which floors hide, which biases do not, and masks that are written to between two layers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models.handed_masks import SharedTensors, split_mask

N = 24


def causal() -> Tensor:
    return torch.ones(N, N, dtype=torch.bool).tril()


def slope(steepest: float, length: int = N) -> Tensor:
    """A linear bias of the kind of ALiBi, whose furthest entry is `steepest`."""
    at = torch.arange(length)
    return ((at[:, None] - at).clamp(min=0) * (steepest / (length - 1)))[None]


@pytest.mark.parametrize("floor", [-1e4, -1e9, -65504.0, torch.finfo(torch.float32).min, -torch.inf])
def test_a_floor_hides_whatever_its_depth(floor: float) -> None:
    found = split_mask(torch.zeros(1, N, N).masked_fill(~causal(), floor), torch.float32)
    assert found.layout.kind.kind == "causal"
    assert found.bias is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_floor_hides_in_half_precision(dtype: torch.dtype) -> None:
    for floor in (-1e4, torch.finfo(dtype).min):
        mask = torch.zeros(1, N, N, dtype=dtype).masked_fill(~causal(), floor)
        assert split_mask(mask, torch.float32).layout.kind.kind == "causal"


@pytest.mark.parametrize("floor", [-1e9, -torch.inf])
def test_a_floor_on_top_of_a_bias_hides_and_the_bias_remains(floor: float) -> None:
    bias = slope(-200.0)
    found = split_mask(bias + torch.zeros(1, N, N).masked_fill(~causal(), floor), torch.float32)
    assert found.layout.kind.kind == "causal"
    assert found.bias is not None
    torch.testing.assert_close(found.bias.block((0, N), (0, N)).masked_fill(~causal(), 0.0), bias)


def test_two_floors_in_one_mask_hide_both() -> None:
    mask = torch.zeros(1, N, N).masked_fill(~causal(), -1e9)
    mask[..., 0] += -1e9  # where both hide, their sum
    mask[:, 1:, 3] = -torch.inf
    seen = causal()
    seen[:, 0], seen[1:, 3] = False, False
    seen[0] = True  # all of the first row is at a floor, which then hides nothing of it
    torch.testing.assert_close(split_mask(mask, torch.float32).layout.visible((1, N), (0, N)), seen[1:])


@pytest.mark.parametrize("steepest", [-200.0, -4_096.0, -13_000.0])
def test_a_steep_bias_is_no_mask(steepest: float) -> None:
    found = split_mask(slope(steepest), torch.float32)
    assert found.layout.kind.kind == "full"
    assert found.bias is not None


def test_a_mask_that_is_written_to_is_another_one() -> None:
    shared, mask = SharedTensors[int](), torch.zeros(1, N, N)
    calls = iter(range(9))
    first = shared.get_or_make(mask, (N, N), lambda: next(calls))
    assert shared.get_or_make(mask[:, :, :N], (N, N), lambda: next(calls)) == first
    mask.masked_fill_(~causal(), -torch.inf)
    assert shared.get_or_make(mask, (N, N), lambda: next(calls)) != first
