"""What decides a Transformer's shape: one frozen record, checked when it is made, written to and read from JSON.

This module knows nothing of tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from models.errors import ConfigError
from models.multi_head import check_heads
from models.positions import Positions

Kind = Literal["encoder", "decoder", "encoder-decoder"]
Norm = Literal["pre", "post"]
Activation = Literal["gelu", "gelu_tanh", "relu"]


@dataclass(frozen=True)
class TransformerConfig:
    """The shape of a Transformer.

    kind              encoder (every token sees every token), decoder (each sees those before it), encoder-decoder
    n_layers          layers of the encoder or decoder; of each of the two where there are both
    max_tokens        longest text; with learned positions there is no vector for a longer one
    norm              pre: x + sublayer(norm(x)), with one more norm at the end; post: norm(x + sublayer(x))
    scale_embeddings  multiply embeddings by √d_model, so that waves of size 1 do not drown them (Vaswani et al., §3.4)
    tied              the output layer is the embedding table, transposed
    initial_std       spread of the weights before training (0.02 suits GPT-2's width; narrow models want more)
    dropout           of embeddings and of what each sublayer adds; attention_dropout of the weights
    """

    kind: Kind
    vocab_size: int
    d_model: int
    n_heads: int
    n_layers: int
    d_ff: int
    max_tokens: int
    n_kv_heads: int | None = None
    norm: Norm = "pre"
    activation: Activation = "gelu"
    positions: Positions = "learned"
    scale_embeddings: bool = False
    tied: bool = True
    bias: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    norm_eps: float = 1e-5
    initial_std: float = 0.02

    def __post_init__(self) -> None:
        """Raises ConfigError; the message gives expected and given."""
        for name in ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_tokens"):
            _check(name, type(getattr(self, name)) is int, "an integer", getattr(self, name))
        _check("n_kv_heads", type(self.n_kv_heads) in (int, type(None)), "an integer or None", self.n_kv_heads)
        for name in ("dropout", "attention_dropout", "norm_eps", "initial_std"):
            _check(name, type(getattr(self, name)) in (int, float), "a number", getattr(self, name))
        for name in ("scale_embeddings", "tied", "bias"):
            _check(name, type(getattr(self, name)) is bool, "True or False", getattr(self, name))
        check_heads(self.d_model, self.n_heads, self.n_heads if self.n_kv_heads is None else self.n_kv_heads)
        for name, choices in (("kind", Kind), ("norm", Norm), ("activation", Activation), ("positions", Positions)):
            _check(name, getattr(self, name) in get_args(choices), f"one of {get_args(choices)}", getattr(self, name))
        for name in ("vocab_size", "d_model", "n_layers", "d_ff", "max_tokens"):
            _check(name, getattr(self, name) >= 1, "at least 1", getattr(self, name))
        for name in ("dropout", "attention_dropout"):
            _check(name, 0 <= getattr(self, name) < 1, "from 0 to below 1", getattr(self, name))
        _check("norm_eps", 0 <= self.norm_eps < math.inf, "at least 0 and finite", self.norm_eps)
        _check("initial_std", 0 < self.initial_std < math.inf, "above 0 and finite", self.initial_std)
        if self.positions == "rotary":
            d_head = self.d_model // self.n_heads
            _check("d_model / n_heads", d_head % 2 == 0, "even for rotary positions", d_head)
        if self.positions == "sinusoidal":
            _check("d_model", self.d_model % 2 == 0, "even for sinusoidal positions", self.d_model)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; `from_dict` gives it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TransformerConfig:
        """The configuration that `as_dict` gave. Raises ConfigError if fields are missing or unknown."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise ConfigError(f"unknown fields in a Transformer's configuration: {', '.join(unknown)}")
        try:
            return cls(**data)
        except TypeError as error:
            raise ConfigError(f"a Transformer's configuration is not complete: {error}") from error


def _check(name: str, holds: bool, expected: str, given: object) -> None:
    if not holds:
        raise ConfigError(f"{name} must be {expected}, got {given!r}")
