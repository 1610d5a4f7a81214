"""The layers of a Transformer: attention and a feed-forward network, each around a residual connection and a norm.

This module knows nothing of tokens, positions or stacks of layers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from models.multi_head import Attend, KeyValueCache, MultiHeadAttention, explicit_attention
from models.transformer_config import TransformerConfig

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),  # GPT-2's
    "relu": nn.ReLU,
}


class FeedForward(nn.Module):
    """Two linear maps with a non-linearity between, the same for every position.

    Source:  Vaswani et al. 2017, §3.3
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]()
        self.outer = nn.Linear(config.d_ff, config.d_model, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position by itself.

        Shapes:  (batch, seq_len, d_model) -> same
        """
        output: Tensor = self.outer(self.activation(self.inner(x)))
        return output


class TransformerLayer(nn.Module):
    """Self-attention, cross-attention where there is something to cross to, feed-forward.

    Source:  Vaswani et al. 2017, §3.1 (norm after); Xiong et al. 2020 (norm before)
    """

    def __init__(self, config: TransformerConfig, *, cross: bool = False) -> None:
        super().__init__()
        self.norm_first = config.norm == "pre"
        self.self_attention = _attention(config, _in_attention(config))
        self.self_attention_norm = _norm(config)
        self.cross_attention = _attention(config, None) if cross else None
        self.cross_attention_norm = _norm(config) if cross else None
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = _norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        attend: Attend = explicit_attention,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Pass x through the layer.

        Shapes:  x (batch, query_len, d_model), attn_mask boolean, broadcastable to (batch, n_heads, query_len,
                 key_len); memory (batch, memory_len, d_model), what cross-attention looks at, memory_mask boolean,
                 broadcastable to (batch, n_heads, query_len, memory_len) -> (batch, query_len, d_model)
        Raises:  ShapeError if a mask does not fit
        """
        options = {"attend": attend, "cache": cache}
        x = self._add(x, self.self_attention_norm, partial(self.self_attention, attn_mask=attn_mask, **options))
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            cross = partial(self.cross_attention, source=memory, attn_mask=memory_mask, **options)
            x = self._add(x, self.cross_attention_norm, cross)
        return self._add(x, self.feed_forward_norm, self.feed_forward)

    def _add(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Any]) -> Tensor:
        # the residual connection: what the sublayer finds is added to x
        found = sublayer(norm(x) if self.norm_first else x)
        found = self.dropout(found[0] if isinstance(found, tuple) else found)  # attention gives weights too
        added: Tensor = x + found if self.norm_first else norm(x + found)
        return added


class Stack(nn.Module):
    """Layers on top of each other; with Pre-Norm one more norm at the end, since the last sum has had none."""

    def __init__(self, config: TransformerConfig, *, cross: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(TransformerLayer(config, cross=cross) for _ in range(config.n_layers))
        self.final_norm = _norm(config) if config.norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        attend: Attend = explicit_attention,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Pass x through all layers.

        Shapes:  as for `TransformerLayer.forward`
        Raises:  ShapeError if a mask does not fit
        """
        for layer in self.layers:
            x = layer(x, attn_mask, memory, memory_mask, attend=attend, cache=cache)
        normed: Tensor = self.final_norm(x)
        return normed


def _in_attention(config: TransformerConfig) -> Literal["rotary", "alibi"] | None:
    # the kinds of positions that act inside attention; the others are added at the input
    return config.positions if config.positions in ("rotary", "alibi") else None


def _attention(config: TransformerConfig, positions: Literal["rotary", "alibi"] | None) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        n_kv_heads=config.n_kv_heads,
        bias=config.bias,
        positions=positions,
        dropout=config.attention_dropout,
    )


def _norm(config: TransformerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


@torch.no_grad()
def initialise(module: nn.Module, n_layers: int, std: float = 0.02) -> None:
    """Draw small weights; what is added to the residual stream is smaller the more layers add to it.

    Shapes:  any module made of the layers above
    Source:  Radford et al. 2019 (GPT-2), §2.3
    """
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            adds_to_residual = name.endswith((".output", ".outer"))
            nn.init.normal_(part.weight, std=std / (2 * n_layers) ** 0.5 if adds_to_residual else std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
