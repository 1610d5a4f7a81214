"""How alike a run's heads are, computed once and kept for the last few runs. It knows nothing of HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.services.kept import Kept
from app.services.run_files import Stored

if TYPE_CHECKING:
    from models.similarity import Similarity

KEPT = 4  # results; one of 1,200 heads is 6 MB


class SimilarityService:
    """Comparisons of heads by run and site. For any thread; one is made at a time, it takes all cores."""

    def __init__(self) -> None:
        self._found: Kept[Similarity] = Kept(KEPT)

    def read(self, run: Stored, site: str) -> Similarity:
        """The comparison of all heads of a site of a finished run. The site is one of the run's."""
        record, capture = run

        def compare() -> Similarity:
            from models.similarity import similarity  # here: a server that compares no heads needs none of it

            return similarity(capture, capture.site(site))

        return self._found.find([record], (site,), compare)

    def forget(self, run_id: str) -> None:
        """Drop what was found of a run."""
        self._found.forget(run_id)


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
