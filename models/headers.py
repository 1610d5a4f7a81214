"""What the header of a safetensors file says of its tensors, read without reading one.

Knows nothing of models: which tensors there should be is asked in `models/fit.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.errors import EngineError

MAX_HEADER_BYTES = 100_000_000  # the limit of the safetensors format itself


class NotSafetensors(EngineError):
    """The file is no whole safetensors file; the message says why."""


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file; dtype is written as safetensors does: F32, BF16, I8."""

    dtype: str
    shape: tuple[int, ...]
    n_bytes: int


def read_header(file: Path) -> bytes:
    """The JSON header, checked against the file's size. Raises NotSafetensors, OSError."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > min(MAX_HEADER_BYTES, size - 8):
            raise NotSafetensors(f"{file.name} is not a whole safetensors file")
        header = stream.read(length)
    if 8 + length + _data_bytes(file.name, header) != size:
        raise NotSafetensors(f"{file.name} is not a whole safetensors file")
    return header


def stored_tensors(header: bytes) -> dict[str, StoredTensor]:
    """What the header says of each tensor, by name. Raises ValueError if it says less than it should."""
    found: dict[str, StoredTensor] = {}
    for name, tensor in _table(header).items():
        if not isinstance(tensor, dict) or not isinstance(tensor.get("dtype"), str):
            raise ValueError(f"the tensor {name[:80]} has no dtype")
        match tensor.get("data_offsets"):
            case [int(start), int(stop)] if 0 <= start <= stop:
                pass
            case offsets:
                raise ValueError(f"the tensor {name[:80]} should have two data_offsets, and has {str(offsets)[:80]}")
        shape = tensor.get("shape")
        if not isinstance(shape, list) or not all(isinstance(size, int) and size >= 0 for size in shape):
            raise ValueError(f"the tensor {name[:80]} should have a shape, and has {str(shape)[:80]}")
        found[name] = StoredTensor(tensor["dtype"], tuple(shape), stop - start)
    return found


def all_tensors(headers: Mapping[str, bytes]) -> dict[str, StoredTensor]:
    """The tensors of several files, by name. Raises NotSafetensors if two files have one of the same name."""
    found: dict[str, StoredTensor] = {}
    for header in headers.values():
        tensors = stored_tensors(header)
        if twice := sorted(found.keys() & tensors.keys()):
            raise NotSafetensors(f"two of its weight files have a tensor {twice[0][:80]}, and only one can be right")
        found |= tensors
    return found


def _data_bytes(name: str, header: bytes) -> int:
    # of values that a header announces
    try:
        stored_tensors(header)
        return max((tensor["data_offsets"][1] for tensor in _table(header).values()), default=0)
    except ValueError as error:
        raise NotSafetensors(f"{name} is not a whole safetensors file: {' '.join(str(error).split())[:200]}") from error


def _table(header: bytes) -> dict[str, Any]:
    table = json.loads(header)
    if not isinstance(table, dict):
        raise ValueError(f"its header should be a JSON object, and is {_json_type(table)}")
    return {name: tensor for name, tensor in table.items() if name != "__metadata__"}


def _json_type(value: object) -> str:
    return {list: "a list", str: "a string", type(None): "null"}.get(type(value), f"a {type(value).__name__}")
