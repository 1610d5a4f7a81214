"""Who waits for a piece of work is counted by the service that gave it out, under one lock for joining and stopping."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.dependencies import Services
from app.services.compute import Compute
from app.services.live import LiveRun
from app.services.records import Options, RunRecord, TextFacts, Texts
from app.services.runs import RunRequest
from models.reference import NAMES
from tests.api.conftest import MODEL, TEXT, Start, make_app, serving, small_model, until

Join = Callable[[Services], LiveRun]
RECORD = RunRecord("r", "running", "now", {"id": "m"}, Options(), TextFacts(1, (0, 1)))


def join_run(services: Services) -> LiveRun:
    return services.runs.submit(RunRequest(MODEL, TEXT), wanted=False)


def join_panel(services: Services) -> LiveRun:
    return services.references.submit(MODEL, wanted=False)


def owner_of(services: Services, join: Join) -> Any:  # noqa: ANN401  either service
    return services.runs if join is join_run else services.references


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[FastAPI, str]]:
    """An application over a model that takes its time, on a real socket."""
    app = make_app(tmp_path / "served", small_model(delay_s=0.1))
    with serving(app) as address:
        yield app, address


def test_a_panel_is_released_without_the_lock_of_the_runs(slow: tuple[FastAPI, str]) -> None:
    app, address = slow
    services: Services = app.state.services
    with ThreadPoolExecutor(1) as pool, ExitStack() as held:
        asked = pool.submit(lambda: httpx2.post(f"{address}/api/models/{MODEL}/reference", json={}, timeout=1.0))
        until(lambda: services.references._works)
        (work,) = services.references._works.values()
        held.enter_context(services.runs._lock)
        with pytest.raises(httpx2.TimeoutException):
            asked.result()
        until(lambda: work.over, timeout_s=3)
    assert (work.waiters, work.record.status) == (0, "cancelled")


@pytest.mark.parametrize("join", [join_run, join_panel])
def test_two_that_wait_are_two(start: Start, join: Join) -> None:
    services: Services = start(small_model(delay_s=0.05)).app.state.services  # type: ignore[attr-defined]
    first, second = join(services), join(services)
    assert first is second
    owner_of(services, join).release(first)
    assert not second.over
    owner_of(services, join).release(second)
    assert second.record.status == "cancelled"


@pytest.mark.parametrize("join", [join_run, join_panel])
def test_nobody_joins_what_is_being_given_up(start: Start, monkeypatch: pytest.MonkeyPatch, join: Join) -> None:
    """Who comes when the last one has left, but the work is not stopped yet, is given new work."""
    client: TestClient = start(small_model(delay_s=0.3))
    services: Services = client.app.state.services  # type: ignore[attr-defined]
    work, cancel, joined = join(services), Compute.cancel, []
    late = threading.Thread(target=lambda: joined.append(join(services)))

    def cancel_late(run: LiveRun, *failure: Any) -> None:
        if run is work and not late.ident:
            late.start()
            late.join(0.5)  # with the lock held it gets nowhere
        cancel(run, *failure)

    monkeypatch.setattr(Compute, "cancel", staticmethod(cancel_late))
    owner_of(services, join).release(work)
    late.join(5)
    assert work.record.status == "cancelled"
    assert joined[0] is not work
    assert not joined[0].over


def test_a_panel_that_was_stopped_is_told_in_its_own_words(slow: tuple[FastAPI, str]) -> None:
    services: Services = slow[0].state.services
    work = services.references.submit(MODEL, wanted=True)
    assert services.references.cancel(MODEL)
    assert work.failure is not None
    assert work.failure.code == "run_cancelled"
    assert "panel" in work.failure.message


def ending() -> tuple[LiveRun, threading.Thread, threading.Event]:
    """Work whose end is being written, the thread that does so, and what lets the disk go on."""
    work, written = LiveRun(RECORD, lambda _: None), threading.Event()
    writing = threading.Event()

    def write() -> None:
        writing.set()
        written.wait(5)

    thread = threading.Thread(target=lambda: work.finish(replace(RECORD, status="done"), before=write))
    thread.start()
    assert writing.wait(5)
    return work, thread, written


def test_who_listens_or_stops_does_not_wait_for_the_disk() -> None:
    """Both happen on the event loop: a lock that is held while a run is written stops every answer."""
    work, thread, written = ending()
    heard: list[int] = []
    with ThreadPoolExecutor(2) as pool:
        pool.submit(work.listen, lambda: heard.append(1)).result(2)
        pool.submit(Compute.cancel, work).result(2)
        assert not work.over, "it came too late: the end is being written"
        written.set()
    thread.join(5)
    assert (work.over, work.record.status, work.failure, heard) == (True, "done", None, [1])


def test_an_end_that_cannot_be_written_is_no_end() -> None:
    work = LiveRun(RECORD, lambda _: None)

    def full() -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        work.finish(replace(RECORD, status="done"), before=full)
    assert (work.over, work.record.status) == (False, "running")
    Compute.cancel(work)
    assert (work.over, work.record.status) == (True, "cancelled")


def test_who_stopped_listening_is_told_nothing_more() -> None:
    work, heard = LiveRun(RECORD, lambda _: None), []
    ends = [work.listen(lambda name=name: heard.append(name)) for name in ("first", "second")]  # type: ignore[misc]
    work.moved(2)
    ends[0]()
    work.moved(1)
    assert heard == ["first", "second", "second"]


@pytest.mark.parametrize("ending", ["done", "failed", "cancelled"])
def test_the_text_is_let_go_once_it_is_over(start: Start, ending: str) -> None:
    model = small_model(delay_s=0.05, fail_at=2 if ending == "failed" else None)
    services: Services = start(model).app.state.services  # type: ignore[attr-defined]
    run = services.runs.submit(RunRequest(MODEL, "a secret"), wanted=True)
    assert run.texts == Texts("a secret")
    if ending == "cancelled":
        services.runs.delete(run.record.id)
    until(lambda: run.over)
    assert (run.record.status, run.texts) == (ending, Texts(""))


def test_a_panel_is_read_from_the_disk_without_the_lock(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    services: Services = start(small_model(delay_s=0.3)).app.state.services  # type: ignore[attr-defined]
    service, reading, go_on = services.references, threading.Event(), threading.Event()
    work, read = service.submit(MODEL, wanted=False), service._files.read

    def slow(key: str) -> Any:  # noqa: ANN401  a panel
        reading.set()
        go_on.wait(5)
        return read(key)

    monkeypatch.setattr(service._files, "read", slow)
    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(service.submit, MODEL, wanted=False)
        assert reading.wait(5)
        pool.submit(service.release, work).result(2)
        go_on.set()
        assert other.result(5) is not work, "what was given up meanwhile is not joined"


def test_a_panel_that_was_stored_while_it_was_looked_for_is_not_made_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model()
    services: Services = start(model).app.state.services  # type: ignore[attr-defined]
    service = services.references
    work, read = service.submit(MODEL, wanted=True), service._files.read

    def late(key: str) -> Any:  # noqa: ANN401  a panel
        found = read(key)
        if found is None:
            until(lambda: not service._works)  # it is on the disk now
        return found

    monkeypatch.setattr(service._files, "read", late)
    again = service.submit(MODEL, wanted=True)
    assert (again.found is not None, again.over) == (True, True)
    assert (work.over, model.runs) == (True, len(NAMES))
