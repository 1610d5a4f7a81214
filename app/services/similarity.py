"""How alike a run's heads are, computed once and kept for the last few runs. It knows nothing of HTTP."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from app.services.store import Stored

if TYPE_CHECKING:
    from models.similarity import Similarity

KEPT = 4  # results; one of 1,200 heads is 6 MB

Key = tuple[str, str, str]  # run, when it was made, site


class SimilarityService:
    """Comparisons of heads by run and site. For any thread; requests for the same one share it."""

    def __init__(self) -> None:
        self._changed = threading.Lock()
        self._one_at_a_time = threading.Lock()  # each takes all cores and its share of memory
        self._found: OrderedDict[Key, Future[Similarity]] = OrderedDict()

    def read(self, run: Stored, site: str) -> Similarity:
        """The comparison of all heads of a site of a finished run. The site is one of the run's."""
        record = run[0]
        key = (record.id, record.created, site)
        with self._changed:
            future = self._found.get(key)
            mine = future is None
            if future is None:
                future = self._found[key] = Future()
            self._found.move_to_end(key)
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
        if mine:
            self._compute(future, key, run)
        return future.result()

    def _compute(self, future: Future[Similarity], key: Key, run: Stored) -> None:
        from models.similarity import similarity  # here: a server that compares no heads needs none of it

        capture = run[1]
        try:
            with self._one_at_a_time:
                future.set_result(similarity(capture, capture.site(key[2])))
        except BaseException as error:
            future.set_exception(error)  # whoever waits is told too, and the next request tries again
            with self._changed:
                self._found.pop(key, None)
            raise


def similarity_dict(site: str, found: Similarity) -> dict[str, Any]:
    """The JSON form: everything but the distances, which are many."""
    return {
        "site": site,
        "rows": found.rows,
        "order": found.order,
        "positions": found.positions.tolist(),
        "duplicates": found.duplicates,
        "duplicates_in_all": found.duplicates_in_all,
    }
