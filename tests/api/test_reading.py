"""Reads beside a pass: few at a time, whoever asks, and compressed where they are made."""

from __future__ import annotations

import gzip
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from app.reading import READERS, READERS_GIVE_WAY, ReadRoute
from app.services import windows
from tests.api.conftest import MODEL, make_app, small_model

PARTS = ("heads", "layers", "rows", "overview", "weights", "units", "similarity")


def test_reads_are_bounded_and_the_rest_goes_on(serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    lock, now, most = threading.Lock(), 0, 0
    read = windows.window_dict

    def slow(window: Any) -> Any:  # noqa: ANN401  as the function in whose place it is
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with lock:
            now -= 1
        return read(window)

    monkeypatch.setattr(windows, "window_dict", slow)
    address = serve(small_model())
    with httpx2.Client(base_url=address, timeout=60, trust_env=False) as client, ThreadPoolExecutor(32) as pool:
        run = client.post("/api/runs", json={"model": MODEL, "text": "the cat saw the cat"}).json()["id"]
        window = f"/api/runs/{run}/weights?layer=0&head=0"
        reading = [pool.submit(client.get, window) for _ in range(64)]
        for path in ("/healthz", "/readyz", f"/api/runs/{run}", "/api/models"):
            assert client.get(path).status_code == 200
        assert not all(one.done() for one in reading), "who asks for no window does not wait for all of them"
        assert {one.result().status_code for one in reading} == {200}
    assert most == READERS


def test_a_pass_goes_before_reads(serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    read, seen = windows.window_dict, set()

    def noting(window: Any) -> Any:  # noqa: ANN401  as the function in whose place it is
        seen.add(niceness())
        return read(window)

    monkeypatch.setattr(windows, "window_dict", noting)
    address = serve(small_model())
    with httpx2.Client(base_url=address, timeout=60, trust_env=False) as client:
        for text in ("the cat saw the cat", "after a read, the dog"):
            run = client.post("/api/runs", json={"model": MODEL, "text": text}).json()["id"]
            client.get(f"/api/runs/{run}/weights?layer=0&head=0").raise_for_status()
    lower = READERS_GIVE_WAY if sys.platform == "linux" else 0  # only threads there have a priority of their own
    assert seen == {min(niceness() + lower, 19)}, "19 is the lowest"
    assert niceness() == os.getpriority(os.PRIO_PROCESS, os.getpid()), "all other threads have the process's own"


def niceness() -> int:
    """Of the calling thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_every_read_of_a_run_is_one(tmp_path: Path) -> None:
    app = make_app(tmp_path, small_model())
    routes: list[Any] = [
        route for part in app.router.routes for route in getattr(part, "original_router", app.router).routes
    ]
    reads = {f"/api/runs/{{run_id}}/{part}" for part in PARTS} | {"/api/compare"}
    kinds = {route.path: type(route) for route in routes if getattr(route, "path", None) in reads}
    assert kinds == dict.fromkeys(reads, ReadRoute)


@pytest.mark.parametrize("query", ["", "&format=npy", "&format=csv"])
def test_a_compressed_answer_is_the_same(client: TestClient, query: str) -> None:
    run = client.post("/api/runs", json={"model": MODEL, "text": "word " * 60}).json()
    address = f"{run['links']['weights']}?layer=0&head=0{query}"
    plain = client.get(address, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with client.stream("GET", address, headers={"Accept-Encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in answer.headers["vary"]
    assert int(answer.headers["content-length"]) == len(raw)
    assert gzip.decompress(raw) == plain.content
    assert answer.headers["etag"] == plain.headers["etag"]
