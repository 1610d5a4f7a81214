"""Finished runs on disk: which there are, which are open, and which one goes when there is no more room.

Written behind the answer by one thread, whole or not at all; found again after a restart; bounded in bytes and by the
disk, least recently used first out. What the disk does not take stays in memory and is tried again. It knows nothing of
models or HTTP; how one run lies on disk is `run_files.py`'s business.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError

from app.services.disk import PARTIAL, Disk, being_written, enough, is_full, words_of
from app.services.errors import NotWritable, RunDamaged
from app.services.identity import is_run_id, private_folder
from app.services.kept import Forgotten
from app.services.ports import ReadCapture
from app.services.records import RunRecord
from app.services.run_files import SUMMARY, Opened, RunFiles, Stored, sync
from app.services.sealed import Damaged
from models.protocol import CaptureReader

logger = logging.getLogger("everyhead.store")

OPEN_CAPTURES = 8  # read back and kept open; their pages belong to the file cache
RETRY_S = 20.0  # how often a disk that takes nothing is tried again


class RunStore:
    """Runs by id. Every method may be called from any thread."""

    def __init__(
        self, folder: Path, *, limit_bytes: int, backlog_bytes: int, format_version: str, read_capture: ReadCapture
    ) -> None:
        self.limit_bytes = limit_bytes
        self.disk = Disk(folder)
        self._folder = folder
        self._files = RunFiles(folder, format_version, read_capture)
        self._backlog_bytes = backlog_bytes
        self._changed = threading.Condition()
        self._pending: OrderedDict[str, Stored] = OrderedDict()  # finished, not yet on disk; the first is being written
        self._unstored: OrderedDict[str, Stored] = OrderedDict()  # not taken by the disk, the last one first to go
        self._open: OrderedDict[str, Opened] = OrderedDict()
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
        if not self.disk.probe():
            words = "the data folder cannot be written (%s): stored runs are served, new ones stay in memory"
            logger.error(words, self.disk.trouble)
        for leftover in self._folder.glob(f"{PARTIAL}*"):
            if not being_written(leftover):
                shutil.rmtree(leftover, ignore_errors=True)
        with contextlib.suppress(OSError):  # no such folder, or one that may not be looked into: no runs
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
            self._unstored.pop(record.id, None)
            self._pending[record.id] = (record, capture)
            self._pending.move_to_end(record.id)
            self._changed.notify_all()

    def wait_for_room(self) -> None:
        """Return once so little waits for the disk that another run may be computed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or _bytes_of(self._pending) <= self._backlog_bytes)

    def get(self, run_id: str) -> Stored | None:
        """The run, or None if it is not here. Raises RunDamaged if what is stored of it is not what was written."""
        if not is_run_id(run_id):
            return None
        with self._changed:
            stored = self._pending.get(run_id) or self._unstored.get(run_id)
        if stored is None:
            stored = self._from_disk(run_id)
        if stored is not None:
            self._touch(run_id)
        return stored

    def update(self, record: RunRecord) -> None:
        """Replace the record of a run that is here; its capture stays."""
        with self._changed:
            for place in (self._pending, self._unstored):
                if record.id in place:
                    place[record.id] = (_as_kept(record, place[record.id][0]), place[record.id][1])
                    return
            if (opened := self._open.get(record.id)) is not None:
                current, capture = opened.stored
                self._open[record.id] = replace(opened, stored=(_as_kept(record, current), capture))
        self._update_summary(record)

    def forget(self, run_id: str) -> bool:
        """Remove a run; False if there was none. Raises NotWritable."""
        if not is_run_id(run_id):
            return False
        with self._changed:
            size = self._sizes.pop(run_id, None)
            known = [place.pop(run_id, None) is not None for place in (self._pending, self._unstored)]
            known.append(self._open.pop(run_id, None) is not None)
            self._forgotten.note(run_id)
            self._changed.notify_all()
        try:
            known.append(self._remove(run_id))
        except OSError as error:
            with self._changed:
                if size is not None:
                    self._sizes[run_id] = size
            raise NotWritable(words_of(error)) from error
        self._files.forget(run_id)
        self._tell(run_id)
        return any(known) or size is not None

    def _tell(self, run_id: str) -> None:
        for tell in self._when_forgotten:
            tell(run_id)

    def _touch(self, run_id: str) -> None:
        """Note a use, here and on disk for the next start."""
        with self._changed:
            if run_id not in self._sizes:
                return
            self._sizes.move_to_end(run_id)
        with contextlib.suppress(OSError):
            os.utime(self._folder / run_id)

    def _from_disk(self, run_id: str) -> Stored | None:
        """An open run whose file is as it was, else what its files say now. Raises RunDamaged."""
        if (stored := self._still_open(run_id)) is not None:
            return stored
        with self._files.lock(run_id):
            if (stored := self._still_open(run_id)) is not None:
                return stored
            mark = self._files.mark(run_id)
            try:
                stored = self._files.read(run_id)
            except Damaged as error:
                logger.warning("run %s is damaged: %s", run_id[:8], error)
                raise RunDamaged from error
            if stored is not None:
                with self._changed:
                    if not self._forgotten.covers(stored[0]):
                        self._open[run_id] = Opened(stored, mark)
                    while len(self._open) > OPEN_CAPTURES:
                        self._open.popitem(last=False)
        return stored

    def _still_open(self, run_id: str) -> Stored | None:
        with self._changed:
            opened = self._open.get(run_id)
        if opened is None:
            return None
        same = opened.mark is not None and opened.mark == self._files.mark(run_id)
        with self._changed:
            if same and run_id in self._open:
                self._open.move_to_end(run_id)
            elif self._open.get(run_id) is opened:
                del self._open[run_id]
        return opened.stored if same else None

    def _write_behind(self) -> None:
        """The writer thread: the oldest finished run first."""
        while True:
            with self._changed:
                waits = RETRY_S if self.disk.trouble is not None else None
                self._changed.wait_for(lambda: self._pending or self._closed, waits)
                if self._closed and not self._pending:
                    return
                pending = bool(self._pending)
            if self._write_oldest() if pending else self.disk.probe():
                with self._changed:  # what the disk did not take before it may take now
                    self._pending.update(self._unstored)
                    self._unstored.clear()

    def _write_oldest(self) -> bool:
        """Whether the disk took it. A call of its own: the thread that waits holds nothing of the last run."""
        with self._changed:
            oldest = next(iter(self._pending.values()), None)  # none if it was forgotten just now
        if oldest is None:
            return False
        written = self._write(*oldest)
        self._settle(*oldest, written=written)
        return written

    def _settle(self, record: RunRecord, capture: CaptureReader, *, written: bool) -> None:
        """The run waits no longer, once the disk holds its record as it is now: it may have changed meanwhile."""
        while True:
            with self._changed:
                current = self._pending.get(record.id)
                if current is None or current[1] is not capture:
                    return  # forgotten, or computed again, meanwhile
                if not written or current[0] is record:
                    del self._pending[record.id]
                    if not written:
                        self._unstored[record.id] = (replace(current[0], kept="not_kept"), capture)
                    self._changed.notify_all()
                    break
                record = current[0]
            self._update_summary(record)
        self._drop_unstored()

    def _drop_unstored(self) -> None:
        """As much as may wait for the disk may wait for a better one; the last run always."""
        while True:
            with self._changed:
                if len(self._unstored) <= 1 or _bytes_of(self._unstored) <= self._backlog_bytes:
                    return
                run_id, _ = self._unstored.popitem(last=False)
                self._forgotten.note(run_id)
            logger.warning("dropped run %s, which the disk did not take", run_id[:8])
            self._tell(run_id)

    def _write(self, record: RunRecord, capture: CaptureReader) -> bool:
        """Write one run; its folder appears whole, by renaming."""
        started = time.perf_counter()
        needed = sum(tensor.nbytes for tensor in capture.tensors().values())
        if not self._try(needed, record.id, lambda: self._write_once(record, capture)):
            return False
        logger.info("stored run %s: %d bytes in %.2f s", record.id[:8], needed, time.perf_counter() - started)
        return True

    def _write_once(self, record: RunRecord, capture: CaptureReader) -> None:
        partial = self._folder / f"{PARTIAL}{record.id}-{os.getpid()}"
        try:
            private_folder(self._folder)  # somebody may have removed it, with all runs
            size = self._files.write(partial, record, capture)
            self._make_room(size, keep=record.id)
            self._publish(partial, record.id, size, capture)
            sync(self._folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _try(self, needed: int, run_id: str, write: Callable[[], None]) -> bool:
        """Write; while the disk is full, the oldest runs make room. False if the disk does not take it all the same."""
        freed = 0
        while True:
            try:
                write()
            except (OSError, SafetensorError, ValueError, RuntimeError) as error:
                with self._changed:
                    ours = sum(self._sizes.values())
                room = is_full(error) and not enough(freed, needed) and self.disk.could_hold(needed, ours)
                if room and (dropped := self._drop_oldest(keep=run_id)):
                    freed += dropped
                    continue
                self.disk.note(error)
                logger.error("run %s could not be stored: %s", run_id[:8], self.disk.trouble)
                return False
            self.disk.trouble = None
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

        def write() -> None:
            with contextlib.suppress(FileNotFoundError, Damaged):  # it is not there, was forgotten, or is lost anyway
                self._files.update(record)

        self._try(0, record.id, write)

    def _make_room(self, needed: int, keep: str) -> None:
        """Drop the least recently used until `needed` more bytes are within the limit."""
        while True:
            with self._changed:
                used = sum(size for run_id, size in self._sizes.items() if run_id != keep)
            if used + needed <= self.limit_bytes or not self._drop_oldest(keep):
                return

    def _drop_oldest(self, keep: str) -> int:
        """Drop the least recently used run; how many bytes that was, 0 if there is none that can be dropped."""
        with self._changed:
            victim, size = next(((run_id, size) for run_id, size in self._sizes.items() if run_id != keep), ("", 0))
        if not victim:
            return 0
        try:
            self.forget(victim)
        except NotWritable:
            return 0
        logger.info("dropped run %s to make room", victim[:8])
        return size

    def _remove(self, run_id: str) -> bool:
        """Take a run's folder away, out of sight first. Raises OSError."""
        trash = self._folder / f"{PARTIAL}{run_id}-{time.monotonic_ns()}-gone"
        try:
            (self._folder / run_id).rename(trash)
        except FileNotFoundError:
            return False
        shutil.rmtree(trash, ignore_errors=True)
        return True


def _as_kept(record: RunRecord, before: RunRecord) -> RunRecord:
    """A new record of a run that lies where it lay."""
    return replace(record, stored=before.stored, kept=before.kept, bytes=before.bytes)


def _bytes_of(runs: OrderedDict[str, Stored]) -> int:
    return sum(record.bytes for record, _ in runs.values())
