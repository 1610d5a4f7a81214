"""Which sub-folders of the models folder hold a model, in which layout, and what to do where they cannot be used as is.

Every folder with something of a model in it is listed: what is left out without a word looks like a fault of the list.
This module knows nothing of catalogues; what a checkpoint holds is asked in `models/checkpoints.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from models.checkpoints import ADAPTER, PICKLED, Checkpoint, UnusableCheckpoint, read_checkpoint, read_json

CONFIG = "config.json"
OF_MODELS = (".safetensors", ".gguf", *PICKLED)
HUB_CACHE = re.compile(r"models--(?P<repo>[^/]+)")
COMMIT = re.compile(r"[0-9a-f]{40}")
ITSELF = "."  # the name under which a models folder is listed that is a checkpoint itself
MAX_FOLDERS = 200  # sub-folders of one folder that are looked into for a checkpoint one deeper
NAMED = 3


@dataclass(frozen=True)
class ModelFolder:
    """One entry of the models folder. `folder` holds the checkpoint, whose links may lead to anywhere in `within`."""

    name: str
    folder: Path
    within: Path


def local_names(models_dir: Path) -> list[str]:
    """Names of the sub-folders of models_dir that hold a model or a part of one, sorted; [] if it cannot be read.

    "." stands for models_dir itself where that is a checkpoint.
    """
    try:
        entries = sorted(models_dir.iterdir())
    except OSError:
        return []
    itself = [ITSELF] if (models_dir / CONFIG).is_file() else []
    return itself + [entry.name for entry in entries if not entry.name.startswith(".") and _holds_something(entry)]


def local_title(name: str) -> str:
    """How an entry is called: the name of the hub's model for its cache folder, else the folder's own."""
    cached = HUB_CACHE.fullmatch(name)
    return cached["repo"].replace("--", "/", 1) if cached else name


def local_checkpoint(models_dir: Path, name: str) -> Checkpoint:
    """The checkpoint in the direct sub-folder `name`.

    Raises:  UnusableCheckpoint that says what to do, also for names that are paths
    """
    found = locate(models_dir, name)
    return read_checkpoint(found.folder, within=found.within)


def locate(models_dir: Path, name: str) -> ModelFolder:
    """Where the checkpoint of a sub-folder lies. Raises UnusableCheckpoint that says what to do."""
    if name == ITSELF and (models_dir / CONFIG).is_file():
        raise UnusableCheckpoint(
            "the models folder is a checkpoint itself; set EVERYHEAD_MODELS_DIR to the folder above it"
        )
    if not name or name in (".", "..") or any(mark in name for mark in "/\\\0"):
        raise UnusableCheckpoint("a local model is named by a direct sub-folder of the models folder")
    folder = models_dir / name
    if not folder.is_dir():
        raise UnusableCheckpoint("there is no such folder in the models folder")
    if folder.resolve() != models_dir.resolve() / name:
        raise UnusableCheckpoint("the folder is a link; copy the checkpoint into the models folder instead")
    if (folder / CONFIG).is_file():
        return ModelFolder(name, folder, folder)
    if HUB_CACHE.fullmatch(name) and (folder / "snapshots").is_dir():
        return ModelFolder(name, _snapshot(folder), folder)
    raise UnusableCheckpoint(_what_to_do(folder))


def _holds_something(folder: Path) -> bool:
    try:
        if (folder / CONFIG).is_file() or (folder / ADAPTER).is_file():
            return True
        if not folder.is_dir():
            return False
        if HUB_CACHE.fullmatch(folder.name) or any(file.suffix in OF_MODELS for file in folder.iterdir()):
            return True
        return bool(_deeper(folder))
    except OSError:  # a folder that may not be read holds nothing that could be used
        return False


def _deeper(folder: Path) -> list[str]:
    """Sub-folders with a checkpoint, an adapter, or a hub cache's folder of one."""
    inner = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())[:MAX_FOLDERS]
    marks = (CONFIG, ADAPTER, "snapshots")
    return [entry.name for entry in inner if any((entry / mark).exists() for mark in marks)]


def _snapshot(folder: Path) -> Path:
    """The snapshot that the cache's main reference names, or the only one there is. Raises UnusableCheckpoint."""
    snapshots = folder / "snapshots"
    try:
        commit = (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        commit = ""
    if COMMIT.fullmatch(commit) and (snapshots / commit).is_dir():
        return snapshots / commit
    there = sorted(entry for entry in snapshots.iterdir() if entry.is_dir())
    if len(there) == 1:
        return there[0]
    raise UnusableCheckpoint(
        f"it is a folder of the hub's cache with {len(there)} snapshots, and refs/main names none of them; "
        "copy the one that you mean into a folder of its own"
    )


def _what_to_do(folder: Path) -> str:
    if (folder / ADAPTER).is_file():
        base = read_json(folder / ADAPTER, default={}).get("base_model_name_or_path")
        of = f" of {base[:80]}" if isinstance(base, str) and base else ""
        return (
            f"it is an adapter{of}, without the model that it changes; "
            "merge the two (PEFT: merge_and_unload, then save_pretrained) and put the result here"
        )
    if deeper := _deeper(folder):
        more = f" and {len(deeper) - NAMED} more" if len(deeper) > NAMED else ""
        return (
            f"its checkpoint lies one folder deeper, in {', '.join(deeper[:NAMED])}{more}; "
            "move it up into the models folder, or set EVERYHEAD_MODELS_DIR to this folder"
        )
    if any(file.suffix == ".gguf" for file in folder.iterdir()):
        return "it holds a GGUF file; save the model as safetensors with its config.json and tokenizer"
    return f"it has no {CONFIG}"
