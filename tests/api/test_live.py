"""Over a real socket: requests at once, streams, and clients that go away."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.api.conftest import MODEL, TEXT, small_model, until

Serve = Callable[..., str]
BODY = {"model": MODEL, "text": TEXT}
ASYNC = {"Prefer": "respond-async"}


def connect(address: str) -> httpx2.Client:
    """A client of a served application."""
    return httpx2.Client(base_url=address, timeout=20, trust_env=False)


def post_and_leave(address: str, body: dict[str, Any], path: str = "/api/runs") -> socket.socket:
    """Send a synchronous POST and keep the connection; closing it is going away."""
    parts = urlsplit(address)
    content = json.dumps(body).encode()
    connection = socket.create_connection((parts.hostname, parts.port))
    head = (f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    connection.sendall("\r\n".join((*head, f"Content-Length: {len(content)}", "", "")).encode() + content)
    return connection


def test_the_server_answers_while_the_model_runs(serve: Serve) -> None:
    model = small_model(delay_s=0.3)
    address = serve(model)
    with connect(address) as client, ThreadPoolExecutor(2) as pool:
        running = pool.submit(lambda: client.post("/api/runs", json=BODY).status_code)
        until(lambda: model.layers_done >= 1)
        answered = 0
        while not running.done():
            assert client.get("/healthz").status_code == 200
            answered += 1
        assert running.result() == 201
    # Had each request waited for a layer, there would be one answer a layer; a machine under load still gives dozens.
    assert answered > 3 * model.description.n_layers


def test_clients_that_go_away_while_a_model_loads_hold_no_thread(serve: Serve) -> None:
    address = serve(small_model(), load_s=8.0)
    waiting = [post_and_leave(address, BODY, "/api/tokenize") for _ in range(40)]
    time.sleep(0.3)
    for connection in waiting:
        connection.close()
    with connect(address) as client:
        started = time.monotonic()
        assert client.get("/api/models").json()["models"][0]["state"] == "preparing"
        run = client.post("/api/runs", json=BODY, headers=ASYNC).json()
        assert client.delete(run["links"]["self"]).json()["outcome"] == "cancelled"
    assert time.monotonic() - started < 4, "nothing waited for the model"


def test_a_client_that_goes_away_cancels_its_run(serve: Serve) -> None:
    model = small_model(delay_s=0.1)
    address = serve(model)
    connection = post_and_leave(address, BODY)
    until(lambda: model.layers_done >= 1)
    connection.close()
    time.sleep(0.6)
    assert model.layers_done < 4
    with connect(address) as client:
        assert client.post("/api/runs", json=BODY).status_code == 201
    assert model.runs == 2


@pytest.mark.parametrize("other", ["waits", "wanted"])
def test_a_client_that_goes_away_leaves_what_others_want(serve: Serve, other: str) -> None:
    model = small_model(delay_s=0.1)
    address = serve(model)
    connection = post_and_leave(address, BODY)
    until(lambda: model.layers_done >= 1)
    with connect(address) as client, ThreadPoolExecutor(1) as pool:
        second = pool.submit(lambda: client.post("/api/runs", json=BODY, headers=ASYNC if other == "wanted" else {}))
        time.sleep(0.1)
        connection.close()
        here = second.result().headers["location"]
        until(lambda: client.get(here).json()["status"] == "done")
    assert model.runs == 1


def events(client: httpx2.Client, path: str) -> list[tuple[str, dict[str, Any]]]:
    """All events of a stream, to its end."""
    with client.stream("GET", path) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        text = "".join(stream.iter_text())
    blocks = [
        dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        for block in text.split("\n\n")
    ]
    return [(block["event"], json.loads(block["data"])) for block in blocks if "event" in block]


def test_events_tell_the_state_at_once_each_layer_and_the_end(serve: Serve) -> None:
    model = small_model(delay_s=0.1)
    with connect(serve(model)) as client:
        run = client.post("/api/runs", json=BODY, headers=ASYNC).json()
        seen = events(client, run["links"]["events"])
        names = [name for name, _ in seen]
        assert names == ["progress"] * (len(names) - 1) + ["done"]
        done = [data["progress"]["done"] for _, data in seen[:-1] if data["progress"]["stage"] == "forward"]
        assert {1, 2, 3} <= set(done)
        assert seen[-1][1] == {"status": "done", "error": None}
        assert events(client, run["links"]["events"]) == seen[-1:], "a finished run says so at once"


def test_closing_the_events_cancels_nothing(serve: Serve) -> None:
    model = small_model(delay_s=0.1)
    with connect(serve(model)) as client:
        run = client.post("/api/runs", json=BODY, headers=ASYNC).json()
        with client.stream("GET", run["links"]["events"]) as stream:
            next(stream.iter_text())
        until(lambda: client.get(run["links"]["self"]).json()["status"] == "done")


def test_head_is_get_without_the_body(serve: Serve) -> None:
    with connect(serve(small_model())) as client:
        here = client.post("/api/runs", json=BODY).json()["links"]
        for path in ("/", "/docs", "/healthz", "/readyz", "/api/models", here["self"], here["overview"]):
            head, get = client.head(path), client.get(path)
            assert (head.status_code, head.content) == (get.status_code, b""), path
            assert head.headers["content-type"] == get.headers["content-type"], path
            assert head.headers["content-length"] == get.headers["content-length"], path
        assert client.head("/api/tokenize").status_code == 405
        assert client.head(here["events"]).status_code == 405, "a stream would have to be followed"
        assert client.head("/api/nothing").status_code == 404


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_events_tell_other_endings(serve: Serve, ending: str) -> None:
    model = small_model(delay_s=0.1, fail_at=2 if ending == "failed" else None)
    with connect(serve(model)) as client, ThreadPoolExecutor(1) as pool:
        run = client.post("/api/runs", json=BODY, headers=ASYNC).json()
        following = pool.submit(events, client, run["links"]["events"])
        until(lambda: model.layers_done >= 1)
        if ending == "cancelled":
            client.delete(run["links"]["self"])
        name, data = following.result()[-1]
    assert name == data["status"] == ending
    assert (data["error"] is not None) == (ending == "failed")
