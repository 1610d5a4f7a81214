"""Positions worked out by hand, and what wrong sizes get."""

from __future__ import annotations

import math

import pytest
import torch

from models.errors import ConfigError, ShapeError
from models.positions import LearnedPositions, alibi_bias, alibi_slopes, rotate, sinusoidal_positions


def test_the_first_sinusoids() -> None:
    """d_model 4: wavelengths 2π and 100 · 2π; sine and cosine take turns."""
    rows = sinusoidal_positions(0, 3, 4).tolist()
    assert rows[0] == [0.0, 1.0, 0.0, 1.0]
    for position in (1, 2):
        slow = position / 100
        expected = [math.sin(position), math.cos(position), math.sin(slow), math.cos(slow)]
        assert rows[position] == pytest.approx(expected, abs=1e-7)  # float32


def test_far_positions_keep_their_digits() -> None:
    """Angles are taken in float64: in float32 the sine of 100,001 would be off in the third digit."""
    assert float(sinusoidal_positions(100_001, 1, 2)[0, 0]) == pytest.approx(math.sin(100_001), abs=1e-7)
    turned = rotate(torch.tensor([[1.0, 0.0]]), first=100_001)
    assert turned.flatten().tolist() == pytest.approx([math.cos(100_001), math.sin(100_001)], abs=1e-6)


def test_rotation_turns_halves_by_the_position() -> None:
    """A quarter turn is π/2: at position 1 the first pair has turned by 1, the second by 1/100."""
    x = torch.tensor([[1.0, 2.0, 0.0, 0.0]]).repeat(2, 1)  # pairs (1, 0) and (2, 0)
    turned = rotate(x)
    assert turned[0].tolist() == [1.0, 2.0, 0.0, 0.0]
    expected = [math.cos(1), 2 * math.cos(0.01), math.sin(1), 2 * math.sin(0.01)]
    assert turned[1].tolist() == pytest.approx(expected, abs=1e-6)
    assert torch.equal(rotate(x[:1], first=1), turned[1:])


def test_alibi_slopes_of_the_paper() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-k for k in range(1, 9)]
    assert alibi_slopes(2).tolist() == [2.0**-4, 2.0**-8]
    assert alibi_slopes(3).tolist() == [2.0**-4, 2.0**-8, 2.0**-2]  # two heads' slopes, then the first of four heads'


def test_alibi_bias_by_distance() -> None:
    assert alibi_bias(torch.tensor([0.5]), 3, 3).tolist() == [[[0.0, -0.5, -1.0], [-0.5, 0.0, -0.5], [-1.0, -0.5, 0.0]]]
    assert alibi_bias(torch.tensor([1.0]), 1, 3).tolist() == [[[-2.0, -1.0, 0.0]]]  # queries are the last positions


@torch.no_grad()
def test_learned_positions_end() -> None:
    positions = LearnedPositions(6, 4)
    assert torch.equal(positions(2, 4), positions.table.weight[2:6])
    for first, length in ((0, 7), (6, 1), (3, 4)):
        with pytest.raises(ShapeError, match=rf"for 6 tokens, got {first + length}"):
            positions(first, length)


def test_odd_widths() -> None:
    with pytest.raises(ConfigError, match="even, got 5"):
        sinusoidal_positions(0, 2, 5)
    with pytest.raises(ConfigError, match="even, got 3"):
        rotate(torch.randn(2, 3))
