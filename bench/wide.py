"""A checkpoint with many small heads and random weights: 48 layers of 25 heads, d_head 8, SmolLM2's tokenizer."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers

N_LAYERS, N_HEADS, D_HEAD = 48, 25, 8


def make_wide(folder: Path, tokenizer_from: Path) -> None:
    """Write the checkpoint into `folder` unless it is there."""
    if (folder / "config.json").is_file():
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_from, local_files_only=True)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=N_HEADS * D_HEAD,
        intermediate_size=64,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=N_HEADS,
        head_dim=D_HEAD,
        max_position_embeddings=4096,
        initializer_range=0.2,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
