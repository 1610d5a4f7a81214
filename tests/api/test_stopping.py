"""A server that is told to stop: who waits is answered in the one form, the log is clean, what is done is kept."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from tests.api.conftest import MODEL, make_app, make_run, serving, small_model
from tests.served import Running, served


def post(client: httpx2.Client, path: str, text: str) -> httpx2.Response:
    """A call that waits for its answer."""
    return client.post(path, json={"model": MODEL, "text": text} if path.count("/") == 2 else {})


def require_clean(log: str) -> None:
    """Nothing in it but lines of our own form."""
    assert "Traceback" not in log
    assert "Exception" not in log
    assert " 500 " not in log


def test_whoever_waits_is_refused_in_the_one_form(tmp_path: Path) -> None:
    paths = ("/api/runs", "/api/attention", f"/api/models/{MODEL}/reference")
    with served(tmp_path, delay=3.0) as running, ThreadPoolExecutor(4) as pool:
        running.client.post("/api/tokenize", json={"model": MODEL, "text": "cat"}).raise_for_status()
        waiting = [pool.submit(post, running.client, path, f"{path} cat") for path in paths]
        events = pool.submit(follow, running)
        time.sleep(1.0)  # all four have come, and the first is in the middle of a layer
        started = time.monotonic()
        log = running.stop()
        assert time.monotonic() - started < 10, "containers are killed after so long"
        for one in waiting:
            answer = one.result(10)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down"), answer.text
            assert int(answer.headers["retry-after"]) > 0
            assert answer.headers["content-type"] == "application/json"
        assert events.result(10) == ["progress", "cancelled"]
    require_clean(log)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_however_it_is_told_the_end_is_orderly(tmp_path: Path, sent: signal.Signals, number: int) -> None:
    with served(tmp_path, delay=3.0) as running, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(post, running.client, "/api/runs", "a cat")
        time.sleep(1.0)
        log = running.stop(*[sent] * number)
        answer = waiting.result(10)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down"), answer.text
        assert running.process.returncode == (0 if sent == signal.SIGINT else -sent)
    require_clean(log)
    assert "Application shutdown complete" in log, "nothing was cut"
    assert "force quit" not in log, "a second Ctrl+C does nothing"


def follow(running: Running) -> list[str]:
    """The events of a run that will not end, without repetitions."""
    with httpx2.Client(base_url=running.client.base_url, timeout=30, trust_env=False) as client:
        queued = client.post("/api/runs", json={"model": MODEL, "text": "c"}, headers={"Prefer": "respond-async"})
        with client.stream("GET", f"{queued.json()['links']['events']}") as stream:
            names = [line[7:] for line in stream.iter_lines() if line.startswith("event: ")]
    return list(dict.fromkeys(names))


def test_a_run_that_is_nearly_done_is_finished_and_kept(tmp_path: Path) -> None:
    with served(tmp_path, delay=0.03) as running, ThreadPoolExecutor(1) as pool:
        done = post(running.client, "/api/runs", "done before").json()
        waiting = pool.submit(post, running.client, "/api/runs", "nearly done")
        time.sleep(0.4)
        assert not waiting.done()
        log = running.stop()
        answer = waiting.result(10)
        assert answer.status_code == 201, answer.text
    require_clean(log)
    with served(tmp_path, delay=0.03) as running:
        for run in (done, answer.json()):
            again = running.client.get(f"/api/runs/{run['id']}").json()
            assert (again["status"], again["kept"]) == ("done", "kept")


def test_work_that_nothing_stops_is_cut_with_an_answer(tmp_path: Path) -> None:
    """A model that loads for longer than anybody waits: counting tokens is no run that could be stopped."""
    with ThreadPoolExecutor(1) as pool:
        with serving(make_app(tmp_path, small_model(), load_s=8.0)) as address:
            client = httpx2.Client(base_url=address, timeout=30, trust_env=False)
            waiting = pool.submit(post, client, "/api/tokenize", "a cat")
            time.sleep(0.5)
        answer = waiting.result(10)
        client.close()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")


def test_a_server_that_is_being_stopped_takes_nothing_new(client: TestClient, run: dict[str, Any]) -> None:
    client.app.state.services.runs.refuse()  # type: ignore[attr-defined]
    for path in ("/api/runs", "/api/attention", f"/api/models/{MODEL}/reference"):
        body = {} if path.endswith("reference") else {"model": MODEL, "text": "new"}
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")
        assert int(answer.headers["retry-after"]) > 0
    assert make_run(client)["id"] == run["id"], "what is there can be had"
