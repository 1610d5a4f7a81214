"""The reference panel of a model: its heads' figures averaged over built-in texts, computed once and kept.

One job in the line of all model work runs every text; what it finds is a file in the data folder, named by model,
revision, implementation and format. A panel that the disk did not take stays in memory. It knows nothing of HTTP.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from app.services.compute import Compute, guarded, model_facts, require_usable
from app.services.errors import (
    DomainError,
    InvalidRequest,
    NotComputed,
    RunCancelled,
    ShuttingDown,
    WeightsChanged,
)
from app.services.jobs import JobQueue
from app.services.live import LiveRun
from app.services.panel_files import Panel, PanelFiles
from app.services.ports import ModelEntry, Models
from app.services.records import Options, Progress, RunRecord, TextFacts, Texts, now
from models.capture import VERSION as CAPTURE_VERSION
from models.protocol import AttentionModel, CaptureReader
from models.reference import NAMES, Reference, Tokenize, references_for
from models.reference import VERSION as REFERENCE_VERSION
from models.reference.averages import average_heads
from models.token_facts import facts_of
from models.tokens import Token

FORMAT_VERSION = f"2.{REFERENCE_VERSION}.{CAPTURE_VERSION}"
STOPPED = "Computing the reference panel was stopped. POST to this address again to compute it."
CHANGED = "The model's weights changed while the panel waited. POST to this address again to compute it on these."
PanelStatus = Literal["absent", "queued", "running", "done"]


class ReferenceWork(LiveRun):
    """One panel that is being computed, and the panel once it is over and came to something."""

    found: Panel | None = None
    stored = False  # the disk has it too
    what, again = "reference panel", "POST to this address again to retry."

    @property
    def named(self) -> dict[str, str]:
        """By its model: its key is no run."""
        return {"model": self.record.model["id"]}


class ReferenceService:
    """Ask for a panel, read it, stop it. Every method may be called from any thread."""

    def __init__(self, models: Models, compute: Compute, queue: JobQueue, folder: Path) -> None:
        self._models, self._compute, self._queue = models, compute, queue
        self._files = PanelFiles(folder, FORMAT_VERSION)
        self._lock = threading.Lock()
        self._works: dict[str, ReferenceWork] = {}  # unfinished, failed, stopped, or not taken by the disk
        self._stored = 0  # how many works the disk has taken

    def start(self) -> None:
        """Clean up what earlier processes left. Nothing touches the disk before."""
        self._files.start()

    def read(self, model_id: str, implementation: str | None = None) -> Panel:
        """The panel. Raises UnknownModel, InvalidRequest, NotComputed."""
        key = self._key(*self._chosen(model_id, implementation))
        panel = self._found(key)
        if panel is None:
            work = self._works.get(key)
            if work is None or work.over:
                raise NotComputed(None, work.failure.code if work is not None and work.failure is not None else None)
            raise NotComputed(work.record.status)
        return panel

    def status(self, model_id: str, implementation: str | None = None) -> PanelStatus:
        """Whether there is a panel, or work on it. Raises UnknownModel, InvalidRequest."""
        key = self._key(*self._chosen(model_id, implementation))
        if self._found(key) is not None:
            return "done"
        work = self._works.get(key)
        if work is None or work.over:
            return "absent"
        return "queued" if work.record.status == "queued" else "running"

    def submit(self, model_id: str, implementation: str | None = None, *, wanted: bool) -> ReferenceWork:
        """The work on a panel, queued if the panel is not there; a caller who does not want it must `release` it.

        Raises:  UnknownModel, InvalidRequest, ModelUnavailable, ModelNeedsDownload, QueueFull
        """
        entry, chosen = self._chosen(model_id, implementation)
        key = self._key(entry, chosen)
        while True:
            stored = self._stored
            panel = self._files.read(key)  # without the lock: `release` takes it on the event loop
            with self._lock:
                if panel is None and stored != self._stored:
                    continue  # the one that was taken since may be this one
                work = self._works.get(key)
                if work is None or (work.over and work.found is None):
                    work = ReferenceWork(_record(key, entry, chosen), self._do)
                    if panel is not None:
                        work.record, work.found, work.over = _done(work.record), panel, True
                    else:
                        require_usable(entry)
                        self._queue.submit(work)
                        self._works[key] = work
                work.join(wanted=wanted)
            return work

    def release(self, work: LiveRun) -> None:
        """A caller waits no longer; a panel that nobody waits for and nobody wanted is not computed further."""
        with self._lock:
            if work.leave():
                self._stop(work)

    def find(self, model_id: str, implementation: str | None = None) -> ReferenceWork:
        """The work that goes on, or was the last. Raises UnknownModel, InvalidRequest, NotComputed."""
        work = self._works.get(self._key(*self._chosen(model_id, implementation)))
        if work is None:
            self.read(model_id, implementation)
            return self.submit(model_id, implementation, wanted=True)  # it is stored: over already
        return work

    def cancel(self, model_id: str, implementation: str | None = None) -> bool:
        """Stop the work unless somebody else waits for it; False if none goes on. Raises UnknownModel."""
        key = self._key(*self._chosen(model_id, implementation))
        with self._lock:
            work = self._works.get(key)
            if work is None or work.over or not work.unwant():
                return False
            self._stop(work)
        return True

    def close(self) -> None:
        """Stop everything unfinished."""
        with self._lock:
            for work in self._works.values():
                self._stop(work, ShuttingDown())

    def _stop(self, work: LiveRun, failure: DomainError | None = None) -> None:
        Compute.cancel(work, failure or RunCancelled(STOPPED))
        self._queue.remove(work)

    def _chosen(self, model_id: str, implementation: str | None) -> tuple[ModelEntry, str]:
        entry = self._models.entry(model_id)
        if implementation not in (None, *entry.implementations):
            raise InvalidRequest({"implementation": f"{' or '.join(entry.implementations)} for this model"})
        return entry, implementation or entry.implementations[0]

    @staticmethod
    def _key(entry: ModelEntry, implementation: str) -> str:
        parts = [entry.id, entry.revision or "", implementation, FORMAT_VERSION]
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()

    def _found(self, key: str) -> Panel | None:
        """The panel on disk, or the one that a disk did not take."""
        work = self._works.get(key)
        return self._files.read(key) or (work.found if work is not None else None)

    def _do(self, work: LiveRun) -> None:
        """In the worker thread."""
        assert isinstance(work, ReferenceWork)
        guarded(work, lambda: self._make(work))
        with self._lock:
            self._stored += work.stored
            if work.stored and self._works.get(work.record.id) is work:
                del self._works[work.record.id]

    def _make(self, work: ReferenceWork) -> None:
        about = work.record.model
        work.change(status="running", progress=Progress("preparing"))
        model = self._models.load(about["id"], lambda _: None, work.stopped, about["implementation"])
        about = self._of_loaded(work, model)
        references = list(references_for(self._tokenizer(model), model.description.max_tokens))
        by_text = {one.name: _heads(_run(model, one, at, work)) for at, one in enumerate(references)}
        panel = {
            "model": about["id"],
            "revision": about["revision"],
            "implementation": about["implementation"],
            "texts": [{"name": one.name, "tokens": len(one.tokens)} for one in references],
            "heads": average_heads(by_text),
        }
        work.finish(_done(work.record), before=lambda: self._keep(work, panel))

    def _of_loaded(self, work: ReferenceWork, model: AttentionModel) -> dict[str, Any]:
        """What is known of the weights that were loaded: the work waited for them. Raises WeightsChanged."""
        about = work.record.model
        entry = self._models.entry(about["id"])
        if about["revision"] is None and entry.revision is not None:  # asked for while they were being downloaded
            key, before = self._key(entry, about["implementation"]), work.record.id
            about = {**about, "revision": entry.revision}
            with self._lock:
                if self._works.get(before) is work:
                    self._works.setdefault(key, self._works.pop(before))
                work.change(record=replace(work.record, id=key, model=about))
        if about["revision"] not in (None, model.description.revision):
            raise WeightsChanged(entry.id, CHANGED)
        return about

    def _tokenizer(self, model: AttentionModel) -> Tokenize:
        return lambda text: self._compute.tokens_of(model, Texts(text))

    def _keep(self, work: ReferenceWork, panel: Panel) -> None:
        def replaces(other: Panel) -> bool:
            return all(other.get(name) == panel[name] for name in ("model", "implementation"))  # of weights of before

        work.found, work.stored = panel, self._files.write(work.record.id, panel, replaces)


def _run(model: AttentionModel, reference: Reference, at: int, work: LiveRun) -> CaptureReader:
    """One input through the model; progress counts the modules of all inputs."""
    ids = [token.id for token in reference.tokens]
    target: list[Token] = []
    if model.description.kind == "encoder-decoder":
        target = model.write_target(ids, should_stop=work.stopped)

    def on_layer(done: int, total: int) -> None:
        work.change(progress=Progress("forward", at * total + done, len(NAMES) * total))

    result = model.run(
        ids,
        target_ids=[token.id for token in target] or None,
        facts=facts_of(reference.tokens),
        target_facts=facts_of(target) if target else None,
        on_layer=on_layer,
        should_stop=work.stopped,
    )
    return result.capture


def _heads(capture: CaptureReader) -> list[dict[str, Any]]:
    return [head for site in capture.sites for head in capture.head_scores(site.site)]


def _record(key: str, entry: ModelEntry, implementation: str) -> RunRecord:
    about = model_facts(entry, implementation, None)
    return RunRecord(key, "queued", now(), about, Options(), TextFacts(0, (0, 0)))


def _done(record: RunRecord) -> RunRecord:
    return replace(record, status="done", progress=Progress("done"))
