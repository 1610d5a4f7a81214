"""Run ids: a keyed hash of everything that decides a run's result.

The key stays in the data folder, so that no id can be guessed.

The same request gives the same id; a change of the model's revision or of the stored format gives another.
"""

from __future__ import annotations

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


def private_folder(folder: Path) -> Path:
    """The folder, made if missing, open to its owner alone."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def load_key(data_dir: Path) -> bytes:
    """The key of this data folder, made once. Two processes that start together end up with the same one."""
    path = private_folder(data_dir) / "run-id.key"
    if not path.exists():
        temporary = data_dir / f".run-id.{secrets.token_hex(8)}"
        temporary.touch(mode=0o600)
        temporary.write_bytes(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(temporary, path)  # fails if another process was first
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    return path.read_bytes()


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
