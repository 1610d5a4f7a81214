"""What is found out about a checkpoint before it is loaded: whether its weights fit, and its tokenizer beside them.

It takes a tenth of a second and the code of the family, so it is done once for each state of a folder. This module
knows nothing of where a folder came from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PreTrainedConfig, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

from models.checkpoints import one_line
from models.errors import EngineError, UnsupportedModel
from models.fit import LOADING, Fit, fit_of, notes_of
from models.headers import StoredTensor, all_tensors
from models.tokenizer_files import FILE, check_rows, vocabulary_rows
from models.tokens import NO_OFFSETS

PATIENCE_S = 2.0  # how long a list of models waits while a model is loaded; then it is examined another time
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "shared.weight", "embed_in.weight")


@dataclass(frozen=True)
class Examined:
    """The outcome: why the checkpoint cannot be used, or what is to be known of it."""

    refusal: str | None = None
    notes: tuple[str, ...] = ()


class _Busy(Exception):
    """A model is being loaded, so this was not found out now."""


def examined(folder: Path, revision: str, headers: Mapping[str, bytes]) -> Examined:
    """What is wrong with the checkpoint, or to be known of it; nothing while a large model is being loaded."""
    try:
        return _examined(folder, revision, tuple(headers.items()))
    except _Busy:
        return Examined()


@lru_cache(maxsize=128)
def _examined(folder: Path, _revision: str, headers: tuple[tuple[str, bytes], ...]) -> Examined:
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    try:
        stored = all_tensors(dict(headers))
        _refuse_slow(folder)
        fit = _fit(config, stored)
        if (rows := _rows(stored)) is not None:
            check_rows(vocabulary_rows(folder), rows)
    except EngineError as error:
        return Examined(str(error))
    except ImportError as error:  # of a library that reads a kind of quantized weights
        return Examined(f"its weights need a library that is not installed: {one_line(error)}")
    return Examined(notes=notes_of(fit) if fit else ())


def _fit(config: PreTrainedConfig, stored: Mapping[str, StoredTensor]) -> Fit | None:
    """The fit; None where the family cannot be built without weights: loading it then says."""
    if not LOADING.acquire(timeout=PATIENCE_S):
        raise _Busy
    try:
        return fit_of(config, stored)
    except (EngineError, ImportError):
        raise
    except Exception:  # noqa: BLE001 - whatever a family's code raises without weights; the load itself is checked again
        return None
    finally:
        LOADING.release()


def _rows(stored: Mapping[str, StoredTensor]) -> int | None:
    """Rows of the table of embeddings, where it has one of the usual names; the load checks it under any name."""
    rows = {tensor.shape[0] for name, tensor in stored.items() if name.endswith(EMBEDDINGS) and len(tensor.shape) == 2}
    return rows.pop() if len(rows) == 1 else None


def _refuse_slow(folder: Path) -> None:
    """Refuse a tokenizer whose class gives no offsets or cannot be had here; it is looked up, nothing is loaded."""
    path = folder / "tokenizer_config.json"
    name = json.loads(path.read_text(encoding="utf-8")).get("tokenizer_class") if path.is_file() else None
    found: Any = tokenizer_class_from_name(name) if isinstance(name, str) else None
    if found is None:
        return
    if not issubclass(found, PreTrainedTokenizerBase):  # what transformers puts in place of a class that it cannot have
        needed = ", ".join(getattr(found, "_backends", ())) or "another library"
        raise UnsupportedModel(f"its tokenizer is a {name}, which needs {needed}, and that is not installed")
    if not issubclass(found, PreTrainedTokenizerFast) and not (folder / FILE).is_file():
        raise UnsupportedModel(NO_OFFSETS)
