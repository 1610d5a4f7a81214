"""One run on disk: a folder with summary.json and capture.safetensors, each with its checksum.

A run is read only if both files are what was written, in this format and under this id. Reading a capture's checksum
takes as long as reading the file, so that it is done once in this process, and again once the file looks changed.
It knows neither which runs there are nor how much room they may take.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from app.services.disk import PARTIAL
from app.services.ports import ReadCapture
from app.services.records import RunRecord
from app.services.sealed import Damaged, checksum_of_file, sealed, unsealed
from models.capture_shapes import require_shapes
from models.errors import EngineError
from models.protocol import CaptureReader

SUMMARY, CAPTURE = "summary.json", "capture.safetensors"
LOCKS = 16  # runs whose checksums are read at once; the same run is never read by two

Stored = tuple[RunRecord, CaptureReader]


@dataclass(frozen=True)
class Mark:
    """What a file looks like from outside; whoever changes it changes this too: no call sets `touched` back."""

    size: int
    changed: int
    touched: int
    number: int


@dataclass(frozen=True)
class Opened:
    """A run that was read from disk, and what its file looked like then."""

    stored: Stored
    mark: Mark | None


class RunFiles:
    """The folders of runs in one folder. Every method may be called from any thread."""

    def __init__(self, folder: Path, format_version: str, read_capture: ReadCapture) -> None:
        self._folder, self._format_version, self._read_capture = folder, format_version, read_capture
        self._checksums: dict[str, tuple[Mark, str]] = {}  # of captures, as long as they look the same
        self._locks = [threading.Lock() for _ in range(LOCKS)]

    def of(self, run_id: str) -> Path:
        """The folder of a run."""
        return self._folder / run_id

    def lock(self, run_id: str) -> threading.Lock:
        """Held by whoever reads this run."""
        return self._locks[int(run_id[:2], 16) % LOCKS]

    def mark(self, run_id: str) -> Mark | None:
        """What a run's capture looks like now, None if it is not there."""
        return _mark_of(self.of(run_id) / CAPTURE)

    def forget(self, run_id: str) -> None:
        """A run is gone, and with it what is known of its file."""
        self._checksums.pop(run_id, None)

    def read(self, run_id: str) -> Stored | None:
        """One run, its tensors mapped, not loaded; None if it is not there or of another format. Raises Damaged."""
        folder = self.of(run_id)
        try:
            if (data := self._summary(folder)) is None:
                return None
            record = RunRecord.from_dict(data["record"])
            if record.id != run_id:
                raise Damaged("it is another run's")
            self._require_sound(run_id, data["capture"])
            tensors = load_file(folder / CAPTURE)
            require_shapes(tensors, data["metadata"])
            capture = self._read_capture(tensors, data["metadata"])
            if tuple(capture.sites) != record.sites:
                raise Damaged("its summary and its capture speak of different sites")
            return record, capture
        except FileNotFoundError:
            return None
        except (OSError, SafetensorError, EngineError, LookupError, TypeError, ValueError) as error:
            raise Damaged(f"it cannot be read ({type(error).__name__})") from error

    def write(self, partial: Path, record: RunRecord, capture: CaptureReader) -> int:
        """Write a run into a new folder, which has still to get its name; the size of its capture. Raises OSError."""
        partial.mkdir(mode=0o700)
        path = partial / CAPTURE
        save_file({name: tensor.contiguous() for name, tensor in capture.tensors().items()}, path)
        path.chmod(0o600)
        sync(path)
        size, checksum = path.stat().st_size, checksum_of_file(path)
        about = {"metadata": capture.metadata(), "capture": {"bytes": size, "checksum": checksum}}
        self._write_summary(partial, record, about)
        if (mark := _mark_of(path)) is not None:
            self._checksums[record.id] = (mark, checksum)
        return size

    def update(self, record: RunRecord) -> None:
        """Write the record of a run that is there; its capture stays. Raises OSError, Damaged."""
        folder = self.of(record.id)
        data = self._summary(folder)
        if data is not None:
            self._write_summary(folder, record, {name: data[name] for name in ("metadata", "capture")})

    def _summary(self, folder: Path) -> dict[str, Any] | None:
        """What is kept of a run beside its tensors; None if another version wrote it. Raises OSError, Damaged."""
        content = (folder / SUMMARY).read_bytes()
        try:
            data = unsealed(content)
        except Damaged:
            if _is_older(content):
                return None
            raise
        return data if data["format_version"] == self._format_version else None

    def _require_sound(self, run_id: str, expected: dict[str, Any]) -> None:
        """Raise Damaged unless the capture is the one that the summary was written with."""
        mark = self.mark(run_id)
        if mark is None:
            raise FileNotFoundError
        known = self._checksums.get(run_id)
        if known is None or known[0] != mark:
            known = (mark, checksum_of_file(self.of(run_id) / CAPTURE))
            self._checksums[run_id] = known
        if mark.size != expected["bytes"] or known[1] != expected["checksum"]:
            raise Damaged("its capture is not what was written")

    def _write_summary(self, folder: Path, record: RunRecord, about: dict[str, Any]) -> None:
        """Write summary.json whole or not at all."""
        size = about["capture"]["bytes"]
        record = replace(record, stored=True, kept="kept", bytes=size)
        data = {"format_version": self._format_version, "record": record.as_dict(), **about}
        partial = folder / f"{PARTIAL}{SUMMARY}"
        try:
            partial.touch(mode=0o600)
            partial.write_bytes(sealed(data))
            sync(partial)
            partial.replace(folder / SUMMARY)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
        sync(folder)


def sync(path: Path) -> None:
    """Have the disk keep what was written to this file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mark_of(path: Path) -> Mark | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return Mark(about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)


def _is_older(content: bytes) -> bool:
    """Whether this is a summary from before there were checksums: another format, not a damaged one."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "checksum" not in data and "format_version" in data
