"""What bad input gets: one form, the true status, a message that says what to do, nothing of the user's text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import MODEL, TEXT, Start, make_app, small_model

SECRET = "zebra-secret-4711"
UNKNOWN = "0" * 32
CASES: list[tuple[str, str, Any, int, str]] = [
    ("POST", "/api/runs", {"model": MODEL, "text": ""}, 422, "text_empty"),
    ("POST", "/api/runs", {"model": MODEL, "text": " \n\t\u3000"}, 422, "text_empty"),
    ("POST", "/api/tokenize", {"model": MODEL, "text": " "}, 422, "text_empty"),
    ("POST", "/api/attention", {"model": MODEL, "text": ""}, 422, "text_empty"),
    ("POST", "/api/runs", {"model": "none", "text": SECRET}, 404, "unknown_model"),
    ("POST", "/api/tokenize", {"model": "none", "text": SECRET}, 404, "unknown_model"),
    ("POST", "/api/runs", {"model": "gpt2", "text": SECRET}, 409, "model_needs_download"),
    ("POST", "/api/runs", {"model": "broken", "text": SECRET}, 409, "model_unavailable"),
    ("POST", "/api/runs", {"model": MODEL, "text": SECRET, "generate": 3}, 422, "invalid_request"),
    ("POST", "/api/runs", {"model": MODEL, "text": SECRET, "truncate": SECRET}, 422, "invalid_request"),
    ("POST", "/api/runs", {"model": MODEL, "text": SECRET, "implementation": "own"}, 422, "invalid_request"),
    ("POST", "/api/runs", {"model": MODEL, "text": [SECRET]}, 422, "invalid_request"),
    ("POST", "/api/runs", {"model": MODEL}, 422, "invalid_request"),
    ("POST", "/api/runs", [SECRET], 422, "invalid_request"),
    ("POST", "/api/attention", {"model": MODEL, "text": SECRET, "layers": [9]}, 422, "out_of_range"),
    ("POST", "/api/attention", {"model": MODEL, "text": SECRET, "decimals": 99}, 422, "invalid_request"),
    ("GET", f"/api/runs/{UNKNOWN}", None, 404, "run_gone"),
    ("GET", "/api/runs/..%2f..%2fetc", None, 404, "not_found"),
    ("GET", "/api/runs/run-id.key", None, 404, "run_gone"),
    ("GET", f"/api/runs/{UNKNOWN}/events", None, 404, "run_gone"),
    ("GET", f"/api/runs/{UNKNOWN}/heads", None, 404, "run_gone"),
    ("GET", f"/api/runs/{UNKNOWN}/rows?layer=0&head=0", None, 404, "run_gone"),
    ("GET", f"/api/runs/{UNKNOWN}/overview", None, 404, "run_gone"),
    ("GET", f"/api/runs/{UNKNOWN}/weights?layer=0&head=0", None, 404, "run_gone"),
    ("DELETE", f"/api/runs/{UNKNOWN}", None, 404, "run_gone"),
    ("POST", f"/api/runs/{UNKNOWN}/check", {}, 404, "run_gone"),
    ("GET", "/api/nothing", None, 404, "not_found"),
    ("PUT", "/api/runs", {}, 405, "method_not_allowed"),
    ("GET", "/api/tokenize", None, 405, "method_not_allowed"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), CASES)
def test_each_refusal_has_the_one_form(
    client: TestClient, method: str, path: str, body: object, status: int, code: str
) -> None:
    answer = client.request(method, path, json=body) if body is not None else client.request(method, path)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == code
    assert len(error["message"]) > 20
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"{", "character 1"),
        (b"nonsense", "character 0"),
        (b'{"a": 1', "character 7"),
        (b'{"model": "x", "text": "\xff\xfe"}', "byte 24"),
    ],
)
def test_malformed_json_says_where(client: TestClient, content: bytes, place: str) -> None:
    answer = client.post("/api/runs", content=content, headers={"Content-Type": "application/json"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "malformed_json")
    assert error["message"] == f"The body must be JSON in UTF-8. It cannot be read at {place}."
    assert error["details"] == {"position": int(place.split()[1])}


@pytest.mark.parametrize("content", [b"", b"[1]", b"3", b'"text"', b"null"])
def test_a_body_that_is_no_object(client: TestClient, content: bytes) -> None:
    answer = client.post("/api/runs", content=content, headers={"Content-Type": "application/json"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "invalid_request")
    assert error["details"]["fields"] == {"body": "send a JSON object"}


def test_fields_of_a_body_say_what_to_send(client: TestClient) -> None:
    body = {"text": [SECRET], "truncate": SECRET, "add_special_tokens": SECRET, "generate": 3}
    fields = client.post("/api/runs", json=body).json()["error"]["details"]["fields"]
    assert fields == {
        "model": "missing; it is required",
        "text": "text",
        "truncate": "error, cut_head or cut_tail",
        "add_special_tokens": "true or false",
        "generate": "not known here; leave it out",
    }
    body = {"model": MODEL, "text": TEXT, "layers": [], "heads": [0, "x", 0.5], "decimals": 99}
    fields = client.post("/api/attention", json=body).json()["error"]["details"]["fields"]
    assert fields == {
        "layers": "a list of at least 1",
        "heads.1": "a whole number",
        "heads.2": "a whole number",
        "decimals": "a number up to 17",
    }


PATHS = make_app(Path("never-made"), small_model()).openapi()["paths"]
CALLS = [(method, path) for path, methods in PATHS.items() for method in methods if path.startswith("/api")]


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_every_call_refuses_parameters_that_it_does_not_have(client: TestClient, method: str, path: str) -> None:
    known = [one["name"] for one in PATHS[path][method].get("parameters", []) if one["in"] == "query"]
    query = "&".join(["max_cell=9", f"{SECRET}=1", *[f"{name}=1&{name}=2" for name in known]])
    address = f"{path.format(run_id=UNKNOWN, model_id='none')}?{query}"
    answer = client.request(method, address, json={} if method == "post" else None)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"]["fields"] == {
        "max_cell": "not known here; leave it out",
        SECRET: "not known here; leave it out",
        **dict.fromkeys(known, "given more than once; give it once"),
    }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/api/runs", 405),
        ("POST", "/api/models", 405),
        ("POST", "/api/nothing", 404),
        ("POST", "/static/x", 405),
    ],
)
def test_the_wrong_address_or_method_comes_before_the_wrong_body(
    client: TestClient, method: str, path: str, status: int
) -> None:
    assert client.request(method, path, content=b"a=b", headers={"Content-Type": "text/plain"}).status_code == status


@pytest.mark.parametrize("call", ["reference", "check", "stages", "download"])
def test_a_call_without_fields_refuses_one(client: TestClient, call: str) -> None:
    run = client.post("/api/runs", json={"model": MODEL, "text": TEXT}).json()["id"]
    path = f"/api/runs/{run}/{call}" if call in ("check", "stages") else f"/api/models/{MODEL}/{call}"
    answer = client.post(path, json={"foo": 1})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["code"], list(error["details"]["fields"])) == ("invalid_request", ["foo"])
    headers = {"Content-Type": "application/json"}
    allowed = [client.post(path, content=content, headers=headers) for content in (b"{}", b"")]
    assert {answer.status_code for answer in allowed} <= {200, 202, 409}, "nothing, or {}, is what it takes"


def test_half_a_surrogate_is_refused_not_a_crash(client: TestClient) -> None:
    content = b'{"model": "fake-30x9", "text": "a \\ud800 b"}'
    answer = client.post("/api/runs", content=content, headers={"Content-Type": "application/json"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "invalid_request")
    assert error["details"]["fields"] == {"text": "character 2 is half of a surrogate pair; remove it"}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@pytest.mark.parametrize("path", ["/api/runs", "/api/models/gpt2/download", f"/api/runs/{UNKNOWN}/check"])
def test_only_json_is_taken(client: TestClient, kind: str, path: str) -> None:
    answer = client.post(path, content=b'{"model": "x", "text": "y"}', headers={"Content-Type": kind} if kind else {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit(start: Start, chunked: bool) -> None:
    client = start(max_body_bytes=2048)
    body = b'{"model": "fake-30x9", "text": "' + b"a " * 2000 + b'"}'
    content = iter([body[:1500], body[1500:]]) if chunked else body
    answer = client.post("/api/runs", content=content, headers={"Content-Type": "application/json"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["details"]) == (413, "body_too_large", {"limit": 2048})
    assert "2048 bytes" in error["message"]
    assert answer.headers["content-security-policy"]


@pytest.mark.parametrize("loaded", [False, True])
def test_a_text_over_the_limit_says_the_count_and_the_choices(start: Start, loaded: bool) -> None:
    client = start(small_model(max_tokens=4))
    if loaded:
        client.post("/api/tokenize", json={"model": MODEL, "text": TEXT})
    answer = client.post("/api/runs", json={"model": MODEL, "text": TEXT})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "text_too_long")
    assert error["details"] == {"field": "text", "count": 6, "limit": 4, "choices": ["cut_head", "cut_tail"]}


def test_a_run_larger_than_the_store_never_starts(start: Start) -> None:
    model = small_model()
    client = start(model, store_bytes=1024**2)
    answer = client.post("/api/runs", json={"model": MODEL, "text": "word " * 2000})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (413, "run_too_large")
    assert error["details"]["needed"] > error["details"]["limit"] == 1024**2
    assert model.runs == 0


def test_too_many_weights_are_refused_before_the_model_runs(start: Start) -> None:
    model = small_model()
    client = start(model, max_weights=100)
    error = client.post("/api/attention", json={"model": MODEL, "text": TEXT}).json()["error"]
    assert error["code"] == "too_many_weights"
    assert (error["details"]["weights"], error["details"]["limit"]) == (4 * 3 * 6 * 6, 100)
    assert "POST /api/runs" in error["details"]["use"]
    assert model.runs == 0
    few = client.post("/api/attention", json={"model": MODEL, "text": TEXT, "layers": [1], "heads": [0, 2]})
    assert few.status_code == 200


def test_an_unforeseen_error_gives_its_id_alone(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(client.app.state.services.models, "list", broken)  # type: ignore[attr-defined]
    answer = client.get("/api/models")
    assert answer.status_code == 500
    assert answer.json()["error"]["details"] == {"request_id": answer.headers["x-request-id"]}
    assert SECRET not in answer.text
    assert answer.headers["content-security-policy"]
