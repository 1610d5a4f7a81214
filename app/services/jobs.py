"""One worker thread and a bounded line of jobs before it.

All model work goes through here, one job at a time. It knows nothing of runs, models or HTTP.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from app.services.errors import QueueFull, ShuttingDown

MAX_RETRY_S = 60


class Job(Protocol):
    """A piece of work. It handles its own failures: `run` raises nothing."""

    def run(self) -> None:
        """Do the work, in the worker thread."""

    def moved(self, position: int) -> None:
        """Told whenever the place in the line changes; 1 is next."""


class JobQueue:
    """First come, first served. `before_each` is called in the worker thread before a job starts."""

    def __init__(self, limit: int, clock: Callable[[], float], before_each: Callable[[], None] = lambda: None) -> None:
        self._limit = limit
        self._clock = clock
        self._before_each = before_each
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = self._refusing = False
        self._seconds_per_job = 5.0
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)

    def start(self) -> None:
        """Start the worker thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the worker thread is there to take jobs."""
        return self._thread.is_alive()

    def refuse(self) -> None:
        """Take no further job; those that are in the line go on."""
        with self._changed:
            self._refusing = True

    def submit(self, job: Job) -> None:
        """Put a job at the end of the line. Raises QueueFull, ShuttingDown."""
        with self._changed:
            if self._refusing:
                raise ShuttingDown
            if len(self._waiting) >= self._limit:
                raise QueueFull(self._limit, max(1, min(MAX_RETRY_S, round(self._seconds_per_job))))
            self._waiting.append(job)
            position = len(self._waiting)
            self._changed.notify()
        job.moved(position)

    def remove(self, job: Job) -> None:
        """Take a job out of the line; does nothing if it has started."""
        with self._changed:
            if job not in self._waiting:
                return
            self._waiting.remove(job)
        self._tell_positions()

    def close(self, timeout_s: float = 10.0) -> None:
        """Take no further job and wait for the one that runs."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _tell_positions(self) -> None:
        with self._changed:
            line = list(self._waiting)
        for position, job in enumerate(line, 1):
            job.moved(position)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
            self._before_each()  # the job stays in the line, so that it can be cancelled meanwhile
            with self._changed:
                if not self._waiting:
                    continue
                job = self._waiting.popleft()
            self._tell_positions()
            started = self._clock()
            job.run()
            del job  # its text may be deleted before the next one comes
            self._seconds_per_job += 0.3 * (self._clock() - started - self._seconds_per_job)
