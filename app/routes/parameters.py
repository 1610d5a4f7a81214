"""The query parameters that name a part of a run: how each is written, and what a client is told who wrote it wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from app.problems import OWN_WORDS
from app.services.errors import InvalidRequest, OutOfRange

MAX_CELLS = 65_536
NUMBER = "-?[0-9]{1,18}"  # a negative one is out of range, which says what the range is
SPAN = "[0-9]{1,9}:[0-9]{1,9}"


def _written(pattern: str, words: str) -> BeforeValidator:
    """Takes text of this form alone: what else int() would take (+1, 1_0, other scripts' digits) is not meant."""

    def check(value: object) -> object:
        if isinstance(value, str) and re.fullmatch(pattern, value) is None:
            raise PydanticCustomError(OWN_WORDS, "{words}", {"words": words})
        return value

    return BeforeValidator(check)


Site = Annotated[str | None, Query(max_length=40, description="may be left out where the model has only one")]
Index = Annotated[int, _written(NUMBER, "a number from 0"), Query(description="counted from 0")]
Which = Annotated[
    int | Literal["mean", "max"],
    _written(f"{NUMBER}|mean|max", "a number from 0, or mean or max"),
    Query(description="counted from 0; or the mean or maximum of all"),
]
Range = Annotated[
    Annotated[str, Field(json_schema_extra={"pattern": f"^{SPAN}$"})] | None,
    _written(SPAN, "start:stop, e.g. 0:64"),
    Query(description="half-open start:stop, both given; all if left out", examples=["0:64"]),
]
Cells = Annotated[
    int,
    _written(NUMBER, f"a number from 1 to {MAX_CELLS}"),
    Query(ge=1, le=MAX_CELLS, description="bound on the cells of the answer"),
]


def chosen_site(sites: Iterable[str], name: str | None) -> str:
    """The named site, or the only one. Raises InvalidRequest if there are several to choose from, OutOfRange."""
    known = list(sites)
    if name is None and len(known) == 1:
        return known[0]
    valid = f"one of {', '.join(known)}"
    if name is None:
        raise InvalidRequest({"site": f"missing; this model has several: {valid}"})
    if name not in known:
        raise OutOfRange("site", name, valid)
    return name
