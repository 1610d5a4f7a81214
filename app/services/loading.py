"""From a folder to a model that one can look into, by the implementation that was asked for.

It knows neither when a model is loaded nor how many are kept.
"""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedTokenizerFast

from app.services.model_sources import CatalogueEntry
from app.services.shipped_models import FAMILY
from models.gpt2_weights import own_model_from
from models.huggingface import HuggingFaceModel
from models.own import OwnModel
from models.protocol import AttentionModel, device_of_choice
from models.shipped import read_shipped


def load_model(folder: Path, entry: CatalogueEntry, implementation: str) -> AttentionModel:
    """The model in `folder`. Raises UnsupportedModel and whatever its libraries raise."""
    if entry.family == FAMILY:
        return shipped_model(folder, entry.weight_precision or "unknown")
    load = own_model_from if implementation == "own" else HuggingFaceModel.load
    return load(folder, weight_precision=entry.weight_precision or "unknown", revision=entry.revision or "unknown")


def shipped_model(folder: Path, weight_precision: str) -> OwnModel:
    """A model of ours, its files compared with their listed hashes. Raises UnsupportedModel, ConfigError."""
    shipped = read_shipped(folder.name, folder.parent)
    return OwnModel(
        shipped.model.to(device_of_choice()),
        PreTrainedTokenizerFast(tokenizer_object=shipped.tokenizer),
        family=FAMILY,
        weight_precision=weight_precision,
        revision=shipped.revision,
        start_id=shipped.card.get("start_id"),
        stop_id=shipped.card.get("stop_id"),
    )
