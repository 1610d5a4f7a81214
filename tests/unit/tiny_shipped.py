"""Tiny untrained models, written and signed as shipped ones are. They say nothing about real models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from models.recipes import Prepared, Recipe
from models.shipped import TrainingFacts, sign, write_shipped
from models.training import Batch, TrainingConfig
from models.transformer import Transformer
from models.transformer_config import Kind, TransformerConfig

CHARACTERS = [*"0123456789-/ abcdefghijklmnopqrstuvwxyz"]
NAMES = ["<pad>", "<start>", "<end>", "<unk>", *CHARACTERS]
IDS = {"start_id": 1, "stop_id": 2}


def tokenizer_of_characters() -> Tokenizer:
    """One token for each character."""
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(NAMES)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def config_of(kind: Kind) -> TransformerConfig:
    """2 layers × 2 heads, 16 tokens."""
    return TransformerConfig(kind, len(NAMES), d_model=16, n_heads=2, n_layers=2, d_ff=16, max_tokens=16)


def write_tiny(root: Path, name: str, kind: Kind, extra_card: Mapping[str, Any] | None = None) -> Path:
    """The model `name` below `root`, and the hashes of all that is there."""
    config = config_of(kind)
    torch.manual_seed(5)

    def no_batch(_step: int, _part: int) -> Batch:
        raise AssertionError("nothing is trained here")

    extra = IDS if extra_card is None and kind == "encoder-decoder" else extra_card or {}
    prepared = Prepared(tokenizer_of_characters(), no_batch, {"texts": []}, lambda _model: {}, extra_card=extra)
    recipe = Recipe(name, f"a tiny {kind}", config, TrainingConfig(steps=1, rate=0.1), lambda _folder: prepared)
    write_shipped(root / name, recipe, prepared, Transformer(config), TrainingFacts("python", 0.1, [1.0]))
    sign(root)
    return root / name
