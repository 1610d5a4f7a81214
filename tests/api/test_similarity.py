"""How alike heads are: the numbers are the engine's, many requests compute once, little is kept."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from app.services import similarity as service
from app.services.similarity import SimilarityService
from models import similarity as engine
from tests.api.conftest import SEQ2SEQ, Start, make_run, settle
from tests.api.test_weights import capture_of
from tests.fakes import FakeModel

LAYERS, HEADS = 4, 3
N = 12  # tokens: with fewer than eight rows that see two keys there is no likeness to tell


@pytest.fixture
def run(client: TestClient) -> dict[str, Any]:
    """A finished run, its capture on disk."""
    made = make_run(client, "The cat saw the cat and the dog saw the cat")
    settle(client, made)
    return made


def address(run: dict[str, Any]) -> str:
    """Where the run's comparison of heads is."""
    return f"/api/runs/{run['id']}/similarity"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the engine's comparison is asked for from here on."""
    calls, compute = [], engine.similarity

    def recorded(*given: Any) -> engine.Similarity:
        calls.append(given)
        return compute(*given)

    monkeypatch.setattr(engine, "similarity", recorded)
    return calls


def test_the_answer_is_the_engines(client: TestClient, run: dict[str, Any]) -> None:
    capture = capture_of(client, run)
    expected = engine.similarity(capture, capture.sites[0])
    answer = client.get(address(run)).json()
    assert answer["site"] == "decoder.self"
    assert answer["rows"] == list(range(1, N))
    assert answer["order"] == expected.order
    assert sorted(answer["order"]) == list(range(LAYERS * HEADS))
    assert answer["positions"] == expected.positions.tolist()
    assert answer["duplicates"] == [list(pair) for pair in expected.duplicates]
    assert answer["duplicates_in_all"] == expected.duplicates_in_all


def test_distances_come_as_an_array(client: TestClient, run: dict[str, Any]) -> None:
    capture = capture_of(client, run)
    answer = client.get(address(run), params={"format": "npy"})
    assert answer.headers["content-type"] == "application/x-npy"
    distances = np.load(io.BytesIO(answer.content), allow_pickle=False)
    assert (distances.dtype, distances.shape) == (np.float32, (LAYERS * HEADS, LAYERS * HEADS))
    weights = torch.cat([capture.weights("decoder.self", layer, (0, HEADS), (0, N), (0, N)) for layer in range(LAYERS)])
    roots = weights[:, 1:].double().sqrt()
    dense = 1 - (roots[3] * roots[7]).sum(-1).mean()  # heads (1, 0) and (2, 1)
    assert distances[3, 7] ** 2 == pytest.approx(float(dense), abs=2e-6)  # float32 against float64


def test_an_answer_is_kept_by_its_tag(client: TestClient, run: dict[str, Any]) -> None:
    first = client.get(address(run))
    assert first.headers["cache-control"] == "private, no-cache"
    tag = {"If-None-Match": first.headers["etag"]}
    assert client.get(address(run), headers=tag).status_code == 304
    assert client.get(address(run), params={"format": "npy"}, headers=tag).status_code == 200


def test_a_site_must_be_one_of_the_runs(client: TestClient, run: dict[str, Any]) -> None:
    many = make_run(client, "one two three four", model=SEQ2SEQ, target_text="uno dos tres")
    settle(client, many)
    for site in ("encoder.self", "decoder.self", "decoder.cross"):
        assert client.get(address(many), params={"site": site}).json()["site"] == site
    assert client.get(address(many)).json()["error"]["details"]["fields"].keys() == {"site"}
    refused = client.get(address(run), params={"site": "encoder.self"})
    assert (refused.status_code, refused.json()["error"]["details"]["valid"]) == (422, "one of decoder.self")
    assert client.get(address({"id": "0" * 32})).status_code == 404


def test_each_site_has_its_own_answer(client: TestClient) -> None:
    long, short = "one two three four five six seven eight nine ten", "uno dos tres cuatro cinco seis siete ocho nueve"
    many = make_run(client, long, model=SEQ2SEQ, target_text=short)
    settle(client, many)
    capture = capture_of(client, many)
    for described in capture.sites:
        expected = engine.similarity(capture, described)
        answer = client.get(address(many), params={"site": described.site}).json()
        assert (answer["order"], answer["positions"]) == (expected.order, expected.positions.tolist())
        assert len(answer["rows"]) == len(expected.rows) > 0


def test_many_requests_at_once_compute_once(
    client: TestClient, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, all_here = counted(monkeypatch), threading.Barrier(4)
    service_of: SimilarityService = client.app.state.services.similarity  # type: ignore[attr-defined]
    stored = client.app.state.services.runs.read(run["id"])  # type: ignore[attr-defined]
    found: list[engine.Similarity] = []

    def ask() -> None:
        all_here.wait(10)
        found.append(service_of.read(stored, "decoder.self"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (len(calls), len(found)) == (1, 4)
    assert all(one is found[0] for one in found)


def test_a_failure_is_told_and_not_kept(
    client: TestClient, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = client.app.state.services.runs.read(run["id"])  # type: ignore[attr-defined]
    of = SimilarityService()
    with monkeypatch.context() as planted:
        planted.setattr(engine, "similarity", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            of.read(stored, "decoder.self")
    assert of.read(stored, "decoder.self").order


def test_nobody_waits_for_ever_for_what_failed(
    client: TestClient, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = client.app.state.services.runs.read(run["id"])  # type: ignore[attr-defined]
    of, compute, begun, go = SimilarityService(), engine.similarity, threading.Event(), threading.Event()
    ended: list[type] = []

    def fail_once(*given: Any) -> engine.Similarity:
        if begun.is_set():
            return compute(*given)
        begun.set()
        go.wait(5)
        raise ZeroDivisionError

    def ask() -> None:
        try:
            ended.append(type(of.read(stored, "decoder.self")))
        except ZeroDivisionError as error:
            ended.append(type(error))

    monkeypatch.setattr(engine, "similarity", fail_once)
    threads = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
    threads[0].start()
    assert begun.wait(5)
    threads[1].start()
    threads[1].join(0.2)  # it waits
    assert ended == []
    go.set()
    for thread in threads:
        thread.join(5)
    assert ZeroDivisionError in ended
    assert len(ended) == 2, "who waited is told of it too, or tries it again"


def test_different_comparisons_wait_for_each_other(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    of, compute, meeting, met = SimilarityService(), engine.similarity, threading.Barrier(2), []

    def noted(*given: Any) -> engine.Similarity:
        with suppress(threading.BrokenBarrierError):
            met.append(meeting.wait(0.5))  # the only way to see that nobody comes
        return compute(*given)

    monkeypatch.setattr(engine, "similarity", noted)
    runs = [make_run(client, f"the cat saw {word}") for word in ("one", "two")]
    stored = [client.app.state.services.runs.read(made["id"]) for made in runs]  # type: ignore[attr-defined]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(of.read, stored, ["decoder.self"] * 2))
    assert found[0] is not found[1]
    assert not met, "each takes all cores and its share of memory"


def test_only_those_asked_for_last_are_kept(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "KEPT", 2)
    of = SimilarityService()
    runs = [make_run(client, f"the cat saw {word}") for word in ("one", "two", "three")]
    stored = [client.app.state.services.runs.read(made["id"]) for made in runs]  # type: ignore[attr-defined]
    found = [of.read(stored[at], "decoder.self") for at in (0, 1, 0, 2)]
    assert found[2] is found[0]
    assert of.read(stored[0], "decoder.self") is found[0], "asked for after the second"
    assert of.read(stored[2], "decoder.self") is found[3]
    assert of.read(stored[1], "decoder.self") is not found[1]


def test_heads_of_a_layer_that_are_alike_are_a_warning_out_of_the_same_distances(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start(FakeModel(3, 7))
    run = make_run(client, "one two three four five six seven eight nine")
    calls = counted(monkeypatch)
    layers = f"/api/runs/{run['id']}/layers"
    plain = client.get(layers).json()
    assert (calls, [one for one in plain["warnings"]["all"] if one["code"] == "heads_alike"]) == ([], [])
    warned = client.get(layers, params={"alike": "true"}).json()["warnings"]
    near = client.get(address(run)).json()["duplicates"]
    assert client.get(layers, params={"alike": "true"}).json()["warnings"] == warned
    assert len(calls) == 1  # for all three
    expected = [
        {"code": "heads_alike", "layer": layer, "pairs": pairs}
        for layer in range(3)
        if (pairs := [[a % 7, b % 7, apart] for a, b, apart in near if a // 7 == b // 7 == layer])
    ]
    assert expected
    assert [one for one in warned["all"] if one["code"] == "heads_alike"] == expected
    assert [one for one in warned["first"] if one["code"] == "heads_alike"] == []
