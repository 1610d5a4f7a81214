"""Bodies of requests as JSON, read strictly: in UTF-8, each field once, no word that JSON lacks, no endless number.

What is well-formed but cannot be meant is refused by the name of its field. It knows of no call and of no field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from app.errors import Malformed, UnusableFields
from app.problems import OWN_WORDS

DIGITS = 18  # of a whole number, as in queries; none that this service can mean has more
TWICE = "given more than once; give it once"
TOO_LONG = f"a number of at most {DIGITS} digits"
HALF = "its name holds half of a surrogate pair; remove it"
NO_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)', re.DOTALL)  # strings first: what they say is text

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


@dataclass(frozen=True)
class _Unusable:
    """Stands where a value would, with what to say of it."""

    words: str


class StrictRoute(APIRoute):
    """A call whose body is read by `read_json`."""

    def get_route_handler(self) -> Handler:
        """Hand the call a request that reads its body so."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


class _StrictRequest(Request):
    async def json(self) -> Any:  # noqa: ANN401  whatever was sent
        """What the body says."""
        return read_json(await self.body())


def read_json(content: bytes) -> Any:  # noqa: ANN401  whatever was sent
    """What a body says. Raises JSONDecodeError, UnicodeDecodeError, Malformed, UnusableFields."""
    encoding = json.detect_encoding(content)
    if not encoding.startswith("utf-8"):
        raise Malformed(f"It seems to be in {encoding.upper()}.")
    text = content.decode(encoding)

    def refuse_word(word: str) -> None:
        place = next(found.start() for found in NO_JSON.finditer(text) if found[1])
        raise Malformed(f"{word} is no JSON: it cannot be read at character {place}.", position=place)

    try:
        value = json.loads(text, object_pairs_hook=_object, parse_int=_whole, parse_constant=refuse_word)
    except RecursionError:
        raise Malformed("It has too many brackets inside one another.") from None
    if problems := _problems(value):
        raise UnusableFields(problems)
    return value


def _whole(digits: str) -> int | _Unusable:
    return int(digits) if len(digits.removeprefix("-")) <= DIGITS else _Unusable(TOO_LONG)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        half = any("\ud800" <= character <= "\udfff" for character in name)
        found[name] = _Unusable(TWICE) if name in found else _Unusable(HALF) if half else value
    return found


def _problems(value: object) -> list[dict[str, Any]]:
    """Everything unusable in a value, by its place; without recursion, since clients decide how deep it is."""
    problems: list[dict[str, Any]] = []
    places: list[tuple[tuple[str | int, ...], Any]] = [(("body",), value)]
    while places:
        place, value = places.pop()
        if isinstance(value, _Unusable):
            problems.append({"type": OWN_WORDS, "loc": place, "msg": value.words})
        elif isinstance(value, dict):
            places += [((*place, name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            places += [((*place, index), inner) for index, inner in enumerate(value)]
    return problems
