"""Runs on disk: whole or not at all, found again, bounded, and never in the way of the answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.services import run_files
from app.services.disk import PARTIAL
from tests.api.conftest import MODEL, Start, make_run, settle, small_model, until

MIB = 1024**2
WORDS = 320  # about 1.2 MiB of the small fake: 2.7 kB a token, and 0.4 MB of overviews


def stored(folder: Path) -> set[str]:
    """Names of whole runs and of anything else in the folder."""
    return {path.name for path in (folder / "runs").iterdir()}


def test_a_run_is_found_after_a_restart(start: Start, tmp_path: Path) -> None:
    first = start()
    run = make_run(first)
    settle(first, run)  # the window is read from disk then: in memory it lies otherwise, and products round otherwise
    window = first.get(f"{run['links']['weights']}?layer=2&head=1").json()
    model = small_model()
    second = start(model)
    again = second.get(run["links"]["self"]).json()
    assert again == {**run, "stored": True, "kept": "kept", "bytes": again["bytes"]}
    assert second.get(f"{run['links']['weights']}?layer=2&head=1").json() == window
    assert make_run(second)["id"] == run["id"]
    assert model.runs == 0, "nothing is computed again"


def test_a_checked_card_is_found_after_a_restart(start: Start) -> None:
    first = start()
    run = make_run(first, "word " * 300)
    first.post(run["links"]["check"], headers={"Content-Type": "application/json"})
    settle(first, run)
    until(lambda: start().get(run["links"]["self"]).json()["card"]["checks"][-1]["status"] == "pass")


def test_a_checked_card_stays_while_its_run_is_being_written(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "sync", lambda _: time.sleep(0.1))
    client = start()
    run = make_run(client, "word " * 300)
    client.post(run["links"]["check"], headers={"Content-Type": "application/json"})
    seen: list[dict[str, Any]] = []
    while not seen or not seen[-1]["stored"]:
        seen.append(client.get(run["links"]["self"]).json())
    assert {summary["card"]["checks"][-1]["status"] for summary in seen} == {"pass"}


def test_the_answer_does_not_wait_for_the_disk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[bool] = []
    monkeypatch.setattr(run_files, "sync", lambda _: until(lambda: allowed))
    client = start()
    run = make_run(client)
    assert not client.get(run["links"]["self"]).json()["stored"]
    assert client.get(run["links"]["heads"]).status_code == 200
    allowed.append(True)
    settle(client, run)


def test_runs_do_not_pile_up_before_a_slow_disk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[bool] = []
    monkeypatch.setattr(run_files, "sync", lambda _: until(lambda: allowed, 20))
    model = small_model()
    client = start(model, backlog_bytes=1)
    make_run(client, "one")
    waiting = client.post("/api/runs", json={"model": MODEL, "text": "two"}, headers={"Prefer": "respond-async"}).json()
    until(lambda: client.get(waiting["links"]["self"]).json()["status"] == "queued")
    assert model.runs == 1
    allowed.append(True)
    until(lambda: client.get(waiting["links"]["self"]).json()["status"] == "done")


def test_the_least_recently_used_goes_first(start: Start, tmp_path: Path) -> None:
    client = start(store_bytes=4 * MIB)
    runs = [make_run(client, f"{name} " * WORDS) for name in ("a", "b", "c")]
    for run in runs:
        settle(client, run)
    assert client.get(runs[0]["links"]["heads"]).status_code == 200  # used again
    last = make_run(client, "d " * WORDS)
    settle(client, last)
    assert stored(tmp_path / "data") == {runs[0]["id"], runs[2]["id"], last["id"]}
    assert client.get(runs[1]["links"]["self"]).json()["error"]["code"] == "run_gone"
    total = sum(file.stat().st_size for file in (tmp_path / "data" / "runs").rglob("*") if file.is_file())
    assert total <= 4 * MIB


def test_use_is_remembered_over_a_restart_and_a_smaller_bound_is_kept(start: Start, tmp_path: Path) -> None:
    client = start()
    runs = [make_run(client, f"{name} " * WORDS) for name in ("a", "b", "c")]
    for age, run in enumerate(runs):
        settle(client, run)
        os.utime(tmp_path / "data" / "runs" / run["id"], (1000 - age, 1000 - age))
    start(store_bytes=3 * MIB)
    assert stored(tmp_path / "data") == {runs[0]["id"], runs[1]["id"]}


def test_leftovers_go_and_half_runs_are_not_shown(start: Start, tmp_path: Path) -> None:
    client = start()
    run = make_run(client)
    settle(client, run)
    folder = tmp_path / "data" / "runs"
    half = "1" * 32
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    leftovers = [folder / f"{PARTIAL}{half}-{end}" for end in (ended.pid, os.getpid(), "gone")]
    of_another = folder / f"{PARTIAL}{half}-{os.getppid()}"  # a process that lives: a second server, say
    for path in (*leftovers, of_another):
        shutil.copytree(folder / run["id"], path)
    (folder / half).mkdir()
    shutil.copy(folder / run["id"] / "capture.safetensors", folder / half)
    again = start()
    assert [path for path in leftovers if path.exists()] == []
    assert of_another.exists(), "it is being written"
    assert again.get(f"/api/runs/{half}").json()["error"]["code"] == "run_gone"
    assert again.get(run["links"]["self"]).status_code == 200


def test_forgetting_a_run_removes_its_files(start: Start, tmp_path: Path) -> None:
    client = start()
    run = make_run(client)
    settle(client, run)
    client.delete(run["links"]["self"])
    assert stored(tmp_path / "data") == set()


def test_forgetting_a_run_that_is_being_written(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    allowed: list[bool] = []
    monkeypatch.setattr(run_files, "sync", lambda _: until(lambda: allowed))
    client = start()
    run = make_run(client)
    client.delete(run["links"]["self"])
    allowed.append(True)
    until(lambda: stored(tmp_path / "data") == set())
    assert client.get(run["links"]["self"]).status_code == 404
