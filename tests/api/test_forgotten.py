"""What becomes of a run that is deleted, or dropped to make room: nothing of its text stays, whoever worked with it."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.dependencies import Services
from app.main import create_app
from app.services import comparison
from app.services.runs import RunRequest
from app.services.store import RunStore
from app.settings import Settings
from models.alignment import Segment, align
from models.tokens import Token
from models.units import TextUnit
from tests.api.conftest import MODEL, Start, make_run, settle, small_model, until
from tests.unit.tiny_checkpoints import save_gpt2

WORD = "swordfish"
MIB = 1024**2


def held(word: str = WORD) -> list[Any]:
    """Everything in memory that is cut from a text with this word."""
    gc.collect()
    return [one for one in gc.get_objects() if type(one) in (Token, TextUnit, Segment) and word in one.text]


def services_of(client: TestClient) -> Services:
    """What the application is made of."""
    services: Services = client.app.state.services  # type: ignore[attr-defined]
    return services


def use(client: TestClient, run: dict[str, Any]) -> None:
    """Ask for all that is worked out of a finished run."""
    address = f"/api/runs/{run['id']}"
    window = f"{address}/weights?layer=1&head=0"
    pair = f"/api/compare?a={run['id']}&b={run['id']}&layer_a=0&head_a=0&layer_b=1&head_b=1"
    calls = (f"{address}/units?unit=word", f"{window}&lens=rollout&unit=sentence", f"{address}/similarity", pair)
    assert [client.get(call).status_code for call in (*calls, f"{address}/layers?alike=true")] == [200] * 5
    assert client.post(f"{address}/check", json={}).status_code == 200


def test_nothing_of_a_deleted_run_is_kept(client: TestClient) -> None:
    run = make_run(client, f"the {WORD} is here")
    settle(client, run)
    use(client, run)
    assert len(held()) > 3, "this is how the test sees it"
    assert client.delete(f"/api/runs/{run['id']}").json()["outcome"] == "forgotten"
    assert held() == []
    use(client, make_run(client, f"the {WORD} is here"))  # and it can be made again


def test_nothing_of_a_run_that_was_dropped_to_make_room_is_kept(start: Start) -> None:
    client = start(store_bytes=2 * MIB)
    dropped = make_run(client, f"{WORD} " * 320)
    settle(client, dropped)
    use(client, dropped)
    settle(client, make_run(client, "other " * 320))
    assert client.get(f"/api/runs/{dropped['id']}").json()["error"]["code"] == "run_gone"
    assert held() == []


def test_what_is_found_while_its_run_is_deleted_is_answered_and_not_kept(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(client, f"the {WORD} is here")
    settle(client, run)  # the thread that writes holds it until then

    def deleting(*given: Any) -> Any:  # noqa: ANN401  as the function in whose place it is
        client.delete(f"/api/runs/{run['id']}")
        return align(*given)

    monkeypatch.setattr(comparison, "align", deleting)
    pair = f"/api/compare?a={run['id']}&b={run['id']}&layer_a=0&head_a=0&layer_b=1&head_b=1"
    assert client.get(pair).json()["aligned"]
    assert held() == []


def test_a_run_that_is_deleted_while_it_is_read_is_gone(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    first = start()
    run = make_run(first, f"the {WORD} is here")
    settle(first, run)
    client = start()  # which has not read it yet
    store = services_of(client).runs._store
    read = store._files.read

    def deleting(run_id: str) -> Any:  # noqa: ANN401  as the method in whose place it is
        found = read(run_id)
        store.forget(run_id)
        return found

    monkeypatch.setattr(store._files, "read", deleting)
    assert client.get(f"/api/runs/{run['id']}").status_code == 200, "it was there when it was read"
    assert client.get(f"/api/runs/{run['id']}").json()["error"]["code"] == "run_gone"


def test_what_waited_for_its_turn_while_its_run_was_deleted_is_not_kept(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, run = make_run(client, "another text"), make_run(client, f"the {WORD} is here")
    for one in (other, run):
        settle(client, one)
    lenses = services_of(client).lenses
    inside, go, cut = threading.Event(), threading.Event(), lenses._segmenter.units

    def slow(tokens: Any, unit: Any) -> Any:  # noqa: ANN401  as the method in whose place it is
        inside.set()
        go.wait(10)
        return cut(tokens, unit)

    monkeypatch.setattr(lenses._segmenter, "units", slow)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(client.get, f"/api/runs/{one['id']}/units?unit=word") for one in (other, run)]
        inside.wait(10)
        record, _ = services_of(client).runs.read(run["id"])  # as the request that waits has it
        client.delete(f"/api/runs/{run['id']}")
        go.set()
        assert asked[0].result().status_code == 200
        asked[1].result()
    lenses.units(record, "word", "source")
    del record, asked
    assert held() == []
    assert len(lenses._units) == 1, "what is of the other run stays"


def test_a_run_that_goes_takes_nothing_of_another(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run, dropped = make_run(client), make_run(client, "other")
    calls = []

    def deleting(*given: Any) -> Any:  # noqa: ANN401  as the function in whose place it is
        calls.append(client.delete(f"/api/runs/{dropped['id']}"))
        return align(*given)

    monkeypatch.setattr(comparison, "align", deleting)
    for layer in (0, 1):
        client.get(f"/api/compare?a={run['id']}&b={run['id']}&layer_a={layer}&head_a=0&layer_b=1&head_b=1")
    assert len(calls) == 1


def test_a_check_that_nobody_waited_for_goes_with_its_run(start: Start) -> None:
    client = start(small_model(delay_s=0.2))
    services = services_of(client)
    run = make_run(client, f"{WORD} " * 320)  # too long to be compared whole at once
    settle(client, run)
    other = services.runs.submit(RunRequest(MODEL, "a text that takes a while"), wanted=True)
    until(lambda: other.record.status == "running")
    services.runs.release(services.runs.check(run["id"]))
    client.delete(f"/api/runs/{run['id']}")
    until(lambda: other.over)
    until(lambda: not held())


def test_a_run_that_the_disk_refused_can_be_deleted(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunStore, "_write", lambda *_: False)
    client = start(backlog_bytes=0)
    run, other = make_run(client, f"the {WORD} is here"), make_run(client, "other")
    until(lambda: not services_of(client).runs._store._pending)
    assert client.get(f"/api/runs/{run['id']}").json()["error"]["code"] == "run_gone", (
        "as many as may wait for the disk, one at least"
    )
    assert client.get(f"/api/runs/{other['id']}").status_code == 200
    assert client.delete(f"/api/runs/{other['id']}").json()["outcome"] == "forgotten"
    assert client.get(f"/api/runs/{other['id']}").json()["error"]["code"] == "run_gone"
    assert held() == []


def test_the_writer_outlives_a_run_that_is_deleted_while_its_record_is_written(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()
    store = services_of(client).runs._store
    write, update = store._write, store._files.update

    def checked(record: Any, capture: Any) -> bool:  # noqa: ANN401  as the method in whose place it is
        done = write(record, capture)
        store.update(replace(record))  # a check has ended meanwhile
        return done

    def deleting(record: Any) -> None:  # noqa: ANN401  the same
        store.forget(record.id)
        update(record)

    monkeypatch.setattr(store, "_write", checked)
    monkeypatch.setattr(store._files, "update", deleting)
    make_run(client, "one two three")
    until(lambda: not store._pending)
    monkeypatch.undo()
    settle(client, make_run(client, "and another"))
    assert client.get("/readyz").status_code == 200


def test_a_server_whose_runs_are_no_longer_written_is_not_ready(client: TestClient) -> None:
    services_of(client).runs._store.close()
    assert client.get("/readyz").json()["reasons"] == ["the store thread has stopped"]


@pytest.mark.parametrize("when", ["before it is begun", "after it"])
def test_a_comparison_of_stages_goes_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    save_gpt2(tmp_path / "models" / "tiny")
    settings = Settings(
        data_dir=tmp_path / "data", models_dir=tmp_path / "models", default_model="local:tiny", offline=True
    )
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        run = make_run(client, "cat", model="local:tiny")
        settle(client, run)
        stages, address = services_of(client).stages, f"/api/runs/{run['id']}"
        refuse = stages._refuse
        if when != "after it":
            monkeypatch.setattr(stages, "_refuse", lambda record: [refuse(record), client.delete(address)])
        assert client.post(f"{address}/stages", json={}).status_code == (200 if when == "after it" else 404)
        client.delete(address)
        until(lambda: not held("cat"))
