"""Tiny random checkpoints on disk, for tests of what a folder holds. They say nothing about real models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

SMALL_GPT2: dict[str, Any] = {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 16, "vocab_size": 8}
SMALL_BERT: dict[str, Any] = {
    "hidden_size": 8,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 8,
    "vocab_size": 8,
    "max_position_embeddings": 32,
}
SMALL_T5: dict[str, Any] = {
    "d_model": 8,
    "d_kv": 4,
    "d_ff": 8,
    "num_layers": 2,
    "num_heads": 2,
    "vocab_size": 8,
    "decoder_start_token_id": 0,
}


def save_tokenizer(folder: Path) -> None:
    """A tokenizer of four words."""
    vocab = {"<unk>": 0, "the": 1, "cat": 2, "saw": 3}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel(vocab, "<unk>")), unk_token="<unk>")
    tokenizer.save_pretrained(folder)


def save_gpt2(folder: Path, *, dtype: torch.dtype = torch.float32, shard: str = "50GB") -> Path:
    """A decoder: 2 layers, 2 heads, 16 positions."""
    model = GPT2LMHeadModel(GPT2Config(**SMALL_GPT2))
    torch.nn.Module.to(model, dtype)
    model.save_pretrained(folder, max_shard_size=shard)
    save_tokenizer(folder)
    return folder


def save_bert(folder: Path) -> Path:
    """An encoder: 3 layers, 4 heads, 32 positions."""
    BertModel(BertConfig(**SMALL_BERT)).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def save_t5(folder: Path) -> Path:
    """An encoder–decoder without a table of positions."""
    T5ForConditionalGeneration(T5Config(**SMALL_T5)).save_pretrained(folder)
    save_tokenizer(folder)
    return folder
