"""Safe by default: foreign hosts, headers, no CORS, private folders, and nothing of the user's text in logs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import MODEL, Start, make_run, settle, small_model

SECRET = "zebra-secret-4711"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9999", "[::1]:8000", "[::1]", "LOCALHOST:80"])
def test_this_machine_is_answered(client: TestClient, host: str) -> None:
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "localhost@evil.example", "[::2]"],
)
@pytest.mark.parametrize("path", ["/healthz", "/api/models", "/", "/static/icon.svg"])
def test_foreign_hosts_are_refused(client: TestClient, host: str, path: str) -> None:
    answer = client.get(path, headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "foreign_host")


def test_a_setting_allows_a_host(start: Start) -> None:
    client = start(allowed_hosts="heads.example, other.example")
    assert client.get("/healthz", headers={"Host": "heads.example:443"}).status_code == 200
    assert client.get("/healthz", headers={"Host": "third.example"}).status_code == 421


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/models", "/api/nothing", "/openapi.json"])
def test_every_answer_has_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    for rule in (
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ):
        assert rule in policy.split("; ")
    assert "unsafe-inline" not in policy.replace("style-src-attr 'unsafe-inline'", "")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_other_origins_get_no_permission(client: TestClient) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (client.options("/api/runs", headers=asked), client.get("/api/models", headers=asked)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_data_folder_is_the_owners_alone(start: Start, tmp_path: Path) -> None:
    client = start(data_dir=tmp_path / "private")
    settle(client, make_run(client))
    paths = [tmp_path / "private", *(tmp_path / "private").rglob("*")]
    assert len(paths) >= 6
    modes = {path.relative_to(tmp_path): oct(path.stat().st_mode & 0o777) for path in paths}
    assert modes == {path.relative_to(tmp_path): oct(0o700 if path.is_dir() else 0o600) for path in paths}


def test_logs_hold_no_text_no_query_and_no_whole_id(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model = small_model(fail_at=3, failure=RuntimeError(f"could not read {SECRET}"))
    client = start(model)
    failed = client.post("/api/runs", json={"model": MODEL, "text": SECRET})
    assert failed.status_code == 409
    model.fail_at = None
    run = make_run(client, SECRET)
    settle(client, run)
    calls = [("/api/tokenize", {"model": MODEL, "text": SECRET}), ("/api/attention", {"model": MODEL, "text": SECRET})]
    for path, body in calls:
        assert client.post(path, json=body).status_code == 200
    client.get(run["links"]["weights"], params={"layer": 0, "head": SECRET})
    client.get(f"/{SECRET}?q={SECRET}")
    client.post("/api/runs", json={"model": SECRET, "text": SECRET, SECRET: SECRET})
    lines = [record.getMessage() + str(record.exc_text or "") for record in ours(caplog)]
    assert any("failed: RuntimeError" in line for line in lines), "the failure is there, by its type"
    assert any("POST /api/runs 201" in line for line in lines), "requests are there, by their pattern"
    for word in (SECRET, "zebra", run["id"]):
        assert [line for line in lines if word in line] == []


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Everything but what the test's own HTTP client says about its requests."""
    return [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]


def test_an_unforeseen_error_is_logged_by_type(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(client.app.state.services.runs, "tokenize", broken)  # type: ignore[attr-defined]
    answer = client.post("/api/tokenize", json={"model": MODEL, "text": SECRET})
    lines = [record.getMessage() for record in ours(caplog)]
    assert any(answer.headers["x-request-id"] in line and "RuntimeError" in line for line in lines)
    assert SECRET not in str(lines) + caplog.text
