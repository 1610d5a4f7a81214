"""Tiny random models of the families that the engine must serve. Weights are scaled up so that attention is peaked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    BertConfig,
    Gemma2Config,
    GPT2Config,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    T5Config,
)

from models.huggingface import HuggingFaceModel

VOCABULARY = 97
PEAKED = 16.0  # factor on query and key projections; T5 does not scale its scores and needs less

_grouped: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
}

CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "gpt2": lambda: GPT2Config(vocab_size=VOCABULARY, n_embd=48, n_layer=3, n_head=6, n_positions=512),
    "bert": lambda: BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=6,
        intermediate_size=64,
    ),
    "llama": lambda: LlamaConfig(**_grouped),
    "mistral": lambda: MistralConfig(**_grouped, sliding_window=4),
    "gemma2": lambda: Gemma2Config(**_grouped, sliding_window=5, attn_logit_softcapping=0.8, query_pre_attn_scalar=8),
    "gpt_oss": lambda: GptOssConfig(**_grouped, sliding_window=6, num_local_experts=2, num_experts_per_tok=1),
    "t5": lambda: T5Config(vocab_size=VOCABULARY, d_model=48, d_kv=8, d_ff=64, num_layers=3, num_heads=6),
}
FLOAT32_INSIDE = {"llama", "mistral", "gemma2", "gpt_oss", "t5"}  # norms or softmax in float32 whatever the dtype


def tiny_model(family: str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A random model of the family, in eval mode, with the same weights every time."""
    torch.manual_seed(7)
    config = CONFIGS[family]()
    auto: Any = AutoModelForSeq2SeqLM if family == "t5" else AutoModel if family == "bert" else AutoModelForCausalLM
    model: Any = auto.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "sinks" in name:
                parameter.copy_(torch.randn_like(parameter))
            elif any(part in name for part in ("q_proj", "k_proj", "query", "key", "c_attn", ".q.", ".k.")):
                parameter.mul_(3.0 if family == "t5" else PEAKED)
    if family == "gpt_oss":
        model.set_experts_implementation("eager")  # torch's grouped product has no float64
    looked_at: PreTrainedModel = model.to(dtype).eval()
    return looked_at


def looked_into(family: str, dtype: torch.dtype = torch.float32) -> HuggingFaceModel:
    """The same behind our protocol."""
    return HuggingFaceModel(
        tiny_model(family, dtype), None, max_tokens=512, weight_precision=str(dtype), revision="tiny"
    )


def random_ids(count: int, seed: int = 0) -> list[int]:
    """Token ids that do not mean anything."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (count,), generator=generator).tolist()
