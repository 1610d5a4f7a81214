"""What a body may hold: JSON in UTF-8, each field once, each value of the very type that the documents name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from app.bodies import StrictRoute
from tests.api.conftest import MODEL, PAIRS, SEQ2SEQ, TEXT, make_app, make_run, small_model

HEADERS = {"Content-Type": "application/json"}
WITH_FIELDS = ("/api/runs", "/api/tokenize", "/api/attention")
WITHOUT = (f"/api/runs/{'0' * 32}/check", f"/api/models/{MODEL}/reference", "/api/models/gpt2/download")


def refused(client: TestClient, path: str, content: str | bytes, status: int = 422) -> dict[str, Any]:
    """The error of a body that is sent as it is."""
    answer = client.post(path, content=content, headers=HEADERS)
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["code"] == {422: "invalid_request", 400: "malformed_json"}[status]
    return error


def with_field(name: str, value: str) -> str:
    """A body that is well but for one field, written as given."""
    body = {"model": f'"{MODEL}"', "text": f'"{TEXT}"', name: value}
    return "{" + ", ".join(f'"{key}": {text}' for key, text in body.items()) + "}"


@pytest.mark.parametrize("name", ["layers", "heads"])
@pytest.mark.parametrize("value", ["true", "false", "1.0", "0.0", '"1"', "null", "[1]", "{}"])
def test_an_index_is_a_whole_number_and_nothing_else(client: TestClient, name: str, value: str) -> None:
    fields = refused(client, "/api/attention", with_field(name, f"[0, {value}]"))["details"]["fields"]
    assert fields == {f"{name}.1": "a whole number"}


@pytest.mark.parametrize("value", ["true", "3.0", '"3"', "[3]"])
def test_decimals_are_a_whole_number_and_nothing_else(client: TestClient, value: str) -> None:
    fields = refused(client, "/api/attention", with_field("decimals", value))["details"]["fields"]
    assert fields == {"decimals": "a whole number"}


@pytest.mark.parametrize("path", ["/api/runs", "/api/tokenize"])
@pytest.mark.parametrize("value", ["1", "0", "1.0", '"true"', '"no"', "null", "[]"])
def test_a_choice_is_true_or_false_and_nothing_else(client: TestClient, path: str, value: str) -> None:
    fields = refused(client, path, with_field("add_special_tokens", value))["details"]["fields"]
    assert fields == {"add_special_tokens": "true or false"}


@pytest.mark.parametrize("path", WITH_FIELDS)
@pytest.mark.parametrize("name", ["model", "text", "text_pair"])
@pytest.mark.parametrize("value", ["1", "1.5", "true", "[]", '["a"]', "{}"])
def test_a_text_is_a_text_and_nothing_else(client: TestClient, path: str, name: str, value: str) -> None:
    assert refused(client, path, with_field(name, value))["details"]["fields"] == {name: "text"}


@pytest.mark.parametrize("value", ["1", "true", "null", '["error"]', '"ERROR"'])
def test_a_word_is_one_of_those_named(client: TestClient, value: str) -> None:
    fields = refused(client, "/api/runs", with_field("truncate", value))["details"]["fields"]
    assert fields == {"truncate": "error, cut_head or cut_tail"}


@pytest.mark.parametrize("query", ["1", "0", "yes", "on", "t", "TRUE", "True", ""])
@pytest.mark.parametrize(("call", "name"), [("heads", "figures"), ("layers", "alike")])
def test_a_choice_of_a_query_is_true_or_false(client: TestClient, call: str, name: str, query: str) -> None:
    run = make_run(client)["id"]
    answer = client.get(f"/api/runs/{run}/{call}?{name}={query}")
    assert answer.status_code == 422
    assert answer.json()["error"]["details"]["fields"] == {name: "true or false"}
    assert client.get(f"/api/runs/{run}/{call}?{name}=true").status_code == 200


@pytest.mark.parametrize("path", WITH_FIELDS)
@pytest.mark.parametrize("name", ["model", "text", "text_pair"])
def test_a_field_given_twice(client: TestClient, path: str, name: str) -> None:
    body = f'{{"model": "{MODEL}", "text": "{TEXT}", "text_pair": "a", "{name}": "b"}}'
    assert refused(client, path, body)["details"]["fields"] == {name: "given more than once; give it once"}


def test_a_field_given_twice_is_found_at_any_depth_and_spelling(client: TestClient) -> None:
    same = '{"model": "x", "text": [{"a": 1, "\\u0061": 1}], "t\\u0065xt": "b"}'
    fields = refused(client, "/api/runs", same)["details"]["fields"]
    assert fields == {"text": "given more than once; give it once"}
    nested = '{"model": "x", "text": [{"a": 1, "\\u0061": 1}]}'
    fields = refused(client, "/api/runs", nested)["details"]["fields"]
    assert fields == {"text.0.a": "given more than once; give it once"}


@pytest.mark.parametrize("path", WITHOUT)
def test_a_call_without_fields_reads_its_body_as_strictly(client: TestClient, path: str) -> None:
    assert refused(client, path, '{"a": 1, "a": 1}')["details"]["fields"] == {"a": "given more than once; give it once"}
    assert "position" in refused(client, path, '{"a": NaN}', 400)["details"]


@pytest.mark.parametrize("path", [*WITH_FIELDS, *WITHOUT])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_another_encoding_is_named(client: TestClient, path: str, encoding: str) -> None:
    body = with_field("truncate", '"error"').encode(encoding)
    error = refused(client, path, body, 400)
    assert "UTF-8" in error["message"]
    assert encoding.upper()[:6] in error["message"], "it says what it seems to be instead"


def test_a_mark_at_the_beginning_of_utf_8_is_no_other_encoding(client: TestClient) -> None:
    body = with_field("truncate", '"error"').encode("utf-8-sig")
    assert client.post("/api/runs", content=body, headers=HEADERS).status_code == 201


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize(("path", "name"), [("/api/runs", "text"), ("/api/attention", "decimals"), ("/api/runs", "x")])
def test_what_is_no_number_in_json(client: TestClient, word: str, path: str, name: str) -> None:
    body = f'{{"a": "NaN \\" Infinity", "model": "{MODEL}", "{name}": {word}}}'
    error = refused(client, path, body, 400)
    assert error["details"] == {"position": body.rindex(word)}
    assert word in error["message"]


@pytest.mark.parametrize("digits", [19, 400, 5000, 100_000])
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(("name", "written"), [("decimals", "{}"), ("layers", "[0, {}]"), ("text", "{}"), ("x", "{}")])
def test_a_number_of_too_many_digits(client: TestClient, digits: int, sign: str, name: str, written: str) -> None:
    number = sign + "9" * digits
    fields = refused(client, "/api/attention", with_field(name, written.format(number)))["details"]["fields"]
    place = "layers.1" if name == "layers" else name
    assert fields == {place: "a number of at most 18 digits"}


@pytest.mark.parametrize("key", ["\\ud800", "a\\udfffb", "\\ud83d"])
@pytest.mark.parametrize("path", [*WITH_FIELDS, *WITHOUT])
def test_half_a_character_in_a_name(client: TestClient, key: str, path: str) -> None:
    for body in (with_field(key, "1"), with_field("text", f'{{"{key}": 1}}')):
        fields = refused(client, path, body)["details"]["fields"]
        assert list(fields.values()) == ["its name holds half of a surrogate pair; remove it"]


@pytest.mark.parametrize("path", [*WITH_FIELDS, *WITHOUT])
@pytest.mark.parametrize("opening", ["[", '{"a":', '{"text": ['])
def test_more_brackets_than_anybody_means(client: TestClient, path: str, opening: str) -> None:
    error = refused(client, path, opening * 100_000, 400)
    assert "brackets" in error["message"]


def test_whole_characters_still_pass(client: TestClient) -> None:
    """Both halves of one, spelt, are a character; so are a name and a value of NUL."""
    for model, field in ((PAIRS, "text_pair"), (SEQ2SEQ, "target_text")):
        body = f'{{"model": "{model}", "text": "NaN \\ud83d\\ude00 \\u0000", "{field}": "Infinity"}}'
        assert client.post("/api/runs", content=body, headers=HEADERS).status_code == 201


def test_every_call_with_a_body_reads_it_so(tmp_path: Path) -> None:
    app = make_app(tmp_path, small_model())
    routes = _routes(app.router.routes)
    with_body = {route.path: type(route) for route in routes if route.body_field is not None}
    assert {path for path in with_body if path.startswith("/api")} >= {"/api/runs", "/api/tokenize", "/api/attention"}
    assert {path for path, kind in with_body.items() if not issubclass(kind, StrictRoute)} == set()


def _routes(found: list[Any]) -> list[APIRoute]:
    """The calls among the routes, also those of included routers."""
    flat: list[APIRoute] = []
    for route in found:
        if isinstance(route, APIRoute):
            flat.append(route)
        elif hasattr(route, "original_router"):
            flat += _routes(route.original_router.routes)
    return flat
