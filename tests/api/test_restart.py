"""A server that is killed in the middle of a run loses no finished one and shows no half-written one."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import httpx2
import pytest

from tests.api.conftest import MODEL, until
from tests.served import served


def submit(client: httpx2.Client, text: str) -> str:
    """The id of a run that nobody waits for."""
    answer = client.post("/api/runs", json={"model": MODEL, "text": text}, headers={"Prefer": "respond-async"})
    identity: str = answer.json()["id"]
    return identity


@pytest.mark.slow
def test_a_killed_server_loses_no_finished_run(tmp_path: Path) -> None:
    with served(tmp_path, delay=0.02) as server:
        client, process = server.client, server.process
        finished = submit(client, "a finished run")
        until(lambda: client.get(f"/api/runs/{finished}").json()["stored"])
        window = client.get(f"/api/runs/{finished}/weights?layer=7&head=3").content
        # Kill while a large run is being written and another computes.
        large = submit(client, "a large run " * 500)
        running = submit(client, "a run that does not end")
        until(lambda: any((tmp_path / "data" / "runs").glob(".partial-*/capture.safetensors")), 60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    half_written = [path for path in (tmp_path / "data" / "runs").iterdir() if path.name.startswith(".partial-")]
    assert half_written, "it was killed too late to show anything"
    with served(tmp_path, delay=0.02) as server:
        client = server.client
        assert client.get(f"/api/runs/{finished}").json()["status"] == "done"
        assert client.get(f"/api/runs/{finished}/weights?layer=7&head=3").content == window
        assert client.get(f"/api/runs/{running}").status_code == 404
        assert client.get(f"/api/runs/{large}").status_code == 404
        assert [path for path in half_written if path.exists()] == []
        started = time.monotonic()
        assert client.post("/api/runs", json={"model": MODEL, "text": "a run that does not end"}).status_code == 201
        assert time.monotonic() - started > 0.5, "it was computed again"
