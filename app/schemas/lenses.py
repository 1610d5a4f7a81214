"""Windows through a lens, and the units that their rows and columns may count."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Lens = Literal["raw", "sink_free", "value", "output", "rollout"]
Unit = Literal["token", "character", "word", "sentence"]
Side = Literal["source", "target"]


class LensAnswer(BaseModel):
    """What a window says of its lens."""

    lens: Lens
    unit: Unit = Field(description="what rows, cols and steps count")
    formula: str = Field(
        description="what a cell is: A weights, v values, W_O the head's part of the output projection, I and J the "
        "tokens of a query and a key unit, l and h the layers and heads that a mean or maximum is over"
    )
    unit_max: float = Field(
        description="what no cell exceeds: 1 for raw, sink_free and rollout, for value and output the largest length "
        "of the head"
    )
    removed: list[float | None] | None = Field(
        description="for sink_free the weight on the first token, a mean over the rows of each row cell; else null"
    )


class TextUnit(BaseModel):
    """One unit: the tokens first ≤ i < stop, the characters start ≤ c < end; a special token is one of its own."""

    index: int
    text: str
    first: int
    stop: int
    start: int
    end: int
    special: bool
    segment: Annotated[int, Field(description="1 for the second text of a pair, in which start and end then count")]


class Units(BaseModel):
    """The units of one side of a run, in order; every token belongs to exactly one."""

    unit: Unit
    side: Side
    units: list[TextUnit]
