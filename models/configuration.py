"""What a transformers model's configuration says: which class loads it, how many attention modules it has, its limits.

Runs nothing. The words (decoder, encoder, sites) are the project's; the attribute names are transformers'.
"""

from __future__ import annotations

import inspect
from typing import Any, Literal

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from models.checkpoints import types_of
from models.errors import UnsupportedModel
from models.protocol import ModelDescription


def expected_modules(model: PreTrainedModel) -> dict[str, int]:
    """How many attention modules each site has, from the configuration alone: the order is the order of the sites.

    Raises:  UnsupportedModel if some layers are not softmax attention; the message names them
    """
    config = model.config
    if config.is_encoder_decoder:
        encoder = getattr(config, "encoder_layers", None) or config.num_hidden_layers
        decoder = getattr(config, "decoder_layers", None) or getattr(config, "num_decoder_layers", None) or encoder
        return {"encoder.self": encoder, "decoder.self": decoder, "decoder.cross": decoder}
    kinds = getattr(config, "layer_types", None) or []
    other = [layer for layer, kind in enumerate(kinds) if "linear" in kind or "attention" not in kind]
    if other:
        raise UnsupportedModel(
            f"layers {other} of this model are {kinds[other[0]]}, not softmax attention: they have no weights"
        )
    return {"decoder.self" if _is_causal(model) else "encoder.self": config.num_hidden_layers}


def _is_causal(model: PreTrainedModel) -> bool:
    return any(getattr(module, "is_causal", False) for module in model.modules())


def reads_pairs(model: PreTrainedModel) -> bool:
    """Whether the model tells the tokens of a second text from those of the first: BERT-type encoders do."""
    if model.config.is_encoder_decoder or _is_causal(model) or types_of(model.config) < 2:
        return False
    return "token_type_ids" in inspect.signature(model.base_model.forward).parameters


def heads_of(config: PreTrainedConfig, site: str) -> tuple[int, int, int]:
    """Heads, key/value heads and width of a head at one site."""
    own = getattr(config, "decoder_attention_heads", None) if site.startswith("decoder") else None
    n_heads = own or config.num_attention_heads
    n_kv_heads = n_heads if own else getattr(config, "num_key_value_heads", None) or n_heads
    d_head = getattr(config, "head_dim", None) or getattr(config, "d_kv", None) or config.hidden_size // n_heads
    return n_heads, n_kv_heads, d_head


def auto_class(config: Any) -> Any:  # noqa: ANN401  transformers' Auto classes share no useful type
    """Choose transformers' class for a configuration: with its output layer where the model writes text."""
    architecture = (getattr(config, "architectures", None) or [""])[0]
    if config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    if architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return transformers.AutoModelForCausalLM
    return transformers.AutoModel


def describe(
    model: PreTrainedModel, expected: dict[str, int], *, max_tokens: int, weight_precision: str, revision: str
) -> ModelDescription:
    """Describe a loaded model in the project's words."""
    config = model.config
    kind: Literal["decoder", "encoder", "encoder-decoder"] = "decoder" if "decoder.self" in expected else "encoder"
    return ModelDescription(
        family=config.model_type,
        kind="encoder-decoder" if config.is_encoder_decoder else kind,
        n_layers=next(iter(expected.values())),
        n_heads=config.num_attention_heads,
        n_kv_heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
        max_tokens=max_tokens,
        implementation="transformers",
        dtype=str(model.dtype).removeprefix("torch.") if model.dtype == torch.float64 else "float32",
        weight_precision=weight_precision,
        revision=revision,
    )
