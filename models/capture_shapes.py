"""Whether the tensors of a capture have the shapes that its metadata speaks of, before anybody reads windows of them.

Knows how a capture is laid out (`models/capture_builder.py` makes it), not where it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from models.errors import ConfigError
from models.pooling import pooling_step

Shape = tuple[int | None, ...]  # None: any size


def require_shapes(tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Check every tensor that windows, rows and overviews are read from.

    Shapes:  by name, as CaptureBuilder.build lays them out
    Raises:  ConfigError naming the first tensor that is missing or of another shape; LookupError for other metadata
    """
    for site in metadata["sites"]:
        _require_site(tensors, site)
        for module in site["modules"]:
            _require_mask(tensors, module["mask"], site["query_len"], metadata["masks"][module["mask"]])
            if module["bias"] is not None:
                _require_bias(tensors, module["bias"], site["n_heads"], *metadata["biases"][module["bias"]])


def _require_site(tensors: Mapping[str, Tensor], site: Mapping[str, Any]) -> None:
    name, n_layers, n_heads = site["site"], site["n_layers"], site["n_heads"]
    query_len, key_len = site["query_len"], site["key_len"]
    if len(site["modules"]) != n_layers:
        raise ConfigError(f"{name} has {n_layers} layers and {len(site['modules'])} modules")
    for layer, module in enumerate(site["modules"]):
        query = _require(tensors, f"{name}.{layer}.query", (n_heads, query_len, None))
        key = _require(tensors, f"{name}.{layer}.key", (None, key_len, query.shape[2]))
        _require(tensors, f"{name}.{layer}.value", (key.shape[0], key_len, None))
        if n_heads % key.shape[0]:
            raise ConfigError(f"{name}.{layer} has {n_heads} heads over {key.shape[0]} keys")
        if module["has_sinks"]:
            _require(tensors, f"{name}.{layer}.sinks", (n_heads,))
        if f"{name}.{layer}.output_norms" in tensors:
            _require(tensors, f"{name}.{layer}.output_norms", (n_heads, key_len))
    for part in (part for part in tensors if part.startswith(f"{name}.rows.")):
        _require(tensors, part, (n_layers, n_heads, query_len))
    for needed in ("row_max", "row_sum", "top_key"):
        _require(tensors, f"{name}.rows.{needed}", (n_layers, n_heads, query_len))
    cells = (-(-query_len // pooling_step(query_len)), -(-key_len // pooling_step(key_len)))
    for pool in ("max", "mean"):
        _require(tensors, f"{name}.overview_{pool}", (n_layers, n_heads, *cells))


def _require_mask(tensors: Mapping[str, Tensor], mask: int, query_len: int, key_len: int) -> None:
    for end in ("starts", "stops"):
        _require(tensors, f"mask.{mask}.{end}", (query_len,))
    if f"mask.{mask}.dense" in tensors:
        _require(tensors, f"mask.{mask}.dense", (query_len, key_len))


def _require_bias(tensors: Mapping[str, Tensor], bias: int, n_heads: int, query_len: int, key_len: int) -> None:
    if f"bias.{bias}.dense" in tensors:
        kept = _require(tensors, f"bias.{bias}.dense", (None, query_len, key_len))
    else:
        kept = _require(tensors, f"bias.{bias}.toeplitz", (None, query_len + key_len - 1))
    if len(kept) not in (1, n_heads):
        raise ConfigError(f"bias.{bias} is of {len(kept)} heads, and there are {n_heads}")


def _require(tensors: Mapping[str, Tensor], name: str, shape: Shape) -> Tensor:
    tensor = tensors.get(name)
    if tensor is None:
        raise ConfigError(f"the capture has no {name}")
    if len(tensor.shape) != len(shape) or any(
        want not in (None, got) for want, got in zip(shape, tensor.shape, strict=True)
    ):
        raise ConfigError(f"{name} should have the shape {shape}, got {tuple(tensor.shape)}")
    return tensor
