"""From a checkpoint folder to a transformers model whose every weight is the file's, and its tokenizer.

Refused, with the tensors by name, is what transformers would fill with random numbers or leave out; what is harmless is
said on the card. This module knows nothing of how a model is looked into (`models/huggingface.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from models.card import Check
from models.checkpoints import adapters_in, weight_files
from models.errors import UnsupportedModel
from models.fit import CONVERSION, LOADING, checked, concrete_class, fit_of, options_of, weights_check
from models.headers import StoredTensor, all_tensors, read_header
from models.tokenizer_files import check_rows, load_tokenizer, vocabulary_rows

OPTIONS: Mapping[str, Any] = {"local_files_only": True, "trust_remote_code": False}


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A model as transformers loads it, checked, with its tokenizer and the card's line on its weights."""

    config: PreTrainedConfig
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    check: Check


def stored_in(folder: Path) -> dict[str, StoredTensor]:
    """The tensors of a folder's weight files. Raises UnusableCheckpoint, NotSafetensors."""
    return all_tensors({file.name: read_header(file) for file in weight_files(folder)})


def load_checkpoint(folder: Path, dtype: torch.dtype | None = None) -> LoadedCheckpoint:
    """Load a checkpoint folder: safetensors only, no code from it, no network.

    dtype: of the arithmetic; by default float64 for float64 checkpoints, float32 for all others.

    Raises:  UnsupportedModel, Misfit, UnusableCheckpoint
    """
    config = transformers.AutoConfig.from_pretrained(folder, **OPTIONS)
    dtype = dtype or (torch.float64 if config.dtype == torch.float64 else torch.float32)
    loaded = load_tokenizer(folder)
    stored = stored_in(folder)
    with LOADING:
        fit = fit_of(config, stored)
        found, own_config = concrete_class(config)
        model, info = _from_files(found, folder, own_config, dtype, stored, fit.removed or {})
    fit = checked(info, model, stored, fit.removed or {})
    check_rows(vocabulary_rows(folder), rows_of(model))
    return LoadedCheckpoint(config, model, loaded.tokenizer, weights_check(fit, (*loaded.notes, *adapters_in(folder))))


def rows_of(model: PreTrainedModel) -> int:
    """How many tokens the model's table of embeddings knows."""
    table: Any = model.get_input_embeddings()
    return int(table.weight.shape[0])


def _from_files(
    found: Any,  # noqa: ANN401  a class of transformers', whose stubs know no keyword of from_pretrained
    folder: Path,
    config: PreTrainedConfig,
    dtype: torch.dtype,
    stored: Mapping[str, StoredTensor],
    removed: Mapping[str, str],
) -> tuple[PreTrainedModel, dict[str, Any]]:
    try:
        model, info = found.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            key_mapping=dict(removed) or None,
            ignore_mismatched_sizes=True,  # reported, and refused by `checked`: without it the names are not said
            output_loading_info=True,
            **options_of(found, stored),
            **OPTIONS,
        )
    except RuntimeError as error:
        if "CONVERSION" not in str(error):
            raise
        raise UnsupportedModel(CONVERSION) from error
    return model, info
