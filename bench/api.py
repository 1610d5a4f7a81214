"""What a client waits for and receives: a real server process, asked over HTTP on this machine.

Latency of windows of a 4,096-token run, bytes of the first full picture, and a long text followed to its end.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from bench.forward import smollm2_folder
from bench.places import DATA, LOCAL, ROOT
from bench.texts import long_text
from bench.wide import make_wide

MODEL, WIDE = "smollm2-135m", "wide"
START_S, RUN_S = 300.0, 900.0
REPEATS = 25


@dataclass(frozen=True)
class ApiFigures:
    """Milliseconds (medians) and bytes on the wire, as a client sees them."""

    window_ms: float
    window_slowest_ms: float
    pooled_head_ms: float
    picture_bytes: dict[str, int]
    long_tokens: int
    long_seconds: float
    long_events: int
    pairs_ms: float
    pairs_slowest_ms: float


@contextmanager
def server() -> Iterator[httpx.Client]:
    """A client of a server that was started for it and is stopped after."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PORT": str(port), "EVERYHEAD_DATA_DIR": str(DATA), "EVERYHEAD_MODELS_DIR": str(LOCAL)}
    process = subprocess.Popen(
        [sys.executable, "-m", "app"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=RUN_S) as client:
            _wait(client)
            yield client
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(client: httpx.Client) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            client.get("/healthz").raise_for_status()
            return
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def run_of(client: httpx.Client, tokens: int, model: str = MODEL) -> dict[str, Any]:
    """The summary of a finished run over about so many tokens, computed now (not found from before)."""
    text = f"{time.time_ns()} {long_text(tokens)}"
    counted = client.post("/api/tokenize", json={"model": model, "text": text}).raise_for_status().json()
    text = text[: counted["tokens"][tokens - 1]["end"]]
    answer = client.post("/api/runs", json={"model": model, "text": text}).raise_for_status()
    summary: dict[str, Any] = answer.json()
    return summary


def window_ms(client: httpx.Client, run: str, repeats: int = REPEATS) -> list[float]:
    """Milliseconds of 256 × 256 windows of a 4,096-token run, each of another head and place."""
    times = []
    for i in range(repeats):
        first = 256 * (i % 15)
        where = {"layer": str(i % 30), "head": str(i % 9), "rows": "3840:4096", "cols": f"{first}:{first + 256}"}
        started = time.perf_counter()
        client.get(f"/api/runs/{run}/weights", params={**where, "format": "npy"}).raise_for_status()
        times.append((time.perf_counter() - started) * 1000)
    return times


def pooled_head_ms(client: httpx.Client, run: str, repeats: int = REPEATS) -> list[float]:
    """Milliseconds of whole heads pooled to 256 × 256, each head for the first time."""
    times = []
    for i in range(repeats):
        started = time.perf_counter()
        where = {"layer": str(i % 30), "head": str(i % 9), "format": "npy"}
        client.get(f"/api/runs/{run}/weights", params=where).raise_for_status()
        times.append((time.perf_counter() - started) * 1000)
    return times


def pairs_ms(client: httpx.Client, run: str, repeats: int = REPEATS) -> list[float]:
    """Milliseconds to rank all heads on ten pairs of a 2,048-token run, other pairs each time."""
    times = []
    for i in range(repeats):
        pairs = ",".join(f"{2040 - 150 * k - i}:{1 + (37 * k + i) % (600 - 50 * k)}" for k in range(10))
        started = time.perf_counter()
        client.get(f"/api/runs/{run}/heads", params={"pairs": pairs, "figures": "false"}).raise_for_status()
        times.append((time.perf_counter() - started) * 1000)
    return times


def wire_bytes(client: httpx.Client, path: str, **params: str) -> int:
    """Bytes of a body as they travel, compressed if the server compresses."""
    with client.stream("GET", path, params=params) as answer:
        answer.raise_for_status()
        return sum(len(chunk) for chunk in answer.iter_raw())


def followed(client: httpx.Client, tokens: int) -> tuple[int, float, int]:
    """Tokens, seconds and progress events of a long run that is followed to its end."""
    text = f"{time.time_ns()} {long_text(tokens)}"
    started = time.perf_counter()
    body = {"model": MODEL, "text": text, "truncate": "cut_tail"}
    run = client.post("/api/runs", json=body, headers={"Prefer": "respond-async"}).raise_for_status().json()["id"]
    events = 0
    with client.stream("GET", f"/api/runs/{run}/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                events += 1
                if json.loads(line[5:]).get("status") in ("done", "failed", "cancelled"):
                    break
    summary = client.get(f"/api/runs/{run}").raise_for_status().json()
    if summary["status"] != "done":
        raise SystemExit(f"the long run ended as {summary['status']}: {summary['error']}")
    return len(summary["tokens"]["source"]), time.perf_counter() - started, events


def measure() -> ApiFigures:
    """All of it, in one server."""
    make_wide(LOCAL / WIDE, smollm2_folder())
    with server() as client:
        large, small = run_of(client, 4096), run_of(client, 512)
        windows, heads = window_ms(client, large["id"]), pooled_head_ms(client, large["id"])
        base = f"/api/runs/{small['id']}"
        picture = {
            "summary": wire_bytes(client, base),
            "overview of maxima": wire_bytes(client, f"{base}/overview", pool="max", format="npy"),
            "head rows": wire_bytes(client, f"{base}/heads"),
        }
        long_tokens, long_seconds, long_events = followed(client, 8000)
        ranked = pairs_ms(client, run_of(client, 2048, f"local:{WIDE}")["id"])
    return ApiFigures(
        window_ms=statistics.median(windows),
        window_slowest_ms=max(windows),
        pooled_head_ms=statistics.median(heads),
        picture_bytes=picture,
        long_tokens=long_tokens,
        long_seconds=long_seconds,
        long_events=long_events,
        pairs_ms=statistics.median(ranked),
        pairs_slowest_ms=max(ranked),
    )
