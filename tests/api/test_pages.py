"""The page, its languages, the error page, static files and health."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import MODEL, Start

BROWSER = {"Accept": "text/html,application/xhtml+xml"}


@pytest.mark.parametrize(
    ("query", "cookie", "accept", "language"),
    [
        ("", None, None, "en"),
        ("?lang=zh", None, "en", "zh-CN"),
        ("", "zh", "en", "zh-CN"),
        ("", None, "zh-CN,zh;q=0.9,en;q=0.5", "zh-CN"),
        ("", None, "fr,en;q=0.5", "en"),
    ],
)
def test_the_page_speaks_the_language_asked_for(
    client: TestClient, query: str, cookie: str | None, accept: str | None, language: str
) -> None:
    headers = {**({"Cookie": f"lang={cookie}"} if cookie else {}), **({"Accept-Language": accept} if accept else {})}
    answer = client.get(f"/{query}", headers=headers)
    assert answer.status_code == 200
    assert f'lang="{language}"' in answer.text


def test_everything_the_page_names_is_there_and_kept_for_ever(client: TestClient) -> None:
    paths = set(re.findall(r'"(/static/[^"]+)"', client.get("/").text))
    assert any("plotly.min.js" in path for path in paths)
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert "immutable" in answer.headers["cache-control"], path


def test_modules_are_kept_for_ever_under_the_hash_of_all(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    (main,) = re.findall(r'"(/static/modules-[0-9a-f]+/js/)main\.js"', client.get("/").text)
    imported = client.get(f"{main}api.js")
    assert imported.text == client.get("/static/js/api.js").text
    assert "immutable" in imported.headers["cache-control"]
    monkeypatch.setattr("app.assets._hash_of_modules", lambda: "0" * 12)  # after an update, for an older page
    assert client.get(f"{main}api.js").headers["cache-control"] == "no-cache"


def test_without_its_hash_a_file_must_be_asked_about(client: TestClient) -> None:
    assert client.get("/static/icon.svg").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/static/../app/settings.py", "/static/%2e%2e/app/settings.py", "/static/none.js"])
def test_nothing_outside_the_static_folder_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_browser_gets_a_page_for_a_wrong_address(client: TestClient) -> None:
    answer = client.get("/nothing", headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<h1>" in answer.text
    assert client.get("/api/nothing", headers=BROWSER).json()["error"]["code"] == "not_found"


def test_a_browser_gets_a_page_with_the_request_id_when_something_breaks(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(client.app.state.pages, "index", broken)  # type: ignore[attr-defined]
    answer = client.get("/", headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert answer.headers["x-request-id"] in answer.text
    assert "secret" not in answer.text

    def no_page(*_: object) -> None:
        raise KeyError("a message")

    monkeypatch.setattr(client.app.state.pages, "error", no_page)  # type: ignore[attr-defined]
    assert client.get("/", headers=BROWSER).json()["error"]["code"] == "internal"


def test_the_api_page_lists_every_call(client: TestClient) -> None:
    page = client.get("/docs").text
    paths = client.get("/openapi.json").json()["paths"]
    assert [path for path in paths if path not in page] == []
    assert page.count("<dt>") == sum(len(methods) for methods in paths.values())


def test_a_program_gets_json_for_a_wrong_address(client: TestClient) -> None:
    assert client.get("/nothing").json()["error"]["code"] == "not_found"


def test_health(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "reasons": []}
    assert client.get("/readyz").json() == {"status": "ready", "reasons": []}


def test_not_ready_says_why(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = client.app.state.services.models  # type: ignore[attr-defined]
    broken = [entry for entry in catalogue.list() if entry.id != MODEL][-1:]
    monkeypatch.setattr(catalogue, "list", lambda: broken)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not_ready")
    assert "safetensors" in answer.json()["reasons"][0]


def test_the_model_thread_is_watched(start: Start) -> None:
    client = start()
    client.app.state.services.runs._queue.close()  # type: ignore[attr-defined]
    assert client.get("/readyz").status_code == 503
