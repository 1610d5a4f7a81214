"""The work of one run in the worker thread: load, tokenise, pass, check. A failure ends that run and nothing else.

It knows neither the queue nor the store; what is to happen with a finished capture is handed in.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from app.services.cutting import cut_tokens
from app.services.errors import DomainError, RunCancelled, RunFailed, RunTooLarge
from app.services.live import LiveRun
from app.services.ports import ModelEntry, Models
from app.services.records import Failure, Options, Progress, RunRecord, Stage, TextFacts, Timings
from models.errors import Cancelled, CaptureError
from models.protocol import AttentionModel, CaptureReader, ModelDescription, RunResult, ShouldStop
from models.tokens import Token

logger = logging.getLogger("everyhead.runs")

PREPARING_STEPS = 100  # loading reports a fraction; progress counts
FACTS = ("family", "kind", "n_layers", "n_heads", "n_kv_heads", "max_tokens", "weight_precision")

Put = Callable[[RunRecord, CaptureReader], None]


def model_facts(entry: ModelEntry, about: ModelDescription | None) -> dict[str, Any]:
    """The `model` of a summary: from the catalogue, and from the model itself once it is loaded."""
    known: Any = about or entry
    facts = {"id": entry.id, "name": entry.name, **{name: getattr(known, name) for name in FACTS}}
    facts["revision"] = entry.revision or (about.revision if about else None)
    facts["dtype"] = about.dtype if about else None
    facts["implementation"] = about.implementation if about else None
    facts["note"] = entry.note
    return facts


class Compute:
    """Runs and checks on the models of a catalogue."""

    def __init__(self, models: Models, limit_bytes: int) -> None:
        self._models = models
        self._limit_bytes = limit_bytes
        self._tokenizing = threading.Lock()  # tokenizers are not made for two threads at once

    def is_loaded(self, model_id: str) -> bool:
        """Whether asking for the model takes no time."""
        return self._models.is_loaded(model_id)

    def fit(self, model_id: str, text: str, options: Options) -> tuple[AttentionModel, tuple[Token, ...], TextFacts]:
        """The tokens that a run is about. Raises TextEmpty, TextTooLong, RunTooLarge."""
        model = self._load(model_id, lambda _: None, lambda: False)
        return model, *self._fit(model, text, options)

    def tokenize(
        self, model_id: str, text: str, *, add_special_tokens: bool, stopped: ShouldStop
    ) -> tuple[list[Token], int]:
        """All tokens of a text, and the model's limit. Raises Cancelled."""
        model = self._load(model_id, lambda _: None, stopped)
        with self._tokenizing:
            return model.tokenize(text, add_special_tokens=add_special_tokens), model.description.max_tokens

    def run(self, run: LiveRun, put: Put) -> None:
        """One run, from queued to done, failed or cancelled."""
        self._guard(run, lambda: self._run(run, put))

    def check(self, run: LiveRun, update: Callable[[RunRecord], None]) -> None:
        """The whole-pass comparison of a finished run; its card then holds the result."""
        self._guard(run, lambda: self._check(run, update))

    @staticmethod
    def cancel(run: LiveRun) -> None:
        """End it now; the pass notices at its next module. A check leaves its run as it was."""
        record = _ended(run.record)
        if not record.finished:
            record = replace(record, status="cancelled")
        run.finish(record, failure=RunCancelled())

    def _guard(self, run: LiveRun, work: Callable[[], None]) -> None:
        """Do the work; whatever goes wrong becomes this run's failure."""
        try:
            work()
        except Cancelled:
            self.cancel(run)
        except DomainError as error:
            _fail(run, error)
        except CaptureError as error:
            _fail(run, RunFailed(f"The model's attention could not be captured: {error}", run=run.record.id), error)
        except Exception as error:  # noqa: BLE001 - any library may raise anything; its text may quote the user's
            kind = type(error).__name__
            logger.error("run %s failed: %s", run.record.id[:8], kind)
            _fail(run, RunFailed("The model's pass failed. POST the run again to retry.", run=run.record.id, kind=kind))

    def _load(self, model_id: str, on_progress: Callable[[float], None], stopped: Callable[[], bool]) -> AttentionModel:
        return self._models.load(model_id, on_progress, stopped)

    def _fit(self, model: AttentionModel, text: str, options: Options) -> tuple[tuple[Token, ...], TextFacts]:
        with self._tokenizing:
            tokens = model.tokenize(text, add_special_tokens=options.add_special_tokens)
        kept, facts = cut_tokens(tokens, len(text), model.description.max_tokens, options.truncate)
        if (needed := model.capture_bytes(len(kept))) > self._limit_bytes:
            raise RunTooLarge(needed, self._limit_bytes)
        return kept, facts

    def _run(self, run: LiveRun, put: Put) -> None:
        started = time.perf_counter()
        timings = Timings(wait_ms=_ms(started - run.submitted_at))
        model_id = run.record.model["id"]
        run.change(status="running", progress=Progress("preparing"))
        model = self._load(model_id, lambda part: _at(run, "preparing", round(part * PREPARING_STEPS)), run.stopped)
        _at(run, "tokenizing", 0, 0)
        tokenizing = time.perf_counter()
        tokens, facts = self._fit(model, run.text, run.record.options)
        timings = replace(timings, tokenize_ms=_ms(time.perf_counter() - tokenizing))
        about = model_facts(self._models.entry(model_id), model.description)
        bytes_needed = model.capture_bytes(len(tokens))
        run.change(record=replace(run.record, model=about, tokens=tokens, text=facts, bytes=bytes_needed))
        _at(run, "forward", 0, 0)
        result = model.run([token.id for token in tokens], on_layer=_reporter(run), should_stop=run.stopped)
        self._finish(run, result, timings, put)

    @staticmethod
    def _finish(run: LiveRun, result: RunResult, timings: Timings, put: Put) -> None:
        now = time.perf_counter()
        seconds = result.seconds
        timings = replace(
            timings,
            forward_ms=_ms(seconds.get("forward", 0.0)),
            check_ms=_ms(sum(value for name, value in seconds.items() if name != "forward")),
            total_ms=_ms(now - run.submitted_at),
        )
        record = replace(
            run.record,
            status="done",
            progress=Progress("done"),
            sites=tuple(result.capture.sites),
            card=result.card,
            timings=timings,
        )
        run.finish(record, before=lambda: put(record, result.capture))
        logger.info("run %s done: %d tokens in %.0f ms", record.id[:8], len(record.tokens), timings.total_ms)

    def _check(self, run: LiveRun, update: Callable[[RunRecord], None]) -> None:
        run.change(progress=Progress("checking"))
        model = self._load(run.record.model["id"], lambda _: None, run.stopped)
        check = model.compare_whole_pass([token.id for token in run.record.tokens], should_stop=run.stopped)
        card = run.record.card
        record = replace(run.record, progress=Progress("done"), card=card.replace(check) if card else None)
        run.finish(record, before=lambda: update(record))


def _fail(run: LiveRun, error: DomainError, cause: CaptureError | None = None) -> None:
    """End a run with its reason; a failed check leaves its run as it was."""
    record = _ended(run.record)
    if not record.finished:
        failure = Failure(error.code, error.message, error.details)
        record = replace(record, status="failed", error=failure, card=cause.card if cause else None)
    run.finish(record, failure=error)


def _ended(record: RunRecord) -> RunRecord:
    """The record after work that came to nothing: a run stays at the stage that it reached; a check's run was done."""
    progress = Progress("done") if record.finished else replace(record.progress, queue_position=None)
    return replace(record, progress=progress)


def _at(run: LiveRun, stage: Stage, done: int, total: int = PREPARING_STEPS) -> None:
    run.change(progress=Progress(stage, done, total))


def _reporter(run: LiveRun) -> Callable[[int, int], None]:
    """Reports modules done; after the last one come the checks."""

    def on_layer(done: int, total: int) -> None:
        _at(run, "forward" if done < total else "checking", done, total)

    return on_layer


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
