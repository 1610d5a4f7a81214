"""Attention rollout through layers of unlike masks: a path counts whichever of them it leads through."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from torch import Tensor

from models.attention import causal_mask, sliding_window_mask
from models.capture import Capture
from models.lenses import rollout
from tests.unit.test_similarity import HEADS, LAYERS, SITE, N, build

MASKS = {
    "full": torch.ones(N, N, dtype=torch.bool),
    "causal": causal_mask(N),
    "window": causal_mask(N) & sliding_window_mask(N, window=20),
}


def dense(capture: Capture) -> Tensor:
    """Half of the mean over heads and half of each token itself, layer by layer, float64; NaN where no path leads."""
    rolled, itself = torch.eye(N, dtype=torch.float64), torch.eye(N, dtype=torch.float64)
    for layer in range(LAYERS):
        weights = capture.weights(SITE, layer, (0, HEADS), (0, N), (0, N)).double()
        rolled = (weights.mean(0) + itself) / 2 @ rolled
    return rolled.masked_fill(rolled == 0, torch.nan)  # weights are above 1e-30, so no path is rounded away


@pytest.mark.parametrize("names", [*permutations(MASKS), ("window",) * LAYERS], ids=" ".join)
def test_layers_may_have_any_masks_in_any_order(names: tuple[str, ...]) -> None:
    capture = build(*(MASKS[name] for name in names))
    found = rollout(capture, SITE, LAYERS - 1)
    # float32 products of rows that sum to 1, three of them
    torch.testing.assert_close(found.double(), dense(capture), rtol=0, atol=1e-6, equal_nan=True)
