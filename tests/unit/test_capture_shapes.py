"""A capture whose tensors do not fit together is never read."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor

from models.blockwise import AttentionInputs, blockwise_attention
from models.capture import Capture
from models.capture_builder import CaptureBuilder
from models.capture_shapes import require_shapes
from models.errors import ConfigError
from models.masks import BiasLayout, MaskLayout

SITES = {"encoder.self": (70, 70), "decoder.self": (9, 9), "decoder.cross": (9, 70)}
FREE = {"query": 1, "key": 1, "value": 1}  # sizes at the end that are the model's own
NEEDED = ("query", "key", "value", "sinks", "row_max", "row_sum", "top_key", "overview_max", "overview_mean", "starts")


def whole() -> Capture:
    """Three sites, grouped keys, sinks, masks in both forms and biases in both forms."""
    builder = CaptureBuilder()
    for site, (n, m) in SITES.items():
        mask = MaskLayout.from_mask(torch.rand(n, m) < 0.7) if site == "decoder.cross" else MaskLayout.full(n, m)
        dense, slanted = torch.randn(4, n, m), torch.randn(4, n + m - 1)
        indices = torch.arange(m)[None, :] - torch.arange(n)[:, None] + n - 1
        bias = BiasLayout.from_bias(dense if site == "decoder.self" else slanted[:, indices])
        for layer in range(2):
            query, key, value = torch.randn(4, n, 8), torch.randn(2, m, 8), torch.randn(2, m, 6)
            inputs = AttentionInputs(query, key, value, 1.0, mask, bias=bias, sink_logits=torch.randn(4))
            builder.add(site, layer, inputs, blockwise_attention(inputs), torch.rand(4, m))
    return builder.build()


def test_a_whole_capture_passes() -> None:
    capture = whole()
    require_shapes(capture.tensors(), capture.metadata())


def test_every_tensor_with_another_shape_is_refused() -> None:
    capture = whole()
    tensors, metadata = capture.tensors(), capture.metadata()
    for name, tensor in tensors.items():
        fixed = tensor.dim() - FREE.get(name.split(".")[-1], 0)
        changes: list[Tensor] = [tensor[None], *(torch.cat([tensor, tensor], axis) for axis in range(fixed))]
        if name.endswith("query"):
            changes.append(tensor[..., :-1])  # it no longer fits its keys
        for changed in changes:
            with pytest.raises(ConfigError, match=re.escape(name.rsplit(".", 1)[0])):
                require_shapes({**tensors, name: changed}, metadata)


@pytest.mark.parametrize("end", NEEDED)
def test_a_tensor_that_is_missing_is_named(end: str) -> None:
    capture = whole()
    tensors = capture.tensors()
    for name in [name for name in tensors if name.endswith(end)]:
        with pytest.raises(ConfigError, match=name):
            require_shapes({other: tensor for other, tensor in tensors.items() if other != name}, capture.metadata())


def test_fewer_modules_than_layers_are_refused() -> None:
    capture = whole()
    metadata = capture.metadata()
    metadata["sites"] = [{**site, "modules": site["modules"][:1]} for site in metadata["sites"]]
    with pytest.raises(ConfigError, match="2 layers and 1 modules"):
        require_shapes(capture.tensors(), metadata)
