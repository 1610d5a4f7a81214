"""Finished runs on disk: one folder per run with summary.json and capture.safetensors.

Written behind the answer by one thread, whole or not at all; found again after a restart; bounded in bytes,
least recently used first out. It knows nothing of models or HTTP; how a capture is read back is handed in.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from app.services.identity import is_run_id, private_folder
from app.services.kept import Forgotten
from app.services.ports import ReadCapture
from app.services.records import RunRecord
from models.protocol import CaptureReader

logger = logging.getLogger("everyhead.store")

SUMMARY, CAPTURE, PARTIAL = "summary.json", "capture.safetensors", ".partial-"
OPEN_CAPTURES = 8  # read back and kept open; their pages belong to the file cache

Stored = tuple[RunRecord, CaptureReader]


class RunStore:
    """Runs by id. Every method may be called from any thread."""

    def __init__(
        self, folder: Path, *, limit_bytes: int, backlog_bytes: int, format_version: str, read_capture: ReadCapture
    ) -> None:
        self.limit_bytes = limit_bytes
        self._folder = folder
        self._backlog_bytes = backlog_bytes
        self._format_version = format_version
        self._read_capture = read_capture
        self._changed = threading.Condition()
        self._pending: OrderedDict[str, Stored] = OrderedDict()  # finished, not yet on disk; the first is being written
        self._open: OrderedDict[str, Stored] = OrderedDict()
        self._sizes: OrderedDict[str, int] = OrderedDict()  # bytes on disk, least recently used first
        self._forgotten = Forgotten()
        self._when_forgotten: list[Callable[[str], None]] = []
        self._closed = False
        self._thread = threading.Thread(target=self._write_behind, name="store", daemon=True)

    def when_forgotten(self, *tell: Callable[[str], None]) -> None:
        """Have these told the id of each run that is deleted or dropped, from any thread: they may hold its text."""
        self._when_forgotten.extend(tell)

    def start(self) -> None:
        """Remove what an earlier process left half-written, count what is there, and start writing."""
        private_folder(self._folder)
        for leftover in self._folder.glob(f"{PARTIAL}*"):
            if not being_written(leftover):
                shutil.rmtree(leftover, ignore_errors=True)
        folders = [path for path in self._folder.iterdir() if is_run_id(path.name) and (path / SUMMARY).is_file()]
        for path in sorted(folders, key=lambda path: path.stat().st_mtime):
            self._sizes[path.name] = sum(file.stat().st_size for file in path.iterdir())
        self._make_room(0, keep="")
        self._thread.start()

    def close(self, timeout_s: float = 30.0) -> None:
        """Write what is waiting, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    @property
    def alive(self) -> bool:
        """Whether the thread that writes is there."""
        return self._thread.is_alive()

    def put(self, record: RunRecord, capture: CaptureReader) -> None:
        """Take over a finished run; it can be read at once and is written soon."""
        with self._changed:
            self._pending[record.id] = (record, capture)
            self._pending.move_to_end(record.id)
            self._changed.notify_all()

    def wait_for_room(self) -> None:
        """Return once so little waits for the disk that another run may be computed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._backlog() <= self._backlog_bytes)

    def get(self, run_id: str) -> Stored | None:
        """The run, or None if it is not here (or cannot be read any more)."""
        if not is_run_id(run_id):
            return None
        with self._changed:
            stored = self._pending.get(run_id) or self._open.get(run_id)
            if run_id in self._open:
                self._open.move_to_end(run_id)
        if stored is None and (stored := self._read(run_id)) is not None:
            self._keep_open(stored)
        if stored is not None:
            self._touch(run_id)
        return stored

    def update(self, record: RunRecord) -> None:
        """Replace the record of a run that is here; its capture stays."""
        with self._changed:
            if record.id in self._pending:
                self._pending[record.id] = (record, self._pending[record.id][1])
                return
            if record.id in self._open:
                self._open[record.id] = (record, self._open[record.id][1])
        self._update_summary(record)

    def forget(self, run_id: str) -> bool:
        """Remove a run; False if there was none."""
        if not is_run_id(run_id):
            return False
        with self._changed:
            known = [places.pop(run_id, None) is not None for places in (self._pending, self._open, self._sizes)]
            self._forgotten.note(run_id)
            self._changed.notify_all()
        known.append(self._remove(run_id))
        self._tell(run_id)
        return any(known)

    def _tell(self, run_id: str) -> None:
        for tell in self._when_forgotten:
            tell(run_id)

    def _backlog(self) -> int:
        return sum(record.bytes for record, _ in self._pending.values())

    def _touch(self, run_id: str) -> None:
        """Note a use, here and on disk for the next start."""
        with self._changed:
            if run_id not in self._sizes:
                return
            self._sizes.move_to_end(run_id)
        with contextlib.suppress(FileNotFoundError):
            os.utime(self._folder / run_id)

    def _keep_open(self, stored: Stored) -> None:
        """Keep a run open that was read, unless it was forgotten meanwhile."""
        with self._changed:
            if not self._forgotten.covers(stored[0]):
                self._open[stored[0].id] = stored
            dropped = [self._open.popitem(last=False)[1][0] for _ in range(len(self._open) - OPEN_CAPTURES)]
        self._tell_of_unstored(dropped)

    def _tell_of_unstored(self, dropped: Iterable[RunRecord]) -> None:
        """Of runs that are no longer open, those that were nowhere else are gone."""
        for record in dropped:
            if not record.stored:
                with self._changed:
                    self._forgotten.note(record.id)
                self._tell(record.id)

    def _read(self, run_id: str) -> Stored | None:
        """One run from disk; its tensors are mapped, not loaded."""
        folder = self._folder / run_id
        try:
            data = json.loads((folder / SUMMARY).read_bytes())
            if data["format_version"] != self._format_version:
                return None
            record = RunRecord.from_dict(data["record"])
            capture = self._read_capture(load_file(folder / CAPTURE), data["metadata"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            logger.warning("run %s cannot be read back (%s); treated as gone", run_id[:8], type(error).__name__)
            return None
        return record, capture

    def _write_behind(self) -> None:
        """The writer thread: the oldest finished run first."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closed)
                if not self._pending:
                    return
            self._write_oldest()

    def _write_oldest(self) -> None:
        """A call of its own: the thread that waits for the next run holds nothing of the last one."""
        with self._changed:
            oldest = next(iter(self._pending.values()), None)  # none if it was forgotten just now
        if oldest is not None:
            self._settle(*oldest, written=self._write(*oldest))

    def _settle(self, record: RunRecord, capture: CaptureReader, *, written: bool) -> None:
        """The run waits no longer, once the disk holds its record as it is now: it may have changed meanwhile.

        One that the disk would not take stays readable until the next such one: it fills memory.
        """
        dropped: list[RunRecord] = []
        while True:
            with self._changed:
                current = self._pending.get(record.id)
                if current is None or current[1] is not capture:
                    return  # forgotten, or computed again, meanwhile
                if not written or current[0] is record:
                    del self._pending[record.id]
                    if not written:
                        dropped = [other for other, _ in self._open.values() if not other.stored]
                        for other in dropped:
                            del self._open[other.id]
                        self._open[record.id] = current
                    self._changed.notify_all()
                    break
                record = current[0]
            self._update_summary(record)
        self._tell_of_unstored(dropped)

    def _write(self, record: RunRecord, capture: CaptureReader) -> bool:
        """Write one run; its folder appears whole, by renaming."""
        partial = self._folder / f"{PARTIAL}{record.id}-{os.getpid()}"
        started = time.perf_counter()
        try:
            partial.mkdir(mode=0o700)
            save_file({name: tensor.contiguous() for name, tensor in capture.tensors().items()}, partial / CAPTURE)
            (partial / CAPTURE).chmod(0o600)
            _sync(partial / CAPTURE)
            size = (partial / CAPTURE).stat().st_size
            self._write_summary(partial, record, size, capture)
            self._make_room(size, keep=record.id)
            self._publish(partial, record.id, size, capture)
            _sync(self._folder)
        except (OSError, SafetensorError, ValueError, RuntimeError) as error:
            logger.error("run %s could not be stored: %s", record.id[:8], type(error).__name__)
            return False
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        logger.info("stored run %s: %d bytes in %.2f s", record.id[:8], size, time.perf_counter() - started)
        return True

    def _publish(self, partial: Path, run_id: str, size: int, capture: CaptureReader) -> None:
        """Give the folder its name, unless the run was forgotten meanwhile: then nothing of it may be seen again."""
        with self._changed:
            if run_id not in self._pending or self._pending[run_id][1] is not capture:
                return
            shutil.rmtree(self._folder / run_id, ignore_errors=True)
            partial.rename(self._folder / run_id)
            self._sizes[run_id] = size

    def _update_summary(self, record: RunRecord) -> None:
        """Write the record of a run that is on disk. One that cannot be written is of the memory alone."""
        folder = self._folder / record.id
        try:
            self._write_summary(folder, record, (folder / CAPTURE).stat().st_size)
        except FileNotFoundError:
            return  # it is not on disk, or was forgotten just now
        except OSError as error:
            logger.error("the record of run %s could not be written: %s", record.id[:8], type(error).__name__)

    def _write_summary(self, folder: Path, record: RunRecord, size: int, capture: CaptureReader | None = None) -> None:
        """Write summary.json whole or not at all; without a capture its metadata stays as it is."""
        path = folder / SUMMARY
        metadata = json.loads(path.read_bytes())["metadata"] if capture is None else capture.metadata()
        data = {
            "format_version": self._format_version,
            "record": replace(record, stored=True, bytes=size).as_dict(),
            "metadata": metadata,
        }
        partial = folder / f"{PARTIAL}{SUMMARY}"
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(data, ensure_ascii=True), encoding="utf-8")
        _sync(partial)
        partial.replace(path)
        _sync(folder)

    def _make_room(self, needed: int, keep: str) -> None:
        """Drop the least recently used until `needed` more bytes fit."""
        while True:
            with self._changed:
                used = sum(size for run_id, size in self._sizes.items() if run_id != keep)
                victim = next((run_id for run_id in self._sizes if run_id != keep), None)
            if used + needed <= self.limit_bytes or victim is None:
                return
            self.forget(victim)
            logger.info("dropped run %s to make room", victim[:8])

    def _remove(self, run_id: str) -> bool:
        """Take a run's folder away, out of sight first."""
        trash = self._folder / f"{PARTIAL}{run_id}-{time.monotonic_ns()}-gone"
        try:
            (self._folder / run_id).rename(trash)
        except FileNotFoundError:
            return False
        shutil.rmtree(trash, ignore_errors=True)
        return True


def being_written(partial: Path) -> bool:
    """Whether another process that lives is at it (a second server on the same folder); its number ends the name."""
    number = partial.name.rpartition("-")[2]
    if not number.isdecimal() or int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync(path: Path) -> None:
    """Have the disk keep what was written to this file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
