"""A tiny Llama in a GGUF file, for tests of the conversion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from tokenizers.pre_tokenizers import ByteLevel

WIDTH, VOCAB, LAYERS, HEADS, KV_HEADS = 64, 260, 2, 4, 2


def write_gguf(path: Path, seed: int = 0, left_out: str | None = None) -> Path:
    """2 layers, 4 heads over 2 key/value heads; matrices in Q4_1 as in the real file; a byte-level tokenizer.

    left_out: a tensor that is not written
    """
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(32)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(VOCAB)
    alphabet = sorted(ByteLevel.alphabet())
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["<s>", "</s>", *alphabet, "he", "Ġh"])
    writer.add_token_merges(["h e", "Ġ h"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    random = np.random.default_rng(seed)
    for name, shape in _shapes().items():
        if name == left_out:
            continue
        values = random.normal(size=shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, values)
        else:
            kind = GGMLQuantizationType.Q4_1
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _shapes() -> dict[str, tuple[int, ...]]:
    square, grouped = (WIDTH, WIDTH), (WIDTH * KV_HEADS // HEADS, WIDTH)
    block = {
        "attn_norm": (WIDTH,),
        "attn_q": square,
        "attn_k": grouped,
        "attn_v": grouped,
        "attn_output": square,
        "ffn_norm": (WIDTH,),
        "ffn_gate": square,
        "ffn_up": square,
        "ffn_down": square,
    }
    blocks = {f"blk.{i}.{name}.weight": shape for i in range(LAYERS) for name, shape in block.items()}
    return {"token_embd.weight": (VOCAB, WIDTH), "output_norm.weight": (WIDTH,), **blocks}
