"""Errors of the service: a stable code, a message that says what to do, and details for programs.

Nothing here knows of status codes (`app/errors.py` does) and no message or detail ever holds the user's text,
but for a single character that a tokenizer has no token for: its sender could not find it otherwise.
"""

from __future__ import annotations

from typing import Any


class DomainError(Exception):
    """Base of every refusal. `code` is part of the API; `message` is plain English; `details` is JSON-ready."""

    code = "internal"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = details


class NotFound(DomainError):
    """Nothing lives at this address."""

    code = "not_found"


class UnknownModel(DomainError):
    """No model of that id is in the catalogue."""

    code = "unknown_model"

    def __init__(self, model_id: str) -> None:
        super().__init__("No model has this id. GET /api/models lists those that can be used.", model=model_id[:200])


class ModelUnavailable(DomainError):
    """The model is in the catalogue but cannot be used here; `reason` says why."""

    code = "model_unavailable"

    def __init__(self, model_id: str, reason: str) -> None:
        super().__init__(f"The model {model_id} cannot be used: {reason}", model=model_id, reason=reason)


class ModelNeedsDownload(DomainError):
    """The model's weights are not on this machine yet."""

    code = "model_needs_download"

    def __init__(self, model_id: str) -> None:
        super().__init__(
            f"The weights of {model_id} are not on this machine. POST /api/models/{model_id}/download fetches them.",
            model=model_id,
        )


class TextEmpty(DomainError):
    """The text has no character, or nothing but white space."""

    code = "text_empty"

    def __init__(self, field: str = "text") -> None:
        what = "The text" if field == "text" else f"The field {field}"
        otherwise = "" if field == "text" else ", or leave it out"
        super().__init__(
            f"{what} is empty. Send at least one character that is not white space{otherwise}.", field=field
        )


class TextDropped(DomainError):
    """The model's tokenizer drops all of the text: it has no token of its own."""

    code = "text_dropped"

    def __init__(self, field: str = "text") -> None:
        what = "the text" if field == "text" else f"the field {field}"
        super().__init__(
            f"This model's tokenizer drops all of {what}: not one of its characters becomes a token. "
            "Send other characters, or choose another model.",
            field=field,
        )


class CharacterRefused(DomainError):
    """The model's tokenizer has no token for a character, nor one for unknown ones."""

    code = "character_unknown"

    def __init__(self, position: int, character: str, message: str) -> None:
        """It names the character, to its own sender: without it nobody would find it."""
        super().__init__(f"{message[0].upper()}{message[1:]}.", position=position, code_point=f"U+{ord(character):04X}")


class TextTooLong(DomainError):
    """The text has more tokens than the model can read."""

    code = "text_too_long"

    def __init__(self, count: int, limit: int, field: str = "text") -> None:
        """`field` is the one to shorten; only a text that stands alone can be cut."""
        cuts = field == "text"
        what = {"text_pair": "The two texts together have", "target_text": "The target text has"}.get(field)
        shorten = {"text_pair": "Shorten one of them", "target_text": "Shorten target_text"}.get(field, "Shorten it")
        choice = ", or send truncate: cut_head (drop the beginning) or cut_tail (drop the end)" if cuts else ""
        super().__init__(
            f"{what or 'The text has'} {count} tokens and the model reads at most {limit}. {shorten}{choice}.",
            field=field,
            count=count,
            limit=limit,
            choices=["cut_head", "cut_tail"] if cuts else [],
        )


class OutOfRange(DomainError):
    """A site, layer, head, row or column that the run does not have."""

    code = "out_of_range"

    def __init__(self, name: str, given: object, valid: str) -> None:
        super().__init__(f"{name} is out of range: {valid}.", name=name, given=str(given)[:100], valid=valid)


class InvalidRequest(DomainError):
    """A parameter that cannot be read. `fields` maps its name to what it should be."""

    code = "invalid_request"

    def __init__(self, fields: dict[str, str]) -> None:
        named = "; ".join(f"{name}: {problem}" for name, problem in fields.items())
        super().__init__(f"The request cannot be used as it is. {named}", fields=fields)


class RunGone(DomainError):
    """The run never existed, was deleted, or was dropped to make room."""

    code = "run_gone"

    def __init__(self) -> None:
        super().__init__("This run is no longer stored. POST the same text to /api/runs to compute it again.")


class RunDamaged(DomainError):
    """What is stored of the run is not what was written: a disk or a hand changed it. It can only be computed again."""

    code = "run_damaged"

    def __init__(self) -> None:
        super().__init__(
            "What is stored of this run is damaged and can no longer be read. POST the same text to /api/runs to "
            "compute it again."
        )


class NotWritable(DomainError):
    """The data folder takes no change now: what is stored can be read, and not deleted."""

    code = "not_writable"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The server cannot change its data folder ({why}), so nothing was deleted. GET /readyz says more."
        )


class ShuttingDown(DomainError):
    """The server is being stopped and finishes nothing more that is not nearly done."""

    code = "shutting_down"
    retry_after_s = 10  # a restart takes about so long

    def __init__(self) -> None:
        super().__init__("The server is being stopped. Send the request again once it is back.")


class RunNotFinished(DomainError):
    """The run has no weights yet."""

    code = "run_not_finished"

    def __init__(self, status: str) -> None:
        super().__init__("This run is not finished. Follow its events, then ask again.", status=status)


class RunFailed(DomainError):
    """The run failed and has no weights."""

    code = "run_failed"

    def __init__(self, message: str = "The run failed. POST it again to retry.", **details: Any) -> None:
        super().__init__(message, **details)


class RunCancelled(DomainError):
    """The run was stopped before it was done and has no weights."""

    code = "run_cancelled"

    def __init__(self, message: str = "This run was cancelled. POST it again to compute it.") -> None:
        super().__init__(message)


class QueueFull(DomainError):
    """As many runs wait as the queue may hold."""

    code = "queue_full"

    def __init__(self, limit: int, retry_after_s: int) -> None:
        super().__init__(
            f"{limit} {'run is' if limit == 1 else 'runs are'} waiting already. "
            f"Try again in {retry_after_s} second{'' if retry_after_s == 1 else 's'}.",
            limit=limit,
            retry_after=retry_after_s,
        )
        self.retry_after_s = retry_after_s


class RunTooLarge(DomainError):
    """The run's capture is larger than all of the space for runs."""

    code = "run_too_large"

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(
            f"This run needs {needed} bytes and the store holds {limit}. Use a shorter text, or raise "
            "EVERYHEAD_STORE_BYTES.",
            needed=needed,
            limit=limit,
        )


class TooManyWeights(DomainError):
    """The answer of the one-call form would hold too many weights."""

    code = "too_many_weights"

    def __init__(self, weights: int, limit: int) -> None:
        super().__init__(
            f"This answer would hold {weights} weights; the limit is {limit}. Name fewer layers and heads, or make "
            "a run (POST /api/runs) and read its overview and windows.",
            weights=weights,
            limit=limit,
            use=["POST /api/runs", "GET /api/runs/{id}/overview", "GET /api/runs/{id}/weights"],
        )


class NoCounterpart(DomainError):
    """There is one implementation of this model, so there is nothing to compare it with."""

    code = "no_counterpart"

    def __init__(self, model_id: str) -> None:
        super().__init__(
            "Stages are compared between our own Transformer and the transformers library, and only one of them runs "
            "this model. GET /api/models lists each model's implementations.",
            model=model_id,
        )


class WeightsChanged(DomainError):
    """The model's weights are no longer those of the run, or those that a reference panel was asked for."""

    code = "weights_changed"

    RUN = "The model's weights have changed since this run. POST the same text to /api/runs to compute it again."

    def __init__(self, model_id: str, message: str = RUN) -> None:
        super().__init__(message, model=model_id)


class StagesTooLong(DomainError):
    """The run has more tokens than can be compared stage by stage."""

    code = "stages_too_long"

    def __init__(self, count: int, limit: int) -> None:
        super().__init__(
            f"The run has {count} tokens and stages are compared up to {limit}: the scores and weights of every head "
            "are held side by side, and they grow with the square of the tokens. Make a run of a shorter text.",
            count=count,
            limit=limit,
        )


class LensRefused(DomainError):
    """This part of the run cannot be seen through the lens that was asked for."""

    code = "lens_refused"

    def __init__(self, lens: str, reason: str, why: str, numbers: dict[str, int]) -> None:
        message = f"This window cannot be shown: {reason}."  # a unit over many heads is refused without a lens too
        super().__init__(message, lens=lens, reason=reason, field=why, **numbers)


class ComparisonTooLarge(DomainError):
    """Comparing these heads over this range would read too many weights."""

    code = "comparison_too_large"

    def __init__(self, weights: int, limit: int) -> None:
        super().__init__(
            f"This comparison would read {weights} weights; the limit is {limit}. Compare single heads instead of the "
            "mean or maximum of many, or name a smaller range of rows and cols.",
            weights=weights,
            limit=limit,
        )


class NotComputed(DomainError):
    """The reference panel of this model was not computed yet."""

    code = "not_computed"

    def __init__(self, status: str | None, failure: str | None = None) -> None:
        """`status` of the work that goes on, if any; `failure`: the code of why the last came to nothing."""
        if status is not None:
            message = "The reference texts are being run on this model. Follow its events, then ask again."
        elif failure is not None:
            message = f"Running the reference texts on this model ended with {failure}. POST here tries again."
        else:
            message = "The reference texts have not been run on this model yet. POST here computes them once."
        super().__init__(message, status=status, failure=failure)
