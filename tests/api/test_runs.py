"""Runs: the same request is one run; what is kept of a long text; delete, check, order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.services.errors import QueueFull
from tests.api.conftest import MODEL, TEXT, Start, make_run, small_model, submit, until
from tests.fakes import FakeEntry


def test_a_run_says_what_it_is(client: TestClient, run: dict[str, Any]) -> None:
    assert run["status"] == "done"
    assert run["progress"] == {"stage": "done", "done": 0, "total": 0, "queue_position": None}
    assert [token["text"] for token in run["tokens"]["source"]] == ["<s>", "The", " cat", " saw", " the", " cat"]
    assert run["tokens"]["target"] == []
    site = run["sites"][0]
    assert (site["site"], site["n_layers"], site["n_heads"], site["query_len"]) == ("decoder.self", 4, 3, 6)
    assert site["masks"] == [{"kind": "causal", "window": None}] * 4
    assert run["card"]["verdict"] == "pass"
    assert (run["model"]["dtype"], run["model"]["implementation"]) == ("float32", "transformers")
    assert run["timings"]["total_ms"] >= run["timings"]["forward_ms"] >= 0
    assert all(client.get(run["links"][part]).status_code == 200 for part in ("self", "events", "heads", "overview"))
    assert TEXT not in str(run), "the text itself is not part of the summary"


def test_the_same_request_is_the_same_run(start: Start) -> None:
    model = small_model()
    client = start(model)
    first, second = make_run(client), make_run(client, implementation="transformers")
    assert first["id"] == second["id"]
    assert model.runs == 1


@pytest.mark.parametrize(
    "other", [{"text": "The cat saw the dog"}, {"add_special_tokens": False}, {"truncate": "cut_head"}]
)
def test_another_request_is_another_run(client: TestClient, run: dict[str, Any], other: dict[str, Any]) -> None:
    assert make_run(client, **other)["id"] != run["id"]


def test_ids_depend_on_the_key(start: Start, tmp_path: Path) -> None:
    one, two = (make_run(start(data_dir=tmp_path / name)) for name in ("a", "b"))
    assert one["id"] != two["id"]


def test_requests_at_once_share_one_run(start: Start) -> None:
    model = small_model(delay_s=0.05)
    client = start(model)
    with ThreadPoolExecutor(4) as pool:
        ids = {one["id"] for one in pool.map(lambda _: make_run(client), range(4))}
    assert len(ids) == 1
    assert model.runs == 1


def test_respond_async_answers_at_once(start: Start) -> None:
    client = start(small_model(delay_s=0.05))
    answer = client.post("/api/runs", json={"model": MODEL, "text": TEXT}, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202
    assert answer.json()["status"] in ("queued", "running")
    here = answer.headers["location"]
    until(lambda: client.get(here).json()["status"] == "done")


def test_a_finished_run_is_answered_at_once_even_async(client: TestClient, run: dict[str, Any]) -> None:
    answer = client.post("/api/runs", json={"model": MODEL, "text": TEXT}, headers={"Prefer": "respond-async"})
    assert (answer.status_code, answer.json()["id"]) == (201, run["id"])


def test_waiting_runs_know_their_place(start: Start) -> None:
    client = start(small_model(delay_s=0.1))
    ids = [submit(client, f"text {number}")["id"] for number in range(3)]
    until(lambda: client.get(f"/api/runs/{ids[0]}").json()["status"] == "running")
    places = [client.get(f"/api/runs/{one}").json()["progress"]["queue_position"] for one in ids]
    assert places == [None, 1, 2]
    client.delete(f"/api/runs/{ids[1]}")
    assert client.get(f"/api/runs/{ids[2]}").json()["progress"]["queue_position"] == 1


def test_a_full_queue_says_when_to_come_back(start: Start) -> None:
    client = start(small_model(delay_s=0.2), queue_limit=1)
    first = submit(client, "one")["id"]
    until(lambda: client.get(f"/api/runs/{first}").json()["status"] == "running")
    submit(client, "two")
    answer = client.post("/api/runs", json={"model": MODEL, "text": "three"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "queue_full")
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert answer.json()["error"]["message"].startswith("1 run is waiting already. Try again in ")


@pytest.mark.parametrize(("seconds", "words"), [(1, "in 1 second."), (2, "in 2 seconds.")])
def test_seconds_are_counted_in_words_that_fit(seconds: int, words: str) -> None:
    assert QueueFull(16, seconds).message.endswith(words)


def test_runs_wait_for_a_model_that_is_loading(start: Start) -> None:
    client = start(load_s=0.4)
    summary = submit(client)
    until(lambda: client.get(summary["links"]["self"]).json()["progress"]["stage"] == "preparing")
    until(lambda: client.get(summary["links"]["self"]).json()["status"] == "done")


@pytest.mark.parametrize(
    ("truncate", "texts", "kept"),
    [("cut_head", ["<s>", " the", " cat"], [11, 19]), ("cut_tail", ["<s>", "The", " cat"], [0, 7])],
)
def test_a_long_text_is_cut_where_asked(start: Start, truncate: str, texts: list[str], kept: list[int]) -> None:
    run = make_run(start(small_model(max_tokens=3)), truncate=truncate)
    assert [token["text"] for token in run["tokens"]["source"]] == texts
    assert [token["index"] for token in run["tokens"]["source"]] == [0, 1, 2]
    assert run["text"] == {"characters": 19, "kept": kept, "cut": truncate, "tokens_before_cut": 6}


def test_delete_forgets(client: TestClient, run: dict[str, Any]) -> None:
    here = run["links"]["self"]
    assert client.delete(here).json() == {"id": run["id"], "outcome": "forgotten"}
    for answer in (client.get(here), client.get(f"{here}/heads"), client.delete(here)):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "run_gone")
    assert make_run(client)["id"] == run["id"], "it can be computed again"


def test_delete_cancels_what_nobody_waits_for(start: Start) -> None:
    model = small_model(delay_s=0.1)
    client = start(model)
    here = submit(client)["links"]["self"]
    until(lambda: model.layers_done == 1)
    assert client.delete(here).json()["outcome"] == "cancelled"
    cancelled = client.get(here).json()
    assert cancelled["status"] == "cancelled"
    assert (cancelled["progress"]["stage"], cancelled["progress"]["total"]) == ("forward", 4), "where it stopped"
    refused = client.get(f"{here}/weights?layer=0&head=0")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run_cancelled")
    assert make_run(client)["status"] == "done", "a cancelled run is computed again"
    assert model.runs == 2


def test_delete_leaves_a_run_that_somebody_waits_for(start: Start) -> None:
    model = small_model(delay_s=0.1)
    client = start(model)
    here = submit(client)["links"]["self"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(make_run, client)
        services = client.app.state.services  # type: ignore[attr-defined]
        until(lambda: services.runs.find(here.rsplit("/", 1)[1]).waiters == 1)
        assert client.delete(here).json()["outcome"] == "kept"
        assert waiting.result()["status"] == "done"


def test_weights_of_an_unfinished_run_are_refused(start: Start) -> None:
    client = start(small_model(delay_s=0.1))
    here = submit(client)["links"]["self"]
    answer = client.get(f"{here}/overview")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_not_finished")


def test_a_crash_fails_that_run_alone(start: Start) -> None:
    model = small_model(fail_at=2)
    client = start(model)
    answer = client.post("/api/runs", json={"model": MODEL, "text": TEXT})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_failed")
    assert "planted" not in answer.text, "the exception's own words stay inside"
    here = f"/api/runs/{answer.json()['error']['details']['run']}"
    failed = client.get(here).json()
    assert (failed["status"], failed["error"]["code"]) == ("failed", "run_failed")
    assert failed["progress"] == {"stage": "forward", "done": 2, "total": 4, "queue_position": None}
    assert client.get(f"{here}/heads").json()["error"]["code"] == "run_failed"
    model.fail_at = None
    assert make_run(client)["status"] == "done", "a failed run is computed again"


def test_the_whole_pass_is_compared_on_request(client: TestClient) -> None:
    run = make_run(client, "word " * 300)
    assert whole_pass(run)["status"] == "not_compared"
    answer = client.post(run["links"]["check"], headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    assert whole_pass(answer.json())["status"] == "pass"
    assert whole_pass(client.get(run["links"]["self"]).json())["value"] == 2.5e-6
    again = client.post(run["links"]["check"], headers={"Content-Type": "application/json"}).json()
    assert whole_pass(again)["value"] == 2.5e-6


@pytest.mark.parametrize("changed_at", ["submit", "work"])
def test_a_check_needs_the_weights_of_the_run(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, changed_at: str
) -> None:
    """They may be other ones before the check is asked for, or while it waits."""
    run = make_run(client, "word " * 300)
    if changed_at == "work":
        monkeypatch.setattr("app.services.runs.require_same_weights", lambda *_: None)
    monkeypatch.setattr(FakeEntry, "revision", property(lambda _: "fake-2", lambda *_: None))
    answer = client.post(run["links"]["check"], headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "weights_changed")
    assert client.get(run["links"]["self"]).json()["status"] == "done"


def whole_pass(run: dict[str, Any]) -> dict[str, Any]:
    """The last line of a run's card."""
    line: dict[str, Any] = run["card"]["checks"][-1]
    assert line["id"] == "whole_pass"
    return line
