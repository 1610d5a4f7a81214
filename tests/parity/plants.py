"""Faults to plant: each changes one thing between the model's weights and what a reader is shown.

A plant is a function of the test's `monkeypatch`, applied before the run. Faults of one position are planted beyond the
part of a long text that is compared with the model's own kernel where they can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from models.blocks import Workspace
from models.blockwise import AttentionInputs, AttentionSummary, blockwise_attention
from models.capture import Capture
from models.capture_builder import CaptureBuilder
from models.huggingface import HuggingFaceModel
from models.interface import NAME, boolean_mask, everyhead_attention
from models.masks import MaskLayout

Plant = Callable[[pytest.MonkeyPatch, HuggingFaceModel], None]


def before(change: Callable[[dict[str, Any]], None]) -> Plant:
    """A fault on the way from the model to our attention: `change` alters what the interface hands over."""

    def plant(monkeypatch: pytest.MonkeyPatch, _model: HuggingFaceModel) -> None:
        def changed(
            module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **more: Any
        ) -> tuple[Tensor, None]:
            given = {"query": query.clone(), "key": key.clone(), "value": value, "attention_mask": mask, **more}
            change(given)
            return everyhead_attention(module, **given)

        monkeypatch.setitem(AttentionInterface._global_mapping, NAME, changed)

    return plant


def inside(change: Callable[[AttentionInputs], AttentionInputs]) -> Plant:
    """A fault inside our attention, in what it computes with."""

    def plant(_monkeypatch: pytest.MonkeyPatch, model: HuggingFaceModel) -> None:
        def compute(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
            return blockwise_attention(change(inputs), workspace)

        model._compute = compute

    return plant


def result(change: Callable[[AttentionSummary], None]) -> Plant:
    """A fault in what our attention gives."""

    def plant(_monkeypatch: pytest.MonkeyPatch, model: HuggingFaceModel) -> None:
        def compute(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
            summary = blockwise_attention(inputs, workspace)
            change(summary)
            return summary

        model._compute = compute

    return plant


def kept(change: Callable[[str, dict[str, Tensor]], None]) -> Plant:
    """A fault in the capture: `change` alters its tensors, called with the first site."""

    def plant(monkeypatch: pytest.MonkeyPatch, _model: HuggingFaceModel) -> None:
        build = CaptureBuilder.build

        def changed(self: CaptureBuilder) -> Capture:
            capture = build(self)
            tensors, metadata = capture.tensors(), capture.metadata()
            change(metadata["sites"][0]["site"], tensors)
            return Capture(tensors, metadata)

        monkeypatch.setattr(CaptureBuilder, "build", changed)

    return plant


def no_mask_inside(inputs: AttentionInputs) -> AttentionInputs:
    """Our attention sees every key."""
    full = MaskLayout.full(inputs.query.shape[1], inputs.key.shape[1])
    return replace(inputs, mask=full)


def see_everything(monkeypatch: pytest.MonkeyPatch, _model: HuggingFaceModel) -> None:
    """The mask function hides nothing."""

    def seen(*args: Any, **kwargs: Any) -> Tensor:
        return torch.ones_like(boolean_mask(*args, **kwargs))

    monkeypatch.setitem(AttentionMaskInterface._global_mapping, NAME, seen)


def forget_windows(monkeypatch: pytest.MonkeyPatch, _model: HuggingFaceModel) -> None:
    """The mask function knows causal masks only."""

    def causal(*args: Any, **kwargs: Any) -> Tensor:
        return torch.ones_like(boolean_mask(*args, **kwargs)).tril()

    monkeypatch.setitem(AttentionMaskInterface._global_mapping, NAME, causal)


def hide_the_last_key(monkeypatch: pytest.MonkeyPatch, _model: HuggingFaceModel) -> None:
    """The mask function hides one key from everybody, for models whose layers see all."""

    def less(*args: Any, **kwargs: Any) -> Tensor:
        mask = boolean_mask(*args, **kwargs).clone()
        mask[..., -1] = False
        return mask

    monkeypatch.setitem(AttentionMaskInterface._global_mapping, NAME, less)


def dropout_anywhere(monkeypatch: pytest.MonkeyPatch, model: HuggingFaceModel) -> None:
    """Every layer that is not attention drops a tenth of what it gives."""
    for name, module in model.model.named_modules():
        if name.endswith(("mlp", "intermediate", "DenseReluDense")):
            module.register_forward_hook(lambda _own, _args, out: torch.nn.functional.dropout(out, 0.1))


def bypass(_monkeypatch: pytest.MonkeyPatch, model: HuggingFaceModel) -> None:
    """The second attention module computes something plausible elsewhere."""
    site = next(iter(model.expected))
    names = [name for name, module in model.model.named_modules() if _is_attention(name, site)]
    parent, _, own = names[1].rpartition(".")
    module = model.model.get_submodule(names[1])

    n_more = 2 if names[1].endswith("SelfAttention") else 1  # T5 hands a position bias on as well

    class Bypass(nn.Module):
        is_causal = getattr(module, "is_causal", False)
        layer_idx = getattr(module, "layer_idx", None)

        def forward(self, hidden_states: Tensor, *_args: Any, **_more: Any) -> tuple[Tensor | None, ...]:
            return (hidden_states.roll(1, 1), *[None] * n_more)

    setattr(model.model.get_submodule(parent), own, Bypass())


def _is_attention(name: str, site: str) -> bool:
    if site == "encoder.self" and name.startswith("decoder"):
        return False
    return name.endswith(("self_attn", "attention.self", "SelfAttention"))


def swap(tensor: Tensor, dim: int, one: int, other: int) -> Tensor:
    """Two places of one axis exchanged."""
    order = list(range(tensor.shape[dim]))
    order[one], order[other] = order[other], order[one]
    return tensor.index_select(dim, torch.tensor(order))


def _exchange_layers(site: str, tensors: dict[str, Tensor], order: list[int]) -> None:
    before_it = dict(tensors)
    for name, tensor in before_it.items():
        if not name.startswith(f"{site}."):
            continue
        inner = name[len(site) + 1 :]
        number, _, rest = inner.partition(".")
        if number.isdigit():
            tensors[name] = before_it[f"{site}.{order[int(number)]}.{rest}"]
        else:
            tensors[name] = tensor[order]


def two_layers(site: str, tensors: dict[str, Tensor]) -> None:
    """The first and the second layer exchanged, with all that is kept of them."""
    _exchange_layers(site, tensors, [1, 0, 2])


def layers_reversed(site: str, tensors: dict[str, Tensor]) -> None:
    """All layers the other way round."""
    _exchange_layers(site, tensors, [2, 1, 0])


def two_heads(site: str, tensors: dict[str, Tensor]) -> None:
    """Two query heads of one layer exchanged with their row statistics."""
    name = f"{site}.1.query"
    tensors[name] = swap(tensors[name], 0, 0, 5)
    for row in [row for row in tensors if row.startswith(f"{site}.rows.")]:
        tensors[row] = tensors[row].clone()
        tensors[row][1] = swap(tensors[row][1], 0, 0, 5)


def two_keys(site: str, tensors: dict[str, Tensor]) -> None:
    """Two keys of one layer exchanged."""
    name = f"{site}.1.key"
    tensors[name] = swap(tensors[name], 1, 3, 17)


def three_rows(site: str, tensors: dict[str, Tensor]) -> None:
    """Three rows of one head are those of other positions, statistics included."""
    name, at, other = f"{site}.1.query", [21, 22, 23], [31, 32, 33]
    tensors[name] = tensors[name].clone()
    tensors[name][2, at] = tensors[name][2, other]
    for row in [row for row in tensors if row.startswith(f"{site}.rows.")]:
        tensors[row] = tensors[row].clone()
        tensors[row][1, 2, at] = tensors[row][1, 2, other]


def halve(names: tuple[str, ...]) -> Callable[[AttentionSummary], None]:
    """One head's overview halved."""

    def change(summary: AttentionSummary) -> None:
        for name in names:
            getattr(summary, name)[2] *= 0.5

    return change


def smaller_figures(summary: AttentionSummary) -> None:
    """All figures of heads times 0.8."""
    for name, values in summary.figures.items():
        summary.figures[name] = values * 0.8


def smaller_row_figures(summary: AttentionSummary) -> None:
    """The row figures that are shown times 0.8."""
    for name in ("entropy", "first", "distance", "self", "previous"):
        if name in summary.rows:
            summary.rows[name] *= 0.8
