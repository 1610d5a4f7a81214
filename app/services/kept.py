"""The last few things that were worked out of finished runs. Knows neither what they are nor HTTP."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from app.services.records import RunRecord, now

T = TypeVar("T")
Key = tuple[str | int, ...]

REMEMBERED = 1000  # ids; more are not forgotten while one answer is worked out


class Forgotten:
    """Which runs were deleted or dropped lately. Whoever holds it lets one thread at a time ask."""

    def __init__(self) -> None:
        self._at: OrderedDict[str, str] = OrderedDict()

    def note(self, run_id: str) -> None:
        """From now on what was made of this run is gone; the same request may make it again."""
        self._at[run_id] = now()
        self._at.move_to_end(run_id)
        while len(self._at) > REMEMBERED:
            self._at.popitem(last=False)

    def covers(self, record: RunRecord) -> bool:
        """Whether a run was forgotten since it was made."""
        return record.created <= self._at.get(record.id, "")


class Kept(Generic[T]):
    """Answers by what they are of; least recently used first out.

    Each is found once, whichever thread asks first. Nothing stays of a run that is forgotten, since it may hold its
    text: neither what was there nor what is worked out of a run that was read before.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[Key, T] = OrderedDict()
        self._forgotten = Forgotten()
        self._lock = threading.Lock()
        self._finding = threading.Lock()  # one at a time: whoever waits may want the same

    def __len__(self) -> int:
        return len(self._known)

    def get(self, of: Sequence[RunRecord], what: Key) -> T | None:
        """What is kept of these runs."""
        key = _key(of, what)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def find(self, of: Sequence[RunRecord], what: Key, find: Callable[[], T]) -> T:
        """The same, or what is found now."""
        known = self.get(of, what)
        if known is not None:
            return known
        with self._finding:
            known = self.get(of, what)
            if known is not None:
                return known
            found = find()
            with self._lock:
                if not any(map(self._forgotten.covers, of)):
                    self._known[_key(of, what)] = found
                while len(self._known) > self._limit:
                    self._known.popitem(last=False)
        return found

    def forget(self, run_id: str) -> None:
        """Drop everything of a run."""
        with self._lock:
            self._forgotten.note(run_id)
            for key in [key for key in self._known if run_id in key]:
                del self._known[key]


def _key(of: Sequence[RunRecord], what: Key) -> Key:
    return (*(part for record in of for part in (record.id, record.created)), *what)
