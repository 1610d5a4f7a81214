"""Small random Transformers of ours, torch's layers with the same weights, and all explicit weights of a pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from models.layers import FeedForward, Stack, TransformerLayer
from models.multi_head import MultiHeadAttention, explicit_attention
from models.recorder import site_of
from models.transformer import Transformer
from models.transformer_config import Kind, TransformerConfig

KINDS: tuple[Kind, ...] = ("encoder", "decoder", "encoder-decoder")
POSITIONS = ("none", "sinusoidal", "learned", "rotary", "alibi")
VOCABULARY = 61
LARGER = 6.0  # times the weights at the start, so that layers change what passes through them
PEAKED = 2.5  # times more for query and key, so that attention is not flat


def small_config(kind: Kind, **changes: Any) -> TransformerConfig:
    """A Transformer of three layers and four heads."""
    values: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "d_model": 48,
        "n_heads": 4,
        "n_layers": 3,
        "d_ff": 64,
        "max_tokens": 320,
    }
    return TransformerConfig(kind=kind, **(values | changes))


@torch.no_grad()
def small_model(kind: Kind, dtype: torch.dtype = torch.float64, **changes: Any) -> Transformer:
    """The same with random weights: every parameter differs from its neighbours, biases and norms included."""
    model = Transformer(small_config(kind, **changes))
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter.copy_((1.0 if name.endswith("norm.weight") else 0.0) + 0.2 * torch.randn_like(parameter))
        else:
            parameter.mul_(LARGER * (PEAKED if name.endswith(("query.weight", "key.weight")) else 1.0))
    return model.to(dtype).eval()


def random_ids(length: int, seed: int = 3, batch: int = 1) -> Tensor:
    """Token ids (batch, length)."""
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))


def noting(model: nn.Module, noted: dict[tuple[str, int], Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """`explicit_attention` which notes the weights of each module by site and layer: the last call counts."""
    names = {id(module): name for name, module in model.named_modules()}
    sites = ("encoder.self", "decoder.self", "decoder.cross")

    def attend(module: MultiHeadAttention, *inputs: Any) -> tuple[Tensor, Tensor]:
        output, weights = explicit_attention(module, *inputs)
        name = names[id(module)]
        noted[site_of(name, sites), int(name.split(".layers.")[1].split(".")[0])] = weights
        return output, weights

    return attend


@torch.no_grad()
def explicit_weights(model: Transformer, ids: Tensor, target: Tensor | None = None) -> dict[tuple[str, int], Tensor]:
    """All weights of a pass by site and layer, each (batch, n_heads, query_len, key_len)."""
    noted: dict[tuple[str, int], Tensor] = {}
    model.hidden(ids, target, attend=noting(model, noted))
    return noted


def largest(one: Tensor, other: Tensor) -> float:
    """Largest difference."""
    assert one.shape == other.shape
    return float((one - other).abs().max())


# ------------------------------------------------------------------------------------------ torch's weights into ours


@torch.no_grad()
def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Weights of torch's attention, whose query, key and value are one matrix."""
    parts = (ours.query, ours.key, ours.value)
    for part, weight in zip(parts, theirs.in_proj_weight.chunk(3), strict=True):
        part.weight.copy_(weight)
    if theirs.in_proj_bias is not None:
        for part, bias in zip(parts, theirs.in_proj_bias.chunk(3), strict=True):
            part.bias.copy_(bias)
    ours.output.load_state_dict(theirs.out_proj.state_dict())


def copy_layer(ours: TransformerLayer, theirs: nn.Module) -> None:
    """Weights of torch's encoder or decoder layer."""
    feed_forward: FeedForward = ours.feed_forward
    copy_attention(ours.self_attention, theirs.get_submodule("self_attn"))  # type: ignore[arg-type]
    norms = [ours.self_attention_norm, ours.feed_forward_norm]
    if ours.cross_attention is not None:
        assert ours.cross_attention_norm is not None
        copy_attention(ours.cross_attention, theirs.get_submodule("multihead_attn"))  # type: ignore[arg-type]
        norms.insert(1, ours.cross_attention_norm)
    for number, norm in enumerate(norms, start=1):
        norm.load_state_dict(theirs.get_submodule(f"norm{number}").state_dict())
    feed_forward.inner.load_state_dict(theirs.get_submodule("linear1").state_dict())
    feed_forward.outer.load_state_dict(theirs.get_submodule("linear2").state_dict())


def copy_stack(ours: Stack, theirs: nn.Module) -> None:
    """Weights of torch's encoder or decoder, with the norm at its end."""
    for own, other in zip(ours.layers, theirs.get_submodule("layers").children(), strict=True):
        assert isinstance(own, TransformerLayer)
        copy_layer(own, other)
    if isinstance(ours.final_norm, nn.LayerNorm):
        ours.final_norm.load_state_dict(theirs.get_submodule("norm").state_dict())


@torch.no_grad()
def scrambled(module: nn.Module) -> nn.Module:
    """The module with random biases and norms: at the start they are 0 and 1, which would hide a mix-up."""
    for name, parameter in module.named_parameters():
        if parameter.dim() == 1:
            parameter.copy_((1.0 if "norm" in name and "weight" in name else 0.0) + 0.3 * torch.randn_like(parameter))
    return module.eval()
