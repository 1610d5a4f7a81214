"""Attention as modules: one head on its own, and several side by side, for self- and cross-attention.

What happens between query, key, value and output is `models/attention.py`'s. It is done by the function that is handed
in as `attend`: `explicit_attention` below computes all weights at once, which is what people come to read and what
training uses; a run that captures the weights hands in `models/recorder.py`'s way, block by block.

This module knows nothing of layers, of models or of what is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from models.attention import attention_scores, attention_weights, weighted_sum
from models.errors import ConfigError, ShapeError
from models.positions import alibi_bias, alibi_slopes, rotate

# (module, query, key, value, attn_mask, position_bias) -> (output of the heads, weights or None); shapes as in
# `explicit_attention`
Attend = Callable[
    ["MultiHeadAttention", Tensor, Tensor, Tensor, Tensor | None, Tensor | None], tuple[Tensor, Tensor | None]
]


class SelfAttention(nn.Module):
    """One attention head with its own d_key and d_value: the smallest thing that attends.

    Source:  Vaswani et al. 2017, §3.2.1
    """

    def __init__(self, d_model: int, d_key: int, d_value: int) -> None:
        super().__init__()
        self.scaling = d_key**-0.5
        self.query = nn.Linear(d_model, d_key, bias=False)
        self.key = nn.Linear(d_model, d_key, bias=False)
        self.value = nn.Linear(d_model, d_value, bias=False)

    def forward(self, x: Tensor, attn_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Attend within x.

        Shapes:  x (batch, seq_len, d_model), attn_mask boolean, broadcastable to (batch, 1, seq_len, seq_len)
                 -> output (batch, seq_len, d_value), weights (batch, seq_len, seq_len)
        Raises:  ShapeError if the mask does not fit
        """
        # one head: (batch, 1, seq_len, d_key or d_value)
        query, key, value = (project(x).unsqueeze(-3) for project in (self.query, self.key, self.value))
        weights = attention_weights(attention_scores(query, key, self.scaling), attn_mask)
        return weighted_sum(weights, value).squeeze(-3), weights.squeeze(-3)


def explicit_attention(
    module: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    position_bias: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Attend with all weights at once: scores, softmax, weighted sum.

    Shapes:  query (batch, n_heads, query_len, d_head), key and value (batch, n_kv_heads, key_len, d_head), attn_mask
             boolean and position_bias, each broadcastable to (batch, n_heads, query_len, key_len)
             -> output (batch, n_heads, query_len, d_head), weights (batch, n_heads, query_len, key_len)
    Values:  in training some weights are dropped from the sum; those returned are whole
    Raises:  ShapeError if the mask does not fit
    Source:  Vaswani et al. 2017, eq. 1; dropped weights: the authors' tensor2tensor and GPT-2
    """
    scores = attention_scores(query, key, module.scaling, position_bias=position_bias)
    weights = attention_weights(scores, attn_mask)
    return weighted_sum(dropout(weights, module.dropout, module.training), value), weights


class MultiHeadAttention(nn.Module):
    """Several heads side by side, each on its own part of d_model; self- and cross-attention, grouped key/value heads.

    positions: None, or "rotary" or "alibi", which act on queries, keys and scores; only for self-attention
    dropout: share of the weights that training leaves out of the sum

    Source:  Vaswani et al. 2017, §3.2.2; grouped heads: Ainslie et al. 2023
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        bias: bool = True,
        positions: Literal["rotary", "alibi"] | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        check_heads(d_model, n_heads, n_kv_heads)
        if positions not in (None, "rotary", "alibi"):  # other kinds are added before attention: here they do nothing
            raise ConfigError(f"positions in attention must be None, 'rotary' or 'alibi', got {positions!r}")
        self.n_heads, self.n_kv_heads, self.d_head = n_heads, n_kv_heads, d_model // n_heads
        self.scaling = self.d_head**-0.5
        self.positions, self.dropout = positions, dropout
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.value = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Tensor,
        source: Tensor | None = None,
        attn_mask: Tensor | None = None,
        *,
        attend: Attend = explicit_attention,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Let x attend to itself, or to `source` where it is given (cross-attention).

        With a cache, x is what comes after the positions that it holds, and may attend to those too.

        Shapes:  x (batch, query_len, d_model), source (batch, key_len, d_model), attn_mask boolean, broadcastable to
                 (batch, n_heads, query_len, key_len)
                 -> output (batch, query_len, d_model), weights (batch, n_heads, query_len, key_len), or None where
                 `attend` does not give them
        Raises:  ShapeError if x, source or the mask does not fit; ConfigError if the cache holds another source
        """
        check_sequence("x", x, self.query.in_features)
        if source is not None:
            check_sequence("source", source, self.query.in_features, x.shape[0])
        query = split_heads(self.query(x), self.n_heads)  # (batch, n_heads, query_len, d_head)
        first = 0 if cache is None else cache.length(self)
        bias: Tensor | None = None
        if source is None:
            key, value = self._keys_and_values(x)
            if self.positions == "rotary":
                query, key = rotate(query, first), rotate(key, first)
            if cache is not None:
                key, value = cache.extend(self, key, value)
            if self.positions == "alibi":
                slopes = alibi_slopes(self.n_heads).to(query)
                bias = alibi_bias(slopes, query.shape[-2], key.shape[-2])  # (n_heads, query_len, key_len)
        elif first and cache is not None:
            key, value = cache.held(self, source)
        else:
            key, value = self._keys_and_values(source)
            if cache is not None:
                cache.extend(self, key, value)
                cache.note(self, source)
        heads, weights = attend(self, query, key, value, attn_mask, bias)
        return self.output(merge_heads(heads)), weights

    def _keys_and_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        # two of (batch, n_kv_heads, key_len, d_head)
        return split_heads(self.key(source), self.n_kv_heads), split_heads(self.value(source), self.n_kv_heads)


class KeyValueCache:
    """The keys and values that each module has computed so far, so that the next token need not compute them again.

    Keys are kept as attention uses them, so rotary ones are already turned.
    """

    def __init__(self) -> None:
        self._held: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        self._sources: dict[nn.Module, Tensor] = {}
        self._in_step = False
        self.positions = 0  # of the text so far, in every module

    def begin_step(self) -> None:
        """Note that the decoder begins to read more tokens.

        Raises:  ConfigError if the step before was not ended: some modules hold its tokens then and others do not
        """
        if self._in_step:
            raise ConfigError(
                "this cache was left in the middle of a step, by an error or an interruption: take a new one"
            )
        self._in_step = True

    def end_step(self, n_tokens: int) -> None:
        """Note that every module holds so many more positions."""
        self._in_step = False
        self.positions += n_tokens

    def length(self, module: nn.Module) -> int:
        """How many positions are held for a module; 0 before its first call."""
        return self._held[module][0].shape[-2] if module in self._held else 0

    def note(self, module: nn.Module, source: Tensor) -> None:
        """Note of what the keys and values of a cross-attention were computed.

        Shapes:  source (batch, key_len, d_model)
        """
        self._sources[module] = source

    def held(self, module: nn.Module, source: Tensor) -> tuple[Tensor, Tensor]:
        """What is held for a cross-attention, whose source is the same at every step.

        Shapes:  source (batch, key_len, d_model) -> keys and values, each (batch, n_kv_heads, key_len, d_head)
        Raises:  ConfigError if they were computed of another source
        """
        noted = self._sources[module]
        if source is not noted and not torch.equal(source, noted):
            raise ConfigError("this cache holds the keys and values of another memory: take a new one for each memory")
        return self._held[module]

    def extend(self, module: nn.Module, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Hold more positions.

        Shapes:  key and value (batch, n_kv_heads, new positions, d_head) -> all positions, the held ones first
        """
        if module in self._held:
            held_key, held_value = self._held[module]
            key, value = torch.cat([held_key, key], -2), torch.cat([held_value, value], -2)
        self._held[module] = key, value
        return key, value


def check_sequence(name: str, x: Tensor, d_model: int, batch: int | None = None) -> None:
    """See that there are vectors of this width; one text for several would be spread out without a word.

    Shapes:  x (batch, seq_len, d_model), none of them 0; any batch if none is given
    Raises:  ShapeError
    """
    if x.dim() != 3 or 0 in x.shape or x.shape[2] != d_model or batch not in (None, x.shape[0]):
        expected = f"({'batch' if batch is None else batch}, seq_len, {d_model}), none of them 0"
        raise ShapeError(f"{name} must be {expected}, got {tuple(x.shape)}")


def check_heads(d_model: int, n_heads: int, n_kv_heads: int) -> None:
    """Raise ConfigError if d_model cannot be shared out among so many heads."""
    if n_heads < 1 or n_kv_heads < 1:
        raise ConfigError(f"there must be at least one head, got n_heads={n_heads}, n_kv_heads={n_kv_heads}")
    if d_model % n_heads:
        raise ConfigError(f"d_model must be a multiple of n_heads, got d_model={d_model}, n_heads={n_heads}")
    if n_heads % n_kv_heads:
        raise ConfigError(f"n_heads must be a multiple of n_kv_heads, got n_heads={n_heads}, n_kv_heads={n_kv_heads}")


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Cut the last axis into heads and move them before the positions.

    Shapes:  (batch, seq_len, n_heads · d_head) -> (batch, n_heads, seq_len, d_head)
    Raises:  ShapeError if the last axis is not a multiple of n_heads
    """
    if x.shape[-1] % n_heads:
        raise ShapeError(f"the last axis must be a multiple of n_heads={n_heads}, got {tuple(x.shape)}")
    heads: Tensor = x.unflatten(-1, (n_heads, -1))  # (batch, seq_len, n_heads, d_head)
    return heads.transpose(-3, -2)  # (batch, n_heads, seq_len, d_head)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads back side by side: the inverse of `split_heads`.

    Shapes:  (batch, n_heads, seq_len, d_head) -> (batch, seq_len, n_heads · d_head)
    """
    return x.transpose(-3, -2).flatten(-2)  # the transpose comes first: flattening before it would mix positions
