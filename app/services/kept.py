"""The last few things that were worked out of finished runs. Knows neither what they are nor HTTP."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[str | int, ...]


class Kept(Generic[T]):
    """Answers by key, of which the ids of their runs are a part; least recently used first out.

    Each is found once, whichever thread asks first. Nothing stays of a run that is forgotten, since it may hold its
    text: neither what was there nor what is being worked out meanwhile.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[Key, T] = OrderedDict()
        self._forgotten = 0  # how many runs were
        self._lock = threading.Lock()
        self._finding = threading.Lock()  # one at a time: whoever waits may want the same

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Key) -> T | None:
        """What is kept under a key."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def find(self, key: Key, find: Callable[[], T]) -> T:
        """The same, or what is found now."""
        known = self.get(key)
        if known is not None:
            return known
        with self._finding:
            known = self.get(key)
            if known is not None:
                return known
            before = self._forgotten
            found = find()
            with self._lock:
                if self._forgotten == before:
                    self._known[key] = found
                while len(self._known) > self._limit:
                    self._known.popitem(last=False)
        return found

    def forget(self, run_id: str) -> None:
        """Drop everything of a run."""
        with self._lock:
            self._forgotten += 1
            for key in [key for key in self._known if run_id in key]:
                del self._known[key]
