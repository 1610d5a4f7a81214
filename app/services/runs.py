"""Runs: from a request to a stored capture. The same request is one run, however often it is asked for.

It knows nothing of HTTP, and of models only what `models/protocol.py` says.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.services.compute import NO_PAIR, Compute, model_facts, require_same_weights, require_usable
from app.services.errors import (
    DomainError,
    InvalidRequest,
    RunCancelled,
    RunDamaged,
    RunFailed,
    RunGone,
    RunNotFinished,
    ShuttingDown,
    TextEmpty,
)
from app.services.identity import load_key, run_id
from app.services.jobs import JobQueue
from app.services.live import LiveRun, finished_run
from app.services.ports import ModelEntry, Models
from app.services.records import Options, RunRecord, Target, TextFacts, Texts, now
from app.services.run_files import Stored
from app.services.store import RunStore
from models.capture import VERSION as CAPTURE_VERSION
from models.card import Check
from models.protocol import ShouldStop
from models.tokens import Token

REMEMBERED = 200  # failed and cancelled runs whose state can still be asked for
DTYPE = "model"  # arithmetic follows the model's own type
BOTH = "encoder-decoder"
FORMAT_VERSION = f"3.{CAPTURE_VERSION}"  # of what is stored, spans and labels too; a change makes older runs unreadable


@dataclass(frozen=True)
class RunRequest:
    """What somebody wants to see."""

    model: str
    text: str
    options: Options = field(default_factory=Options)  # target and pair follow from the texts
    implementation: str | None = None
    text_pair: str | None = None
    target_text: str | None = None

    @property
    def texts(self) -> Texts:
        """Everything that was sent to be looked at."""
        return Texts(self.text, self.text_pair, self.target_text)


class RunService:
    """Submit a run, follow it, read it, forget it. Every method may be called from any thread."""

    def __init__(self, models: Models, compute: Compute, store: RunStore, queue: JobQueue, data_dir: Path) -> None:
        self._models, self._compute, self._store, self._queue = models, compute, store, queue
        self._data_dir = data_dir
        self._key = b""
        self._lock = threading.Lock()
        self._live: OrderedDict[str, LiveRun] = OrderedDict()  # unfinished, failed, cancelled
        self._checks: dict[str, LiveRun] = {}

    def start(self) -> None:
        """Read the id key and what is stored, and start working. Nothing touches the disk before."""
        self._key = load_key(self._data_dir)
        self._store.start()
        self._queue.start()

    def submit(self, request: RunRequest, *, wanted: bool) -> LiveRun:
        """The run of this request, queued if it is not there yet. With `wanted` it needs nobody to wait for it.

        Else the caller waits for it and must call `release`. Raises what the model, the text or the queue forbid.
        """
        entry = self._usable(request)
        request = _settled(request, entry)
        identity = self._identity(request, entry)
        if (run := self._join(identity, wanted=wanted)) is not None:
            return run
        if self._compute.is_loaded(request.model, request.implementation):  # refuse at once a text that does not fit
            self._compute.fit(request.model, request.implementation, request.texts, request.options)
        with self._lock:
            if (run := self._joined(identity, wanted=wanted)) is None:
                run = self._new(identity, request, entry)
                self._queue.submit(run)
                run.join(wanted=wanted)
                self._remember(run)
        return run

    def tokenize(self, request: RunRequest, *, stopped: ShouldStop = lambda: False) -> tuple[list[Token], int]:
        """Tokens of a text or pair and the model's limit; loads the model if it must. Raises Cancelled."""
        self._usable(request)
        special = request.options.add_special_tokens
        return self._compute.tokenize(request.model, request.texts, add_special_tokens=special, stopped=stopped)

    def tokenize_target(self, request: RunRequest, *, stopped: ShouldStop = lambda: False) -> list[Token]:
        """What the decoder reads for the request's target text; nothing if there is none. Raises Cancelled."""
        self._usable(request)
        if request.target_text is None:
            return []
        return self._compute.tokenize_target(request.model, request.target_text, stopped=stopped)

    def release(self, run: LiveRun) -> None:
        """The caller waits no longer; a run for which nobody waits and that nobody wanted is cancelled."""
        with self._lock:
            if run.leave():
                self._cancel(run)

    def find(self, identity: str) -> LiveRun:
        """A run in whatever state. Raises RunGone, RunDamaged."""
        with self._lock:
            live = self._live.get(identity)
            check = self._checks.get(identity)
        if live is not None:
            return live
        stored = self._store.get(identity)
        if stored is None:
            raise RunGone
        return check or finished_run(stored[0])

    def read(self, identity: str) -> Stored:
        """A finished run and its capture. Raises RunGone, RunDamaged, RunNotFinished, RunFailed, RunCancelled."""
        with self._lock:
            live = self._live.get(identity)
        if live is not None and live.record.status != "done":
            raise _refusal(live)
        stored = self._store.get(identity)
        if stored is None:
            raise RunGone
        return stored

    def delete(self, identity: str) -> str:
        """Cancel an unfinished run unless somebody waits; forget any other. Says cancelled, kept or forgotten."""
        with self._lock:
            live = self._live.get(identity)
            if live is not None and not live.over:
                if not live.unwant():
                    return "kept"
                self._cancel(live)
                return "cancelled"
            self._live.pop(identity, None)
        if not self._store.forget(identity) and live is None:
            raise RunGone
        return "forgotten"

    def forget(self, run_id: str) -> None:
        """Stop the check of a run that is gone: it holds its tokens."""
        with self._lock:
            if (work := self._checks.pop(run_id, None)) is not None:
                self._cancel(work)

    def check(self, identity: str) -> LiveRun:
        """Compare the whole pass of a finished run with the model's own kernel; the caller must `release` it."""
        record, _ = self.read(identity)
        with self._lock:
            work = self._checks.get(identity)
            if work is None or work.over:
                work = LiveRun(record, self._do_check)
                whole = (
                    next((check for check in record.card.checks if check.id == "whole_pass"), None)
                    if record.card
                    else None
                )
                if whole is None or _of_all_tokens(whole):
                    work.over = True
                else:
                    require_same_weights(self._models, record)
                    self._queue.submit(work)
                    self._checks[identity] = work
            work.join(wanted=False)
        return work

    def refuse(self) -> None:
        """Take no further work; what is stored can be read."""
        self._queue.refuse()

    def unfinished(self) -> list[LiveRun]:
        """Runs and checks that wait or are being worked on."""
        with self._lock:
            return [run for run in (*self._live.values(), *self._checks.values()) if not run.over]

    def stop(self) -> None:
        """Stop every unfinished run; whoever waits for one is told that the server is being stopped."""
        self.refuse()
        for run in self.unfinished():
            self._cancel(run, ShuttingDown())

    def close(self) -> None:
        """The same, then wait for the worker and the writer."""
        self.stop()
        self._queue.close()
        self._store.close()

    def problems(self) -> list[str]:
        """Why no run could be made now; empty if one could."""
        threads = {"model": self._queue.alive, "store": self._store.alive}
        problems = [f"the {name} thread has stopped" for name, alive in threads.items() if not alive]
        if self._store.disk.trouble is not None:
            problems.append(f"the data folder takes no runs: {self._store.disk.trouble}")
        first = next(iter(self._models.list()), None)
        if first is None:
            return [*problems, "no model is configured"]
        if first.state in ("unavailable", "needs_download"):
            problems.append(f"the default model is {first.state}" + (f": {first.reason}" if first.reason else ""))
        return problems

    def _usable(self, request: RunRequest) -> ModelEntry:
        """The model's entry, after the refusals that need no tokenizer."""
        for name in ("text", "text_pair", "target_text"):
            given: str | None = getattr(request, name)
            if given is not None and not given.strip():
                raise TextEmpty(name)
        entry = self._models.entry(request.model)
        require_usable(entry)
        if problems := _misfits(request, entry):
            raise InvalidRequest(problems)
        return entry

    def _identity(self, request: RunRequest, entry: ModelEntry) -> str:
        return run_id(
            self._key,
            model=entry.id,
            revision=entry.revision or "",
            implementation=request.implementation or "",
            dtype=DTYPE,
            format_version=FORMAT_VERSION,
            texts=request.texts,
            options=request.options,
        )

    def _join(self, identity: str, *, wanted: bool) -> LiveRun | None:
        with self._lock:
            run = self._joined(identity, wanted=wanted)
        if run is None:
            with contextlib.suppress(RunDamaged):  # then it is computed again
                if (stored := self._store.get(identity)) is not None:
                    run = finished_run(stored[0])
        return run

    def _joined(self, identity: str, *, wanted: bool) -> LiveRun | None:
        """An unfinished run of this id, now with one more who wants it."""
        run = self._live.get(identity)
        if run is None or run.over:
            return None
        run.join(wanted=wanted)
        return run

    def _new(self, identity: str, request: RunRequest, entry: ModelEntry) -> LiveRun:
        characters = len(request.text)
        record = RunRecord(
            identity,
            "queued",
            now(),
            model_facts(entry, request.implementation or entry.implementations[0], None),
            request.options,
            TextFacts(characters, (0, characters)),
        )
        return LiveRun(record, self._do_run, request.texts)

    def _remember(self, run: LiveRun) -> None:
        self._live[run.record.id] = run
        self._live.move_to_end(run.record.id)
        past = [identity for identity, old in self._live.items() if old.over]
        for identity in past[: max(0, len(past) - REMEMBERED)]:
            del self._live[identity]

    def _cancel(self, run: LiveRun, failure: DomainError | None = None) -> None:
        """Stop a run (its state says so at once) or a check (its run stays done). Under the lock or at the end."""
        self._compute.cancel(run, failure)
        self._queue.remove(run)
        if self._checks.get(run.record.id) is run:
            del self._checks[run.record.id]

    def _do_run(self, run: LiveRun) -> None:
        """In the worker thread."""
        self._compute.run(run, self._store.put)
        with self._lock:
            if run.record.status == "done" and self._live.get(run.record.id) is run:
                del self._live[run.record.id]

    def _do_check(self, run: LiveRun) -> None:
        """In the worker thread."""
        self._compute.check(run, self._store.update)
        with self._lock:
            if self._checks.get(run.record.id) is run:
                del self._checks[run.record.id]


def _misfits(request: RunRequest, entry: ModelEntry) -> dict[str, str]:
    """Fields of a request that this model has no use for, with what to do."""
    problems = {}
    if request.implementation not in (None, *entry.implementations):
        problems["implementation"] = f"{' or '.join(entry.implementations)} for this model"
    if request.target_text is not None and entry.kind not in (None, BOTH):
        problems["target_text"] = f"only {BOTH} models read one, this is {_article(entry.kind)}; leave it out"
    if request.text_pair is not None and entry.takes_pair is False:
        problems["text_pair"] = NO_PAIR
    return problems


def _article(kind: str | None) -> str:
    return f"an {kind}" if kind == "encoder" else f"a {kind}"


def _settled(request: RunRequest, entry: ModelEntry) -> RunRequest:
    """The request with everything that it leaves to us."""
    given: Target = "written" if request.target_text is None else "given"
    options = replace(request.options, target=given if entry.kind == BOTH else None, pair=request.text_pair is not None)
    return replace(request, options=options, implementation=request.implementation or entry.implementations[0])


def _refusal(run: LiveRun) -> DomainError:
    """Why an unfinished, failed or cancelled run has no weights."""
    if not run.over:
        return RunNotFinished(run.record.status)
    if run.record.status == "cancelled":
        return RunCancelled()
    return RunFailed(cause=run.record.error.code if run.record.error else None)


def _of_all_tokens(check: Check) -> bool:
    # the whole pass was compared, and not only the beginning of the text
    return check.status != "not_compared" and check.detail.get("how") not in ("prefix", "excerpt")
