"""What is known of a run at one moment, as one immutable value. The weights themselves are in its capture.

A record turns into JSON and back, so the same form is answered, stored and read again after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from models.card import Card
from models.protocol import MaskKind, SiteDescription, Span
from models.tokens import Token

Status = Literal["queued", "running", "done", "failed", "cancelled"]
Stage = Literal["queued", "preparing", "tokenizing", "writing", "forward", "checking", "done"]
Truncate = Literal["error", "cut_head", "cut_tail"]
Target = Literal["given", "written"]
Kept = Literal["pending", "kept", "not_kept"]
UNFINISHED: tuple[Status, ...] = ("queued", "running")


def now() -> str:
    """The time as records have it; later times are greater texts."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Texts:
    """What somebody wants to see, in words: a text, perhaps a second one beside it, perhaps what a decoder reads."""

    source: str
    pair: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Options:
    """What else decides a run's result.

    target  where the text that a decoder reads came from: given, or written by the model; None where there is none
    pair    whether a second text was given beside the first
    """

    truncate: Truncate = "error"
    add_special_tokens: bool = True
    target: Target | None = None
    pair: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a run is: done of total within the stage; a place in the line while queued (1 is next)."""

    stage: Stage = "queued"
    done: int = 0
    total: int = 0
    queue_position: int | None = None


@dataclass(frozen=True)
class TextFacts:
    """Which part of the text the run is about, in characters and tokens; never the text itself."""

    characters: int
    kept: Span
    cut: Literal["cut_head", "cut_tail"] | None = None
    tokens_before_cut: int | None = None


@dataclass(frozen=True)
class Timings:
    """Milliseconds by stage; None where the stage has not been."""

    tokenize_ms: float | None = None
    wait_ms: float | None = None
    prepare_ms: float | None = None
    forward_ms: float | None = None
    check_ms: float | None = None
    total_ms: float | None = None


@dataclass(frozen=True)
class Failure:
    """Why a run has no weights."""

    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """A run without its weights. `model` holds id, name, family, …, dtype, implementation, revision.

    kept: whether the disk has it, once it is done: `pending` (soon), `kept`, or `not_kept` (the disk did not take it:
    it can be read until the memory is needed, and is written if the disk takes it later)
    """

    id: str
    status: Status
    created: str
    model: dict[str, Any]
    options: Options
    text: TextFacts
    progress: Progress = Progress()
    tokens: tuple[Token, ...] = ()
    target: tuple[Token, ...] = ()
    sites: tuple[SiteDescription, ...] = ()
    card: Card | None = None
    timings: Timings = Timings()
    bytes: int = 0
    stored: bool = False
    kept: Kept | None = None
    error: Failure | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status not in UNFINISHED

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, in the form of the API without links."""
        data = {name: getattr(self, name) for name in ("id", "status", "created", "model", "bytes", "stored", "kept")}
        for name in ("options", "text", "progress", "timings"):
            data[name] = asdict(getattr(self, name))
        # vars, not asdict: tokens are flat, and there may be thousands.
        sides = {"source": self.tokens, "target": self.target}
        data["tokens"] = {side: [dict(vars(token)) for token in tokens] for side, tokens in sides.items()}
        data["sites"] = [asdict(site) for site in self.sites]
        data["card"] = None if self.card is None else self.card.as_dict()
        data["error"] = None if self.error is None else asdict(self.error)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunRecord:
        """The record that `as_dict` gave. Raises KeyError, TypeError or ValueError for anything else."""
        text = data["text"]
        return cls(
            **{name: data[name] for name in ("id", "status", "created", "model", "bytes", "stored", "kept")},
            options=Options(**data["options"]),
            text=TextFacts(**{**text, "kept": (text["kept"][0], text["kept"][1])}),
            progress=Progress(**data["progress"]),
            tokens=tuple(Token(**token) for token in data["tokens"]["source"]),
            target=tuple(Token(**token) for token in data["tokens"]["target"]),
            sites=_sites(data["sites"]),
            card=None if data["card"] is None else Card.from_dict(data["card"]),
            timings=Timings(**data["timings"]),
            error=None if data["error"] is None else Failure(**data["error"]),
        )


def _sites(data: Sequence[Mapping[str, Any]]) -> tuple[SiteDescription, ...]:
    """Sites from their JSON form."""
    return tuple(
        SiteDescription(**{**site, "masks": tuple(MaskKind(**mask) for mask in site["masks"])}) for site in data
    )
