"""The output projection of an attention module: found by structure and shape, believed once it was seen at work.

`output` of a head's picture is ‖weight · value · W_O‖, so the part of W_O that reads the head must be known. It is
looked for where models keep it, and during each pass it is watched: a projection that is not handed exactly what our
attention gave (because something is gated or normalised in between) is not the one, and nothing is kept of it.

This module knows nothing of captures or of what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers.pytorch_utils import Conv1D

# What the projection is called inside an attention module: Llama and its kin, BART and OPT, GPT-2, T5, DistilBERT,
# GPT-NeoX, ModernBERT. BERT and its kin keep it in a module `output` beside their attention.
NAMES = ("o_proj", "out_proj", "c_proj", "o", "out_lin", "dense", "Wo")
BESIDE = "output.dense"


def output_norms(value: Tensor, projection: Tensor, n_heads: int) -> Tensor:
    """How long each head's value vectors are after the output projection: ‖value_j · W_O of the head‖.

    Shapes:  value (n_kv_heads, key_len, d_value), projection (n_heads · d_value, d_model) -> (n_heads, key_len)
    Values:  the projection's bias belongs to no key and is left out; biases of the values are part of them
    Source:  Kobayashi et al. 2020, eq. 5–6; the length is that of value · Rᵀ, where RᵀR is the Gram matrix of the
             head's part of W_O and R comes from its QR decomposition: d_value columns instead of d_model
    """
    parts = projection.to(value.dtype).unflatten(0, (n_heads, -1))  # (n_heads, d_value, d_model)
    short = torch.linalg.qr(parts.transpose(1, 2), mode="r").R  # (n_heads, min(d_value, d_model), d_value)
    each = value.repeat_interleave(n_heads // value.shape[0], 0)  # (n_heads, key_len, d_value)
    lengths: Tensor = torch.linalg.vector_norm(torch.bmm(each, short.transpose(1, 2)), dim=-1)
    return lengths


def find_projection(modules: Mapping[str, nn.Module], name: str, width: int) -> nn.Module | None:
    """The module that maps the joined heads of the attention module `name`, `width` numbers, back into the model.

    None where there is none of that shape, or more than one.
    """
    inside = [getattr(modules[name], own, None) for own in NAMES]
    beside = modules.get(f"{name.rpartition('.')[0]}.{BESIDE}")
    for places in (inside, [beside]):
        found = [
            place for place in places if isinstance(place, (nn.Linear, Conv1D)) and _matrix(place).shape[0] == width
        ]
        if found:
            return found[0] if len(found) == 1 else None
    return None


class WatchedProjections:
    """The output projections of one pass. `close` says which of them did not get what our attention gave."""

    def __init__(self, modules: Mapping[str, nn.Module], names: Mapping[int, str]) -> None:
        """modules: by qualified name; names: the same the other way round, by id."""
        self._modules, self._names = modules, names
        self._found: dict[nn.Module, nn.Module | None] = {}
        self._hooks: list[RemovableHandle] = []
        self._given: dict[nn.Module, Tensor] = {}  # what each module's attention gave and its projection must get
        self._refuted: set[nn.Module] = set()

    def matrix(self, module: nn.Module, width: int) -> Tensor | None:
        """The weights of an attention module's projection.

        Shapes:  -> (width, d_model); None where none was found
        """
        if module not in self._found:
            name = self._names.get(id(module))
            projection = None if name is None else find_projection(self._modules, name, width)
            self._found[module] = projection
            if projection is not None:
                self._hooks.append(projection.register_forward_pre_hook(lambda _own, args: self._compare(module, args)))
        found = self._found[module]
        return None if found is None else _matrix(found)

    def expect(self, module: nn.Module, output: Tensor) -> None:
        """Note what a module's attention gave, before its projection is called.

        Shapes:  output (1, query_len, n_heads, d_value)
        """
        if self._found.get(module) is not None:
            if module in self._given:
                self._refuted.add(module)  # called again, and its projection never was
            self._given[module] = output

    def close(self) -> set[nn.Module]:
        """Stop watching. The attention modules whose projection turned out not to be theirs."""
        for hook in self._hooks:
            hook.remove()
        return self._refuted | set(self._given)

    def _compare(self, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        given = self._given.pop(module, None)
        same = given is not None and args and torch.equal(args[0].reshape(-1), given.reshape(-1))
        if not same:
            self._refuted.add(module)


def _matrix(projection: nn.Linear | Conv1D | nn.Module) -> Tensor:
    weight = projection.weight
    assert isinstance(weight, Tensor)
    return weight if isinstance(projection, Conv1D) else weight.T  # a Conv1D keeps (in, out)
