"""A server that is killed in the middle of a run loses no finished one and shows no half-written one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.api.conftest import MODEL, until

ROOT = Path(__file__).parents[2]


@contextmanager
def server(data_dir: Path) -> Iterator[tuple[httpx2.Client, subprocess.Popen[bytes]]]:
    """The fake server in a process of its own, slow enough to be caught in the middle of a run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.fake_server", "--port", str(port), "--delay", "0.02"]
    process = subprocess.Popen([*command, "--data-dir", str(data_dir)], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
            until(lambda: answers(client), 60)
            yield client, process
    finally:
        process.kill()
        process.wait(10)


def answers(client: httpx2.Client) -> bool:
    """Whether the server is up."""
    try:
        return client.get("/healthz").status_code == 200
    except httpx2.TransportError:
        return False


def submit(client: httpx2.Client, text: str) -> str:
    """The id of a run that nobody waits for."""
    answer = client.post("/api/runs", json={"model": MODEL, "text": text}, headers={"Prefer": "respond-async"})
    identity: str = answer.json()["id"]
    return identity


@pytest.mark.slow
def test_a_killed_server_loses_no_finished_run(tmp_path: Path) -> None:
    with server(tmp_path) as (client, process):
        finished = submit(client, "a finished run")
        until(lambda: client.get(f"/api/runs/{finished}").json()["stored"])
        window = client.get(f"/api/runs/{finished}/weights?layer=7&head=3").content
        # Kill while a large run is being written and another computes.
        large = submit(client, "a large run " * 500)
        running = submit(client, "a run that does not end")
        until(lambda: any((tmp_path / "runs").glob(".partial-*/capture.safetensors")), 60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    half_written = [path for path in (tmp_path / "runs").iterdir() if path.name.startswith(".partial-")]
    assert half_written, "it was killed too late to show anything"
    with server(tmp_path) as (client, _):
        assert client.get(f"/api/runs/{finished}").json()["status"] == "done"
        assert client.get(f"/api/runs/{finished}/weights?layer=7&head=3").content == window
        assert client.get(f"/api/runs/{running}").status_code == 404
        assert client.get(f"/api/runs/{large}").status_code == 404
        assert [path for path in half_written if path.exists()] == []
        started = time.monotonic()
        assert client.post("/api/runs", json={"model": MODEL, "text": "a run that does not end"}).status_code == 201
        assert time.monotonic() - started > 0.5, "it was computed again"
