"""Two heads compared: the axes that their runs share, the difference on them, and the largest changes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field


class SharedSegment(BaseModel):
    """Neighbouring tokens of both runs that belong together; ranges [start, stop) of token indices."""

    text: str
    special: bool
    a: tuple[int, int]
    b: tuple[int, int]


class Change(BaseModel):
    """One segment's row and column on the shared axes, the weight on either side, and a − b."""

    row: int
    col: int
    a: float
    b: float
    difference: float


class Comparison(BaseModel):
    """a − b: keys of a segment summed, queries averaged; a cell is a mean of single differences, null where masked.

    reason: why nothing is aligned (`sites`: cross-attention beside self-attention; `nothing_in_common`: no equal token)
    """

    aligned: bool
    reason: Literal["sites", "nothing_in_common"] | None
    by: Annotated[
        Literal["characters", "tokens"] | None,
        Field(description="aligned by the characters of one text, or by equal tokens of two"),
    ]
    axis_rows: list[SharedSegment]
    axis_cols: list[SharedSegment]
    rows: tuple[int, int]
    cols: tuple[int, int]
    row_step: int
    col_step: int
    difference: list[list[float | None]] | None
    largest: list[Change]
