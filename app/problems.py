"""What is wrong with the fields of a request, in words that say what to send. Never a word of what was in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

OBJECT = "send a JSON object"
OWN_WORDS = "not_readable"  # the type of problems whose message is ours already

# What pydantic finds, by its type, and what to send instead.
WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda _: "missing; it is required",
    "extra_forbidden": lambda _: "not known here; leave it out",
    "literal_error": lambda about: str(about["expected"]).replace("'", ""),
    "string_type": lambda _: "text",
    "string_too_long": lambda about: f"text of at most {about['max_length']} characters",
    "bool_type": lambda _: "true or false",
    "bool_parsing": lambda _: "true or false",
    "int_type": lambda _: "a whole number",
    "int_parsing": lambda _: "a whole number",
    "int_parsing_size": lambda _: "a whole number, and a smaller one",
    "int_from_float": lambda _: "a whole number",
    "greater_than_equal": lambda about: f"a number from {about['ge']}",
    "less_than_equal": lambda about: f"a number up to {about['le']}",
    "list_type": lambda _: "a list",
    "too_short": lambda about: f"a list of at least {about['min_length']}",
    "too_long": lambda about: f"a list of at most {about['max_length']}",
}


def fields(problems: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Each field that cannot be used, by the name that the client gave or should give, with what to send."""
    return {_name(problem["loc"]): _words(problem) for problem in problems}


def _name(place: Sequence[str | int]) -> str:
    """`layers.0` of a body, `rows` of a query; `body` for a body as a whole."""
    return _sendable(".".join(map(str, place[1:])) or str(place[0]))


def _words(problem: Mapping[str, Any]) -> str:
    if tuple(problem["loc"]) == ("body",):
        return OBJECT
    words = WORDS.get(problem["type"])
    if words is not None:
        return words(problem.get("ctx", {}))
    return _sendable(problem["msg"].removeprefix("Value error, "))


def _sendable(words: str) -> str:
    """Short, and without half characters, whatever a client called a field."""
    return words[:200].encode("utf-8", "replace").decode()
