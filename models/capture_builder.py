"""Makes a capture of the modules of one pass: stacks what belongs to a site, and stores each shared mask and bias once.

Knows how a capture is laid out (`models/capture.py` reads it), not who calls the modules.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeVar

import torch
from torch import Tensor

from models.blockwise import AttentionInputs, AttentionSummary
from models.capture import VERSION, Capture, ModuleOptions
from models.errors import ConfigError
from models.masks import BiasLayout, MaskLayout

_Layout = TypeVar("_Layout", MaskLayout, BiasLayout)


class CaptureBuilder:
    """Collects the modules of one pass, in any order, and makes a Capture of them."""

    def __init__(self) -> None:
        self._modules: dict[tuple[str, int], tuple[AttentionInputs, AttentionSummary]] = {}
        self._output_norms: dict[tuple[str, int], Tensor] = {}

    def add(
        self,
        site: str,
        layer: int,
        inputs: AttentionInputs,
        summary: AttentionSummary,
        output_norms: Tensor | None = None,
    ) -> None:
        """Keep one module; a later call for the same place replaces the earlier.

        Shapes:  output_norms (n_heads, key_len): ‖value · W_O‖, where the output projection is known
        """
        self._modules[site, layer] = (inputs, summary)
        self.drop_output_norms(site, layer)
        if output_norms is not None:
            self._output_norms[site, layer] = output_norms

    def drop_output_norms(self, site: str, layer: int) -> None:
        """Take back what `add` was told of the output projection of one module."""
        self._output_norms.pop((site, layer), None)

    def build(self) -> Capture:
        """The capture of what was added, in host memory. Layers of a site must be 0, 1, 2, … Raises ConfigError."""
        masks: list[MaskLayout] = []
        biases: list[BiasLayout] = []
        tensors: dict[str, Tensor] = {}
        sites = [self._build_site(site, masks, biases, tensors) for site in self._site_names()]
        stored = {f"mask.{i}.": mask.tensors() for i, mask in enumerate(masks)}
        stored |= {f"bias.{i}.": bias.tensors() for i, bias in enumerate(biases)}
        tensors |= {prefix + name: part for prefix, parts in stored.items() for name, part in parts.items()}
        metadata = {
            "version": VERSION,
            "sites": sites,
            "masks": [mask.key_len for mask in masks],
            "biases": [(bias.query_len, bias.key_len) for bias in biases],
        }
        return Capture(tensors, metadata)

    def _site_names(self) -> list[str]:
        return list(dict.fromkeys(site for site, _layer in self._modules))

    def _build_site(
        self, site: str, masks: list[MaskLayout], biases: list[BiasLayout], tensors: dict[str, Tensor]
    ) -> dict[str, Any]:
        layers = sorted(layer for name, layer in self._modules if name == site)
        if layers != list(range(len(layers))):
            raise ConfigError(f"layers of {site} must be 0 to {len(layers) - 1}, got {layers}")
        modules = [self._modules[site, layer] for layer in layers]
        options = []
        for layer, (inputs, _summary) in enumerate(modules):
            kept = {"query": inputs.query, "key": inputs.key, "value": inputs.value, "sinks": inputs.sink_logits}
            kept["output_norms"] = self._output_norms.get((site, layer))
            tensors |= {f"{site}.{layer}.{name}": t.contiguous() for name, t in kept.items() if t is not None}
            bias = None if inputs.bias is None else _index_of(inputs.bias, biases)
            mask, has_sinks = _index_of(inputs.mask, masks), inputs.sink_logits is not None
            options.append(ModuleOptions(inputs.scaling, inputs.softcap, mask, bias, has_sinks))
        for name in modules[0][1].rows:
            tensors[f"{site}.rows.{name}"] = torch.stack([summary.rows[name] for _, summary in modules])
        for name in modules[0][1].figures:
            tensors[f"{site}.figures.{name}"] = torch.stack([summary.figures[name] for _, summary in modules])
        tensors[f"{site}.overview_max"] = torch.stack([summary.overview_max for _, summary in modules])
        tensors[f"{site}.overview_mean"] = torch.stack([summary.overview_mean for _, summary in modules])
        inputs = modules[0][0]
        return {
            "site": site,
            "n_layers": len(modules),
            "n_heads": inputs.query.shape[0],
            "n_kv_heads": inputs.key.shape[0],
            "query_len": inputs.query.shape[1],
            "key_len": inputs.key.shape[1],
            "modules": [asdict(module) for module in options],
        }


def _index_of(layout: _Layout, layouts: list[_Layout]) -> int:
    for i, known in enumerate(layouts):
        if known is layout:
            return i
    layouts.append(layout)
    return len(layouts) - 1
