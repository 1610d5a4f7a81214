"""Reference panels on disk: one JSON file with a checksum each, written whole or not at all, open to its owner alone.

Files begin with the format that they are in. It knows neither models nor HTTP, nor what a panel holds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.services.disk import PARTIAL, being_written
from app.services.identity import private_folder
from app.services.sealed import Damaged, sealed, unsealed

logger = logging.getLogger("everyhead.references")

Panel = dict[str, Any]


class PanelFiles:
    """Panels by key, in one folder. Nothing touches the disk before it is asked to."""

    def __init__(self, folder: Path, format_version: str) -> None:
        self._folder, self._format_version = folder, format_version

    def start(self) -> None:
        """Remove what an earlier process left half-written, and what this version cannot read."""
        partial = [path for path in self._folder.glob(f"{PARTIAL}*") if not being_written(path)]
        foreign = [path for path in self._folder.glob("*.json") if path != self._path(_key_of(path))]
        for path in (*partial, *foreign):
            with contextlib.suppress(OSError):
                path.unlink()

    def read(self, key: str) -> Panel | None:
        """The panel, or None if it is not there (or cannot be read any more)."""
        try:
            return unsealed(self._path(key).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, Damaged) as error:
            logger.warning("a reference panel is damaged (%s): it has to be computed again", type(error).__name__)
            return None

    def write(self, key: str, panel: Panel, replaces: Callable[[Panel], bool]) -> bool:
        """Keep a panel in the place of those that it replaces; False if the disk did not take it."""
        partial = self._folder / f"{PARTIAL}{secrets.token_hex(8)}-{os.getpid()}"
        try:
            private_folder(self._folder)
            partial.touch(mode=0o600)
            partial.write_bytes(sealed(panel))
            partial.replace(self._path(key))
        except OSError as error:
            logger.warning("a reference panel could not be written (%s)", type(error).__name__)
            with contextlib.suppress(OSError):
                partial.unlink()
            return False
        others = [path for path in self._folder.glob("*.json") if path != self._path(key)]
        for path in others:
            if (other := self.read(_key_of(path))) is not None and replaces(other):
                with contextlib.suppress(OSError):
                    path.unlink()
        return True

    def _path(self, key: str) -> Path:
        return self._folder / f"{self._format_version}-{key}.json"


def _key_of(path: Path) -> str:
    return path.stem.rpartition("-")[2]
