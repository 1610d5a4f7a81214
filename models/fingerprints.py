"""Fingerprints of what each module handed over, taken during the pass and again of what the capture keeps.

A fingerprint is one number that depends on every entry and on its place, so that exchanged layers, heads, rows or keys
show in whichever of them it is. This module knows names of tensors, not what they mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import torch
from torch import Tensor

from models.blockwise import AttentionInputs, AttentionSummary

LARGE = 100_000  # entries from which a product in float32 is taken: a copy in float64 would cost more than the product


def module_tensors(inputs: AttentionInputs, summary: AttentionSummary) -> dict[str, Tensor]:
    """What a capture keeps of one module, by the names it keeps it under.

    Shapes:  those of AttentionInputs and AttentionSummary
    """
    kept = {"query": inputs.query, "key": inputs.key, "value": inputs.value}
    kept |= {f"rows.{name}": values for name, values in summary.rows.items()}
    kept |= {f"figures.{name}": values for name, values in summary.figures.items()}
    return kept | {"overview_max": summary.overview_max, "overview_mean": summary.overview_mean}


def fingerprints(tensors: Mapping[str, Tensor]) -> dict[str, float]:
    """One number for each tensor.

    Shapes:  any
    """
    return {name: fingerprint(tensor) for name, tensor in tensors.items()}


def fingerprint(tensor: Tensor) -> float:
    """The sum of all entries, each times a number of its place, as a share of the tensor's length.

    Shapes:  any
    Values:  0 for a tensor of zeros
    """
    dtype = torch.float32 if tensor.numel() > LARGE and tensor.dtype == torch.float32 else torch.float64
    numbers = tensor.detach().reshape(-1).to("cpu", dtype)
    length = float(numbers.norm())
    if not math.isfinite(length):
        return math.nan
    return float(numbers @ _places(len(numbers), dtype)) / (length or 1.0)


@lru_cache(maxsize=16)
def _places(count: int, dtype: torch.dtype) -> Tensor:
    # numbers between −1 and 1 that do not repeat
    return torch.arange(count, dtype=torch.float64).mul_(1.7).add_(0.3).cos_().to(dtype)
