"""How far a bfloat16 or float16 model's own weights lie from ours, which are always worked out in float32.

The docs name these figures; this computes them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from models.huggingface import HuggingFaceModel
from tests.parity.references import all_weights, eager_attentions, largest_difference
from tests.parity.tiny import looked_into, random_ids

DOCS = (Path(__file__).parents[2] / "docs" / "head-figures.md").read_text(encoding="utf-8")
TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
LENGTH = 200
# Peaked models: eager rounds each score to the type before its softmax, and the larger it is the coarser
FAMILIES = ("llama", "gpt2", "bert")


def furthest(family: str, dtype: torch.dtype) -> float:
    """The largest difference of a weight: the model's eager attention in this type against ours of the same model."""
    model: HuggingFaceModel = looked_into(family, dtype)
    ids = random_ids(LENGTH)
    ((site, theirs),) = eager_attentions(model.model, ids).items()
    capture = model.run(ids).capture
    ours = [all_weights(capture, site, layer) for layer in range(len(theirs))]
    return largest_difference(ours, [layer.float() for layer in theirs])


@pytest.mark.parametrize("name", TYPES)
def test_the_docs_say_how_far_a_half_precision_models_own_weights_lie_from_ours(name: str) -> None:
    found = {family: furthest(family, TYPES[name]) for family in FAMILIES}
    exact = max(furthest(family, torch.float32) for family in FAMILIES)
    told = re.search(rf"\| {name} \| ([\d.e-]+) \|", DOCS)
    assert told, f"docs/head-figures.md has no such line: {found}"
    assert exact < 1e-4 < max(found.values())
    # float kernels of other machines sum in another order: the order of magnitude is what the docs promise
    assert float(told[1]) / 3 < max(found.values()) < 3 * float(told[1])
