"""What calls have in common: how a part of a run is written, what a client is told who wrote it wrong; no fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from app.bodies import TWICE
from app.problems import OWN_WORDS
from app.schemas.core import NoFields
from app.services.errors import InvalidRequest, OutOfRange
from models.pairs import Pair
from models.protocol import Span

MAX_CELLS = 65_536
DECIMAL = r"-?[0-9]{0,9}\.?[0-9]{1,9}"
NUMBER = "-?[0-9]{1,18}"  # a negative one is out of range, which says what the range is
SPAN = "[0-9]{1,9}:[0-9]{1,9}"
MAX_PAIRS = 32
_SIDE = "[0-9]{1,9}(-[0-9]{1,9})?"
PAIRS = f"{_SIDE}:{_SIDE}(,{_SIDE}:{_SIDE}){{0,{MAX_PAIRS - 1}}}"


def _written(pattern: str, words: str) -> BeforeValidator:
    """Takes text of this form alone: what else int() would take (+1, 1_0, other scripts' digits) is not meant."""

    def check(value: object) -> object:
        if isinstance(value, str) and re.fullmatch(pattern, value) is None:
            raise PydanticCustomError(OWN_WORDS, "{words}", {"words": words})
        return value

    return BeforeValidator(check)


def _from_to(low: float, high: float, pattern: str) -> BeforeValidator:
    """Takes a number of this range; whatever else is given, the whole range is told."""
    words = f"a number from {low} to {high}"

    def check(value: object) -> object:
        if isinstance(value, str) and (re.fullmatch(pattern, value) is None or not low <= float(value) <= high):
            raise PydanticCustomError(OWN_WORDS, "{words}", {"words": words})
        return value

    return BeforeValidator(check)


Site = Annotated[str | None, Query(max_length=40, description="may be left out where the model has only one")]
Index = Annotated[int, _written(NUMBER, "a number from 0"), Query(description="counted from 0")]
Flag = Annotated[bool, _written("true|false", "true or false")]
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
Pairs = Annotated[
    Annotated[str, Field(json_schema_extra={"pattern": f"^{PAIRS}$"})] | None,
    _written(PAIRS, f"1 to {MAX_PAIRS} pairs query:key, e.g. 29:12,30-31:5-6"),
    Query(
        description=f"up to {MAX_PAIRS} pairs query:key of tokens, each one index or an inclusive span a-b",
        examples=["29:12,30-31:5-6"],
    ),
]
Cells = Annotated[
    int,
    _from_to(1, MAX_CELLS, NUMBER),
    Query(ge=1, le=MAX_CELLS, description="bound on the cells of the answer"),
]
Threshold = Annotated[
    float, _from_to(0, 1, DECIMAL), Query(ge=0, le=1, description="corrected score from which a role is given")
]


def pairs_of(text: str) -> list[Pair]:
    """The pairs of a `Pairs` parameter, half-open. Whether a run has such tokens is for the capture to say."""
    return [Pair(*map(_side, pair.split(":"))) for pair in text.split(",")]


def _side(text: str) -> Span:
    """29 or 30-31 as a half-open span."""
    first, _, last = text.partition("-")
    return int(first), int(last or first) + 1


def chosen_site(sites: Iterable[str], name: str | None, parameter: str = "site") -> str:
    """The named site, or the only one. Raises InvalidRequest if there are several to choose from, OutOfRange."""
    known = list(sites)
    if name is None and len(known) == 1:
        return known[0]
    valid = f"one of {', '.join(known)}"
    if name is None:
        raise InvalidRequest({parameter: f"missing; this model has several: {valid}"})
    if name not in known:
        raise OutOfRange(parameter, name, valid)
    return name


def within(name: str, given: int | str, count: int, otherwise: str = "") -> None:
    """A number must be that of a layer or head; mean and max are of all of them. Raises OutOfRange."""
    if isinstance(given, int) and not 0 <= given < count:
        raise OutOfRange(name, given, f"0 to {count - 1}{otherwise}")


def chosen_span(name: str, text: str | None, length: int) -> Span | None:
    """start:stop as a pair; None means all. Raises OutOfRange."""
    if text is None:
        return None
    start, stop = map(int, text.split(":"))
    if not start < stop <= length:
        raise OutOfRange(name, text, f"start:stop with 0 <= start < stop <= {length}")
    return start, stop


def _without_fields(body: NoFields | None = None) -> None:
    """Refuse a body with fields: whoever sends one expects it to do something."""


NO_FIELDS = Depends(_without_fields)


def _names(call: Dependant) -> set[str]:
    """The parameters of the query that a call reads, itself or through what it depends on."""
    return {field.alias for field in call.query_params}.union(*map(_names, call.dependencies))


def _only_known(request: Request) -> None:
    """Refuse a parameter that the call does not have, or has twice: the answer would be another than was asked for."""
    known = _names(request.scope["route"].dependant)
    given = Counter(name for name, _ in request.query_params.multi_items())
    unknown = [{"type": "extra_forbidden", "loc": ("query", name)} for name in given if name not in known]
    again = {"type": OWN_WORDS, "msg": TWICE}
    problems = unknown + [{**again, "loc": ("query", name)} for name in given if name in known and given[name] > 1]
    if problems:
        raise RequestValidationError(problems)


ONLY_KNOWN = Depends(_only_known)
