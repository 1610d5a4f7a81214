"""The work of one run in the worker thread: load, tokenise, pass, check. A failure ends that run and nothing else.

It knows neither the queue nor the store; what is to happen with a finished capture is handed in.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from app.services.cutting import cut_tokens, known_characters
from app.services.errors import (
    DomainError,
    InvalidRequest,
    ModelNeedsDownload,
    ModelUnavailable,
    RunCancelled,
    RunFailed,
    RunTooLarge,
    TextDropped,
    TextTooLong,
    WeightsChanged,
)
from app.services.live import LiveRun
from app.services.ports import ModelEntry, Models
from app.services.records import Failure, Options, Progress, RunRecord, Stage, TextFacts, Texts, Timings
from models.errors import Cancelled, CaptureError, UnsupportedModel
from models.protocol import AttentionModel, CaptureReader, ModelDescription, RunResult, ShouldStop
from models.token_facts import facts_of
from models.tokens import Token

logger = logging.getLogger("everyhead.runs")

PREPARING_STEPS = 100  # loading reports a fraction; progress counts
FACTS = ("family", "kind", "n_layers", "n_heads", "n_kv_heads", "max_tokens", "weight_precision")

NO_PAIR = "this model reads one text; leave it out"

Put = Callable[[RunRecord, CaptureReader], None]


@dataclass(frozen=True)
class Fitted:
    """The tokens that a run is about: kept of the text, and of the target where one was given or written."""

    tokens: tuple[Token, ...]
    facts: TextFacts
    target: tuple[Token, ...] = ()


def model_facts(entry: ModelEntry, implementation: str, about: ModelDescription | None) -> dict[str, Any]:
    """The `model` of a summary: from the catalogue, and from the model itself once it is loaded."""
    known: Any = about or entry
    facts = {"id": entry.id, "name": entry.name, **{name: getattr(known, name) for name in FACTS}}
    facts["revision"] = entry.revision or (about.revision if about else None)
    facts["dtype"] = about.dtype if about else None
    facts["implementation"] = implementation
    facts["note"] = entry.note
    return facts


def require_usable(entry: ModelEntry) -> None:
    """Raise ModelUnavailable or ModelNeedsDownload for a model that cannot be used now."""
    if entry.state == "unavailable":
        raise ModelUnavailable(entry.id, entry.reason or "the reason is unknown")
    if entry.state == "needs_download":
        raise ModelNeedsDownload(entry.id)


def require_same_weights(models: Models, record: RunRecord) -> None:
    """Raise WeightsChanged if the catalogue has other weights now than those that a run was made with."""
    entry, before = models.entry(record.model["id"]), record.model["revision"]
    if None not in (entry.revision, before) and entry.revision != before:
        raise WeightsChanged(entry.id)


class Compute:
    """Runs and checks on the models of a catalogue."""

    def __init__(self, models: Models, limit_bytes: int) -> None:
        self._models = models
        self._limit_bytes = limit_bytes

    def is_loaded(self, model_id: str, implementation: str | None) -> bool:
        """Whether asking for the model takes no time."""
        return self._models.is_loaded(model_id, implementation)

    def fit(self, model_id: str, implementation: str | None, texts: Texts, options: Options) -> Fitted:
        """The tokens that a run is about. Raises what the text or its length forbids."""
        model = self._models.load(model_id, lambda _: None, lambda: False, implementation)
        return self._fit(model, texts, options)

    def tokenize(
        self, model_id: str, texts: Texts, *, add_special_tokens: bool, stopped: ShouldStop
    ) -> tuple[list[Token], int]:
        """All tokens of a text or pair, and the model's limit. Raises Cancelled, InvalidRequest."""
        model = self._models.load(model_id, lambda _: None, stopped)
        tokens = self.tokens_of(model, texts, add_special_tokens=add_special_tokens, stopped=stopped)
        return tokens, model.description.max_tokens

    def tokenize_target(self, model_id: str, text: str, *, stopped: ShouldStop) -> list[Token]:
        """What a decoder reads for a target text. Raises Cancelled."""
        model = self._models.load(model_id, lambda _: None, stopped)
        with known_characters():
            return model.tokenize_target(text)

    def tokens_of(
        self,
        model: AttentionModel,
        texts: Texts,
        *,
        add_special_tokens: bool = True,
        stopped: ShouldStop = lambda: False,
    ) -> list[Token]:
        """All tokens of a text or pair on a loaded model. Raises InvalidRequest, CharacterRefused, Cancelled."""
        if texts.pair is not None and not model.description.takes_pair:  # the catalogue may not have known
            raise InvalidRequest({"text_pair": NO_PAIR})
        with known_characters():
            return model.tokenize(
                texts.source, text_pair=texts.pair, add_special_tokens=add_special_tokens, should_stop=stopped
            )

    def run(self, run: LiveRun, put: Put) -> None:
        """One run, from queued to done, failed or cancelled."""
        guarded(run, lambda: self._run(run, put))

    def check(self, run: LiveRun, update: Callable[[RunRecord], None]) -> None:
        """The whole-pass comparison of a finished run; its card then holds the result."""
        guarded(run, lambda: self._check(run, update))

    @staticmethod
    def cancel(run: LiveRun, failure: DomainError | None = None) -> None:
        """End it now; the pass notices at its next module. A check leaves its run as it was."""
        record = _ended(run.record)
        if not record.finished:
            record = replace(record, status="cancelled")
        run.finish(record, failure=failure or RunCancelled())

    def _fit(self, model: AttentionModel, texts: Texts, options: Options) -> Fitted:
        tokens = self.tokens_of(model, texts, add_special_tokens=options.add_special_tokens)
        limit = model.description.max_tokens
        kept, facts = cut_tokens(tokens, len(texts.source), limit, options.truncate, pair=options.pair)
        target: list[Token] = []
        if texts.target is not None:
            with known_characters():
                target = model.tokenize_target(texts.target)
            if all(token.special for token in target):
                raise TextDropped("target_text")
        if len(target) > limit:
            raise TextTooLong(len(target), limit, "target_text")
        self._bytes_of(model, len(kept), len(target))
        return Fitted(kept, facts, tuple(target))

    def _bytes_of(self, model: AttentionModel, n_tokens: int, n_target: int) -> int:
        """What the capture will take. Raises RunTooLarge."""
        needed = model.capture_bytes(n_tokens, n_target)
        if needed > self._limit_bytes:
            raise RunTooLarge(needed, self._limit_bytes)
        return needed

    def _run(self, run: LiveRun, put: Put) -> None:
        started = time.perf_counter()
        timings = Timings(wait_ms=_ms(started - run.submitted_at))
        model_id, implementation = run.record.model["id"], run.record.model["implementation"]
        run.change(status="running", progress=Progress("preparing"))
        model = self._models.load(
            model_id, lambda part: _at(run, "preparing", round(part * PREPARING_STEPS)), run.stopped, implementation
        )
        _at(run, "tokenizing", 0, 0)
        tokenizing = time.perf_counter()
        fitted = self._fit(model, run.texts, run.record.options)
        timings = replace(
            timings, prepare_ms=_ms(tokenizing - started), tokenize_ms=_ms(time.perf_counter() - tokenizing)
        )
        about = model_facts(self._models.entry(model_id), implementation, model.description)
        record = replace(run.record, model=about, tokens=fitted.tokens, text=fitted.facts)
        run.change(record=record)
        target = fitted.target
        if record.options.target == "written":
            _at(run, "writing", 0, 0)
            target = tuple(model.write_target(**_source(record), should_stop=run.stopped))
        record = replace(record, target=target, bytes=self._bytes_of(model, len(record.tokens), len(target)))
        run.change(record=record, progress=Progress("forward"))
        result = model.run(
            **_inputs(record),
            facts=facts_of(record.tokens),
            target_facts=facts_of(record.target) if record.target else None,
            seed=crc32(record.id.encode()),  # other rows are checked in each run, the same when it is run again
            on_layer=_reporter(run),
            should_stop=run.stopped,
        )
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
            kept="pending",
            progress=Progress("done"),
            sites=tuple(result.capture.sites),
            card=result.card,
            timings=timings,
        )
        run.finish(record, before=lambda: put(record, result.capture))
        logger.info("run %s done: %d tokens in %.0f ms", record.id[:8], len(record.tokens), timings.total_ms)

    def _check(self, run: LiveRun, update: Callable[[RunRecord], None]) -> None:
        run.change(progress=Progress("checking"))
        record = run.record
        model = self._models.load(record.model["id"], lambda _: None, run.stopped, record.model["implementation"])
        require_same_weights(self._models, record)  # they may have changed while it waited
        check = model.compare_whole_pass(**_inputs(record), should_stop=run.stopped)
        card = record.card
        record = replace(record, progress=Progress("done"), card=card.replace(check) if card else None)
        run.finish(record, before=lambda: update(record))


def guarded(run: LiveRun, work: Callable[[], None]) -> None:
    """Do the work; whatever goes wrong becomes this run's failure, in the words of its kind of work."""
    try:
        work()
    except Cancelled:
        Compute.cancel(run)
    except DomainError as error:
        _fail(run, error)
    except CaptureError as error:
        _fail(run, RunFailed(f"The model's attention could not be captured: {error}", **run.named), error)
    except UnsupportedModel as error:
        _fail(run, RunFailed(f"This model cannot be shown: {error}", **run.named))
    except Exception as error:  # noqa: BLE001 - any library may raise anything; its text may quote the user's
        kind = type(error).__name__
        logger.error("%s %s failed: %s", run.what, run.record.id[:8], kind)
        again = (
            run.again if _may_pass(error) else f"{kind} was raised in it, and the same input would end the same way."
        )
        _fail(run, RunFailed(f"The model's pass failed. {again}", **run.named, kind=kind))


def _may_pass(error: Exception) -> bool:
    """Whether the machine was at fault and not the model: what it lacked may be there the next time."""
    return isinstance(error, MemoryError | OSError) or "memory" in str(error).lower()  # torch raises a RuntimeError


def _source(record: RunRecord) -> dict[str, Any]:
    """What an encoder, or a model without one, is given of a run."""
    segments = [token.segment for token in record.tokens] if record.options.pair else None
    return {"token_ids": [token.id for token in record.tokens], "segments": segments}


def _inputs(record: RunRecord) -> dict[str, Any]:
    """The same, and what a decoder beside an encoder is given."""
    return {**_source(record), "target_ids": [token.id for token in record.target] or None}


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
