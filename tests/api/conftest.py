"""The application over a small fake model, in this process or behind a real socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.main import create_app
from app.serving import server_of
from app.settings import Settings
from tests.fakes import FakeModel, FakeModels

TEXT = "The cat saw the cat"
MODEL, SEQ2SEQ, PAIRS = "fake-30x9", "fake-seq2seq", "fake-pairs"
Start = Callable[..., TestClient]


def small_model(**options: Any) -> FakeModel:
    """4 layers × 3 heads, quick."""
    return FakeModel(4, 3, **options)


def make_app(data_dir: Path, model: FakeModel, load_s: float = 0.0, **settings: Any) -> FastAPI:
    """The application with its data in a folder of the test's own."""
    return create_app(
        Settings(data_dir=data_dir, **settings),
        catalogue=FakeModels(model, load_s=load_s),
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start applications with given model and settings; all end with the test."""
    with ExitStack() as stack:

        def started(model: FakeModel | None = None, **settings: Any) -> TestClient:
            app = make_app(settings.pop("data_dir", tmp_path / "data"), model or small_model(), **settings)
            return stack.enter_context(TestClient(app, base_url="http://127.0.0.1"))

        yield started


@pytest.fixture
def client(start: Start) -> TestClient:
    """The application over a quick model."""
    return start()


@pytest.fixture
def run(client: TestClient) -> dict[str, Any]:
    """A finished run of TEXT, on disk: out of memory and out of a file a product may differ in its last bits."""
    made = make_run(client)
    settle(client, made)
    return made


def make_run(client: TestClient, text: str = TEXT, **options: Any) -> dict[str, Any]:
    """A finished run."""
    answer = client.post("/api/runs", json={"model": MODEL, "text": text, **options})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def submit(client: TestClient, text: str = TEXT, **options: Any) -> dict[str, Any]:
    """A run that nobody waits for."""
    body = {"model": MODEL, "text": text, **options}
    answer = client.post("/api/runs", json=body, headers={"Prefer": "respond-async"})
    assert answer.status_code in (201, 202), answer.text
    summary: dict[str, Any] = answer.json()
    return summary


def until(true: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)


def settle(client: TestClient, run: dict[str, Any]) -> None:
    """Wait until the run is on disk; its summary says so, and changes then."""
    until(lambda: client.get(f"/api/runs/{run['id']}").json()["stored"])


@contextmanager
def serving(app: FastAPI, **config: Any) -> Iterator[str]:
    """Serve on a real socket, for what an in-process client cannot show: disconnects and streams. Gives the address."""
    server = server_of(app, app.state.services.stop, port=0, log_config=None, timeout_graceful_shutdown=1, **config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Serve a model on a real socket; gives the address."""
    with ExitStack() as stack:
        yield lambda model, **settings: stack.enter_context(serving(make_app(tmp_path / "served", model, **settings)))
