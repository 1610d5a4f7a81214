"""Errors that the engine raises. It knows nothing of status codes: `app/errors.py` maps these.

EngineError
├── ShapeError        a tensor does not have the shape that was asked for
├── ConfigError       options that cannot be satisfied (d_model not divisible by n_heads, …)
├── RangeError        site, layer, head, rows or columns that the capture does not have
├── LensUnavailable   a lens that this capture or this place of it cannot be seen through; the message says why
├── UnsupportedModel  a model whose attention cannot be seen; the message says why
├── CaptureError      the pass ran but its picture may not be trusted, so there is none
└── Cancelled         the caller asked to stop
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.card import Card


class EngineError(Exception):
    """Base of every error that the engine raises on purpose."""


class ShapeError(EngineError, ValueError):
    """A tensor's shape is not what the function needs; the message gives expected and received."""


class ConfigError(EngineError, ValueError):
    """Options contradict each other or the model; the message gives expected and received."""


class RangeError(EngineError, ValueError):
    """A coordinate is outside the capture. `name` is the coordinate, `valid` says what it may be."""

    def __init__(self, name: str, given: object, valid: str) -> None:
        super().__init__(f"{name}={given} is out of range: {valid}")
        self.name = name
        self.given = given
        self.valid = valid


class LensUnavailable(EngineError):
    """This part of the run cannot be seen through the lens that was asked for; the message says why.

    `why` names the reason in one word, `numbers` are those that the message speaks of.
    """

    def __init__(self, message: str, why: str, **numbers: int) -> None:
        super().__init__(message)
        self.why, self.numbers = why, numbers


class UnsupportedModel(EngineError):
    """This model's attention does not pass through a place where it can be read; the message says why."""


class CaptureError(EngineError):
    """The attention path was not the one that was expected. Carries the card that says what was seen."""

    def __init__(self, message: str, card: Card | None = None) -> None:
        super().__init__(message)
        self.card = card


class Cancelled(EngineError):
    """`should_stop` returned True; raised between two attention modules."""
