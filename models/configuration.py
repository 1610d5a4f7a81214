"""What a loaded transformers model says about itself: whether it reads pairs, and the project's description of it.

Runs nothing. What is peculiar about single families, and which class loads them, stands in `models/families.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from models.checkpoints import types_of
from models.families import Kind
from models.protocol import ModelDescription
from models.trial import TriedModule


def reads_pairs(model: PreTrainedModel, kind: Kind) -> bool:
    """Whether the model tells the tokens of a second text from those of the first: BERT-type encoders do."""
    if kind != "encoder" or types_of(model.config) < 2:
        return False
    return "token_type_ids" in inspect.signature(model.base_model.forward).parameters


def kind_seen(kind: Kind, modules: Sequence[TriedModule]) -> Kind:
    """The design that the masks show: a stack is a decoder if no query of it attends to a later token."""
    if kind == "encoder-decoder":
        return kind
    return "encoder" if any(module.sees_later for module in modules) else "decoder"


def describe(
    model: PreTrainedModel,
    kind: Kind,
    modules: Sequence[TriedModule],
    *,
    n_layers: int,
    max_tokens: int,
    weight_precision: str,
    revision: str,
) -> ModelDescription:
    """Describe a loaded model in the project's words."""
    return ModelDescription(
        family=model.config.model_type,
        kind=kind,
        n_layers=n_layers,
        n_heads=modules[0].n_heads,
        n_kv_heads=modules[0].n_kv_heads,
        max_tokens=max_tokens,
        implementation="transformers",
        dtype=str(model.dtype).removeprefix("torch.") if model.dtype == torch.float64 else "float32",
        weight_precision=weight_precision,
        revision=revision,
    )
