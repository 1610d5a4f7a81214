"""Run ids: a keyed hash of everything that decides a run's result.

The key stays in the data folder, so that no id can be guessed.

The same request gives the same id; a change of the model's revision or of the stored format gives another.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from dataclasses import asdict
from pathlib import Path

from app.services.records import Options, Texts

KEY_BYTES = 32
ID_BYTES = 16
ID_FORM = re.compile(r"[0-9a-f]{32}")


class DataFolderUnusable(Exception):
    """Nothing can be served from this data folder. The message is one sentence for whoever starts the server."""


def private_folder(folder: Path) -> Path:
    """The folder, made if missing and then open to its owner alone. One that was there keeps its permissions."""
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        folder.chmod(0o700)  # whatever the umask is
    return folder


def load_key(data_dir: Path) -> bytes:
    """The key of this data folder, made once. Two processes that start together end up with the same one.

    Raises DataFolderUnusable where there is none and none can be made: without it no stored run has an address.
    """
    path = data_dir / "run-id.key"
    try:
        if not path.exists():
            _make_key(private_folder(data_dir), path)
        key = path.read_bytes()
    except OSError as error:
        why = f"{os.strerror(error.errno)}" if error.errno else type(error).__name__
        message = f"The data folder {data_dir} cannot be used: {why}. Make it writable, or set EVERYHEAD_DATA_DIR."
        raise DataFolderUnusable(message) from error
    if len(key) != KEY_BYTES:
        raise DataFolderUnusable(
            f"The key of run ids, {path}, has {len(key)} bytes instead of {KEY_BYTES}. Restore it, or delete it "
            "together with the folder runs beside it."
        )
    return key


def _make_key(data_dir: Path, path: Path) -> None:
    temporary = data_dir / f".run-id.{secrets.token_hex(8)}"
    try:
        temporary.touch(mode=0o600)
        temporary.write_bytes(secrets.token_bytes(KEY_BYTES))
        with contextlib.suppress(FileExistsError):  # another process was first
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def run_id(
    key: bytes,
    *,
    model: str,
    revision: str,
    implementation: str,
    dtype: str,
    format_version: str,
    texts: Texts,
    options: Options,
) -> str:
    """32 hexadecimal digits."""
    parts = [model, revision, implementation, dtype, format_version, asdict(texts), asdict(options)]
    data = json.dumps(parts, sort_keys=True).encode()
    return hashlib.blake2b(data, key=key, digest_size=ID_BYTES).hexdigest()


def is_run_id(value: str) -> bool:
    """Whether the string has the form of a run id; nothing else may become part of a path."""
    return ID_FORM.fullmatch(value) is not None
