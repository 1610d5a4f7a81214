"""What the shipped models were trained with: one module for each recipe, and the list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from models.training import NextBatch, TrainingConfig
from models.transformer import Transformer
from models.transformer_config import TransformerConfig


@dataclass(frozen=True)
class Prepared:
    """A recipe with its data at hand.

    data        which texts, how many, under which licence: goes into the model's card
    evaluate    figures of a trained model, JSON-ready: goes into the model's card
    extra_card  what else the card says, at its top level: what is needed to run the model
    """

    tokenizer: Tokenizer
    next_batch: NextBatch
    data: Mapping[str, Any]
    evaluate: Callable[[Transformer], Mapping[str, Any]]
    extra_card: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a training: the same recipe on the same data gives the same model."""

    name: str
    about: str
    model: TransformerConfig
    training: TrainingConfig
    prepare: Callable[[Path], Prepared]  # from the folder with the training data
