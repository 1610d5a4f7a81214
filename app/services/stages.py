"""Stage by stage: a finished run's tokens through both implementations of its model, and where they part.

Like a check it waits in the line of all model work. The last few results are kept in memory, so that a page can be
opened again. It knows nothing of HTTP; the comparison itself is `models/stages.py`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.services.compute import Compute, guarded, require_same_weights
from app.services.errors import DomainError, NoCounterpart, RunGone, ShuttingDown, StagesTooLong
from app.services.jobs import JobQueue
from app.services.live import LiveRun
from app.services.ports import Models
from app.services.records import Progress, RunRecord
from app.services.run_files import Stored
from models.protocol import AttentionModel, ShouldStop

if TYPE_CHECKING:
    from models.stages import Comparison

OWN, REFERENCE = "own", "transformers"
LONGEST = 1024  # tokens, as in models/stages.py, which is not loaded before it is needed
REMEMBERED = 8

Compare = Callable[[AttentionModel, AttentionModel, Sequence[int], ShouldStop], "Comparison"]


def compare_with_engine(
    ours: AttentionModel, theirs: AttentionModel, token_ids: Sequence[int], should_stop: ShouldStop
) -> Comparison:
    """The comparison of two real models."""
    from models.stages import compare_models  # here: a server that compares nothing needs none of it

    return compare_models(ours, theirs, token_ids, should_stop)


class StagesWork(LiveRun):
    """One comparison that is being made, and what it found once it is over."""

    found: Comparison | None = None
    what, again = "comparison of stages", "POST to this address again to retry."

    def keep(self, found: Comparison) -> None:
        """Take over what was found."""
        self.found = found


class StageService:
    """Ask for a comparison; `read` gives a finished run. Every method may be called from any thread."""

    def __init__(
        self,
        models: Models,
        queue: JobQueue,
        read: Callable[[str], Stored],
        compare: Compare = compare_with_engine,
    ) -> None:
        self._models, self._queue, self._read, self._compare = models, queue, read, compare
        self._lock = threading.Lock()
        self._works: OrderedDict[str, StagesWork] = OrderedDict()

    def submit(self, identity: str) -> StagesWork:
        """The comparison for this run, queued if it is not there yet; the caller must `release` it.

        Raises:  RunGone and the like, NoCounterpart, WeightsChanged, StagesTooLong, QueueFull
        """
        record, _ = self._read(identity)
        self._refuse(record)
        with self._lock:
            work = self._works.get(identity)
            if work is None or (work.over and work.found is None):
                work = StagesWork(record, self._do)
                self._queue.submit(work)
                self._works[identity] = work
            self._works.move_to_end(identity)
            work.join(wanted=False)
            self._forget_old()
        try:
            self._read(identity)
        except RunGone:  # since it was read first
            self.forget(identity)
            raise
        return work

    def release(self, work: LiveRun) -> None:
        """A caller waits no longer; a comparison that nobody waits for is stopped."""
        with self._lock:
            if work.leave():
                self._stop(work)

    def forget(self, run_id: str) -> None:
        """Stop the comparison of a run that is gone, and keep nothing of it."""
        with self._lock:
            if (work := self._works.pop(run_id, None)) is not None:
                self._stop(work)

    def close(self) -> None:
        """Stop every unfinished comparison."""
        with self._lock:
            for work in self._works.values():
                self._stop(work, ShuttingDown())

    def _stop(self, work: LiveRun, failure: DomainError | None = None) -> None:
        Compute.cancel(work, failure)
        self._queue.remove(work)

    def _refuse(self, record: RunRecord) -> None:
        model_id = record.model["id"]
        if not {OWN, REFERENCE} <= set(self._models.entry(model_id).implementations):
            raise NoCounterpart(model_id)
        require_same_weights(self._models, record)
        if (count := len(record.tokens)) > LONGEST:
            raise StagesTooLong(count, LONGEST)

    def _forget_old(self) -> None:
        over = [identity for identity, work in self._works.items() if work.over]
        for identity in over[: max(0, len(self._works) - REMEMBERED)]:
            del self._works[identity]

    def _do(self, work: LiveRun) -> None:
        """In the worker thread."""
        guarded(work, lambda: self._found(work))

    def _found(self, work: LiveRun) -> None:
        assert isinstance(work, StagesWork)
        work.change(progress=Progress("checking"))
        model_id = work.record.model["id"]
        ours, theirs = (
            self._models.load(model_id, lambda _: None, work.stopped, implementation)
            for implementation in (OWN, REFERENCE)
        )
        require_same_weights(self._models, work.record)  # they may have changed while it waited
        found = self._compare(ours, theirs, [token.id for token in work.record.tokens], work.stopped)
        work.finish(work.record, before=lambda: work.keep(found))  # nothing is found by what was stopped meanwhile
