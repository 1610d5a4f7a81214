"""Tiny random models of every family of text models that transformers knows, made from its own configurations.

The families are read from transformers' tables of classes, and each configuration is shrunk by the names of its fields;
what a family needs beyond that stands in OVERRIDES. Nothing here knows of our code.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto

from tests.parity.sweep.overrides import OVERRIDES, VARIANTS

VOCABULARY = 97
N_LAYERS = 3
LARGEST = 14_000_000  # parameters of a model that is tried

# The tables of models that read text and nothing else has to be given.
TABLES = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",
    "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES",
)

# Fields by name. Heads are of 8 numbers, 6 of them, 2 with keys of their own: grouped heads would show if mixed up.
SMALL: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "src_vocab_size", "tgt_vocab_size", "decoder_vocab_size"), VOCABULARY),
    **dict.fromkeys(("vocab_size_per_layer_input",), VOCABULARY),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "emb_dim", "dim", "model_dim", "embedding_size"), 48),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "n_inner", "encoder_ffn_dim", "decoder_ffn_dim"), 64),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "ffn_hidden_size"), 32),
    **dict.fromkeys(("shared_intermediate_size", "intermediate_size_mlp", "moe_shared_expert_intermediate_size"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"), N_LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), N_LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 6),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 6),
    **dict.fromkeys(("num_key_value_heads", "n_head_kv", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "d_head", "attention_head_dim", "kv_channels"), 8),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_source_positions"), 512),
    **dict.fromkeys(("max_target_positions", "original_max_position_embeddings"), 512),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_k", "top_k_experts", "moe_topk"), 2),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank"), 16),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim"), 4),
    "qk_head_dim": 8,
    "v_head_dim": 6,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "n_shared_experts": 1,
    "index_topk": 12,
    **dict.fromkeys(("index_n_heads", "index_head_dim"), 8),
    "hidden_size_per_layer_input": 16,
    "sliding_window": 16,
    "attention_chunk_size": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
}
# Factors on what makes queries and keys, in a model whose weights are drawn with a deviation of 0.02; T5's kin draw
# larger ones and do not scale their scores; where queries and keys are normalised, only their norms' weights count, and
# Gemma 4 does not scale the scores of those.
PEAKED, PEAKED_T5, PEAKED_NORM = 16.0, 3.0, 3.0
NORMS = (
    "q_norm",
    "k_norm",
    "query_layernorm",
    "key_layernorm",
    "query_norm",
    "key_norm",
    "q_layernorm",
    "k_layernorm",
    "a_layernorm",
    "latent_norm",
    "lora_norm",
)
NORMALISED_UNSCALED = ("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text")
FACTORS = {
    **dict.fromkeys(("t5", "mt5", "umt5", "switch_transformers", "longt5"), PEAKED_T5),
    **dict.fromkeys(("longcat_flash", "minicpm3", "youtu"), 6.0),  # two matrices in a row make their queries
    "mobilebert": 3000.0,  # its hidden states are small: a narrow layer comes before its attention
}
QUERY_AND_KEY = (
    "q_proj", "k_proj", "query", "key", "c_attn", "qkv", "q_lin", "k_lin", ".q.", ".k.", "Wqkv", "W_pack", "in_proj",
    "q_b_proj", "kv_b_proj", "q_a_proj", "kv_a_proj", "q_up", "k_up", "wq", "wk", "Wq", "Wk", "kv_proj",
    "self_attention.experts.input_linear",
)  # fmt: skip


def families() -> list[str]:
    """Every family of text models that has a configuration, and further members of some; sorted."""
    found = {name for table in TABLES for name in getattr(modeling_auto, table)}
    return sorted({*((found | {"clip_text_model"}) & set(CONFIG_MAPPING)), *VARIANTS})


def tiny_config(name: str) -> PreTrainedConfig:
    """A small configuration of the family. Raises whatever transformers raises where it cannot be made."""
    family, _, extra = VARIANTS.get(name, (name, "", {}))
    settings = _shrunk(CONFIG_MAPPING[family])
    if "kv_lora_rank" in settings and "num_key_value_heads" in settings:
        settings["num_key_value_heads"] = settings["num_attention_heads"]  # keys of one latent vector: no groups
    config = CONFIG_MAPPING[family](**_merged(_merged(settings, OVERRIDES.get(family, {})), extra))
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 1
    return config


def class_for(name: str, config: PreTrainedConfig) -> Any:  # noqa: ANN401  transformers' classes share no useful type
    """The class with which such a model is published, or an Auto class that stands for it."""
    _, own, _ = VARIANTS.get(name, (name, "", {}))
    if own:
        named: Any = getattr(transformers, own)
        return named
    family = config.model_type
    if family in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES and config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    masked = family in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if family in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not masked and not config.is_encoder_decoder:
        return transformers.AutoModelForCausalLM
    return transformers.AutoModel


def why_not_tried(name: str) -> str | None:
    """Why no small model of a family can be made here; None where one can."""
    try:
        with torch.device("meta"):
            model = empty_model(name, tiny_config(name))
    except Exception as error:  # noqa: BLE001  configurations refuse small numbers each in their own way
        return type(error).__name__
    size = sum(parameter.numel() for parameter in model.parameters())
    return f"{size:,} parameters" if size > LARGEST else None


def empty_model(name: str, config: PreTrainedConfig) -> PreTrainedModel:
    """A model of this configuration, its weights as transformers draws them."""
    kind = class_for(name, config)
    made: PreTrainedModel = (kind.from_config(config) if "Auto" in kind.__name__ else kind(config)).eval()
    return made


def tiny_model(name: str, config: PreTrainedConfig) -> PreTrainedModel:
    """A random model, the same every time, with peaked attention: flat weights would hide a wrong scale."""
    torch.manual_seed(7)
    model = empty_model(name, config)
    factor = FACTORS.get(config.model_type, PEAKED)
    with torch.no_grad():
        for place, parameter in model.named_parameters():
            if "sinks" in place:
                parameter.copy_(torch.randn_like(parameter))
            elif (
                any(part in place for part in NORMS) and config.model_type not in NORMALISED_UNSCALED
            ):  # some norms add 1 to their weights, which then begin at 0
                parameter.mul_(PEAKED_NORM).add_(0.0 if float(parameter.abs().max()) else PEAKED_NORM - 1.0)
            elif parameter.dim() > 1 and any(part in place for part in QUERY_AND_KEY):
                parameter.mul_(factor)
    return model


def _shrunk(kind: type[PreTrainedConfig]) -> dict[str, Any]:
    """The settings of a configuration class that SMALL knows, parts of it likewise."""
    names = {field.name for field in dataclasses.fields(kind)}
    settings: dict[str, Any] = {name: value for name, value in SMALL.items() if name in names}
    for name, part in kind.sub_configs.items():
        if part is not AutoConfig:  # which could be any
            settings[name] = _shrunk(part)
    return settings


def _merged(settings: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    merged = dict(settings)
    for name, value in extra.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict) and "model_type" not in value
        merged[name] = _merged(merged[name], value) if both else value
    return merged
