"""The fake server in a process of its own, for tests that stop or kill it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.api.conftest import until

ROOT = Path(__file__).parents[1]


@dataclass
class Running:
    """A server that answers."""

    client: httpx2.Client
    process: subprocess.Popen[str]
    log: Path

    def stop(self, *signals: signal.Signals) -> str:
        """Tell it to stop, as often as there are signals, wait for that, and give its log."""
        for one in signals or (signal.SIGTERM,):
            os.kill(self.process.pid, one)
            time.sleep(0.2)  # each is seen on its own
        self.process.wait(20)
        return self.log.read_text()


@contextmanager
def served(folder: Path, *, delay: float) -> Iterator[Running]:
    """The fake server with its data and its log in `folder`; `delay` is what each of its 30 layers takes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log"
    command = [sys.executable, "-m", "tests.fake_server", "--port", str(port), "--delay", str(delay)]
    with log.open("w") as to:
        process = subprocess.Popen([*command, "--data-dir", str(folder / "data")], cwd=ROOT, stderr=to, text=True)
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
            until(lambda: _answers(client), 60)
            yield Running(client, process, log)
    finally:
        process.kill()
        process.wait(10)


def _answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx2.TransportError:
        return False
