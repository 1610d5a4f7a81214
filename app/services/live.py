"""A run or a check that is being worked on: its present state, who waits for it, and whom to tell about changes.

The state is replaced as a whole, so that any thread may read it without a lock. Who waits is counted under the lock of
the service that owns the work, the same one under which it is stopped: nobody can join what is just being given up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Protocol

from app.services.errors import DomainError
from app.services.records import Progress, RunRecord, Status, Texts

OnChange = Callable[[], None]


class LiveRun:
    """One piece of model work for one run.

    waiters  requests that wait for it now
    wanted   it goes on without anybody waiting, until it is deleted
    what     what it is called in the log; again: how a client tries it again after a failure
    """

    what = "run"
    again = "POST the run again to retry."

    def __init__(self, record: RunRecord, work: Callable[[LiveRun], None], texts: Texts | None = None) -> None:
        self.record = record
        self.texts = texts or Texts("")
        self.failure: DomainError | None = None
        self.waiters = 0
        self.wanted = False
        self.over = False
        self.submitted_at = time.perf_counter()
        self._ending = False
        self._stop = threading.Event()
        self._work = work
        self._lock = threading.Lock()
        self._listeners: list[OnChange] = []

    @property
    def named(self) -> dict[str, str]:
        """What a failure's details call it by."""
        return {"run": self.record.id}

    def join(self, *, wanted: bool) -> None:
        """One more waits, or wants it done without waiting. Under the owner's lock."""
        self.waiters += 0 if wanted else 1
        self.wanted = self.wanted or wanted

    def leave(self) -> bool:
        """One waits no longer; True if it is then to be stopped. Under the owner's lock."""
        self.waiters -= 1
        return self.waiters <= 0 and not self.wanted and not self.over

    def unwant(self) -> bool:
        """It is wanted no longer; True if it is then to be stopped: nobody waits. Under the owner's lock."""
        self.wanted = False
        return self.waiters <= 0 and not self.over

    def run(self) -> None:
        """Called by the worker thread."""
        if not self.over:
            self._work(self)

    def moved(self, position: int) -> None:
        """Called by the queue: the place in the line changed."""
        self.change(progress=replace(self.record.progress, queue_position=position))

    def stopped(self) -> bool:
        """Asked by the model before each attention module."""
        return self._stop.is_set()

    def change(
        self, *, status: Status | None = None, progress: Progress | None = None, record: RunRecord | None = None
    ) -> None:
        """Replace parts of the state and tell; ignored once it is over (a stopped pass may still report)."""
        with self._lock:
            if self.over:
                return
            new = record or self.record
            self.record = replace(new, status=status or new.status, progress=progress or new.progress)
        self._tell()

    def finish(
        self, record: RunRecord, *, failure: DomainError | None = None, before: Callable[[], None] = lambda: None
    ) -> None:
        """The last change, after `before`; neither happens if it was over already, or is just being ended elsewhere.

        `before` may write to the disk, so it holds no lock: the event loop listens meanwhile, and whoever stops the
        work under the owner's lock has come too late. If it raises, the work goes on as it was.
        """
        with self._lock:
            if self.over or self._ending:
                return
            self._ending = True
        try:
            before()
        except BaseException:
            self._ending = False
            raise
        with self._lock:
            self.record, self.failure, self.over, self.texts = record, failure, True, Texts("")
        self._stop.set()
        self._tell()

    def listen(self, on_change: OnChange) -> Callable[[], None]:
        """Have on_change called, from any thread, at each change; returns what ends that."""
        with self._lock:
            self._listeners.append(on_change)

        def end() -> None:
            with self._lock:
                self._listeners.remove(on_change)

        return end

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for on_change in listeners:
            on_change()

    async def changes(self) -> AsyncIterator[RunRecord]:
        """The present state at once, then each later one; ends when it is over. Quick changes are merged."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(changed.set)

        end = self.listen(wake)
        try:
            while True:
                changed.clear()
                over, record = self.over, self.record
                yield record
                if over:
                    return
                await changed.wait()
        finally:
            end()

    async def wait(self) -> None:
        """Return when it is over."""
        async for _ in self.changes():
            pass


class Owner(Protocol):
    """The service that gave the work out."""

    def release(self, work: LiveRun, /) -> None:
        """A caller waits no longer; what nobody waits for and nobody wanted is stopped."""


def finished_run(record: RunRecord) -> LiveRun:
    """A stored run in the form of a live one."""
    run = LiveRun(record, lambda _: None)
    run.over = True
    return run
