"""`python -m bench.sharing`: how much longer a run takes while many clients read windows of another one.

One server process, the shipped decoder, runs of 254 tokens one after another: alone, then beside 32 clients that read
windows as fast as they are answered, in turns. The goal is at most 3 times as long.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from bench.api import run_of, server

MODEL, TOKENS, CLIENTS = "everyhead-mini", 250, 32
TURNS, RUNS = 5, 4
GOAL = 3.0
WINDOWS = ("rows=0:128&cols=0:128", "format=npy", "max_cells=4096&format=npy", "layer=mean&head=max&format=npy")


@contextmanager
def readers(base_url: str, run: str, clients: int = CLIENTS) -> Iterator[list[float]]:
    """Clients that read windows of a run until the end; gives the seconds of each answer."""
    seconds: list[float] = []
    over = threading.Event()

    def read(number: int) -> None:
        with httpx.Client(base_url=base_url, timeout=120) as client:
            turn = number
            while not over.is_set():
                where = f"layer={turn % 4}&head={turn % 8}&{WINDOWS[turn % len(WINDOWS)]}"
                where = where if "mean" not in where else WINDOWS[turn % len(WINDOWS)]
                started = time.perf_counter()
                client.get(f"/api/runs/{run}/weights?{where}").raise_for_status()
                seconds.append(time.perf_counter() - started)
                turn += 1

    threads = [threading.Thread(target=read, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1.0)  # until all of them read
        yield seconds
    finally:
        over.set()
        for thread in threads:
            thread.join()


def run_seconds(client: httpx.Client) -> float:
    """The median of a few runs, each of a new text."""
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        run_of(client, TOKENS, MODEL)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    """Measure in turns, print, and end with status 1 above the goal."""
    alone, beside, answers = [], [], 0
    with server() as client:
        run = run_of(client, TOKENS, MODEL)["id"]
        run_seconds(client)
        for _ in range(TURNS):
            alone.append(run_seconds(client))
            with readers(str(client.base_url), run) as seconds:
                started, before = time.perf_counter(), len(seconds)
                beside.append(run_seconds(client))
                answers += round((len(seconds) - before) / (time.perf_counter() - started))
    ratio = statistics.median(late / early for early, late in zip(alone, beside, strict=True))
    print(
        f"alone {statistics.median(alone) * 1000:.0f} ms, beside {CLIENTS} readers "
        f"{statistics.median(beside) * 1000:.0f} ms: {ratio:.1f} times as long (goal {GOAL:.0f}); "
        f"{answers / TURNS:.0f} windows a second meanwhile"
    )
    sys.exit(ratio > GOAL)


if __name__ == "__main__":
    main()
