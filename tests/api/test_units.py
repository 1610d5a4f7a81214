"""The units of a run: both sides, in both scripts, kept while they are asked for, refused where there are none."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.services.lenses import KEPT_UNITS
from models.units import Segmenter, TextUnit
from tests.api.conftest import PAIRS, SEQ2SEQ, make_run, settle


def units(client: TestClient, run: dict[str, Any], unit: str, **query: Any) -> list[dict[str, Any]]:
    """The units of a run, as JSON."""
    answer = client.get(f"/api/runs/{run['id']}/units", params={"unit": unit, **query})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert (body["unit"], body["side"]) == (unit, query.get("side", "source"))
    return list(body["units"])


def texts(found: list[dict[str, Any]]) -> list[str]:
    return [one["text"] for one in found]


def test_every_token_is_in_one_unit_and_texts_are_the_users(client: TestClient) -> None:
    run = make_run(client, "It isn't 3.14. 我爱北京天安门。")
    n_tokens = len(run["tokens"]["source"])
    for unit in ("token", "character", "word", "sentence"):
        found = units(client, run, unit)
        assert [one["index"] for one in found] == list(range(len(found)))
        assert [i for one in found for i in range(one["first"], one["stop"])] == list(range(n_tokens))
    assert texts(units(client, run, "sentence")) == ["<s>", "It isn't 3.14. ", "我爱北京天安门。"]
    words = units(client, run, "word")
    assert [text for text in texts(words) if text.strip()][-5:] == ["我", "爱", "北京", "天安门", "。"]
    assert (words[0]["special"], words[0]["start"], words[0]["end"]) == (True, 0, 0)
    beijing = next(one for one in words if one["text"] == "北京")
    assert beijing["end"] - beijing["start"] == 2
    assert beijing["stop"] - beijing["first"] == 6  # three bytes each


def test_pairs_and_targets_are_texts_of_their_own(client: TestClient) -> None:
    pair = make_run(client, "no end", model=PAIRS, text_pair="and on")
    of_both = units(client, pair, "sentence")
    assert texts(of_both) == ["<s>", "no end", "</s>", "and on", "</s>"]
    assert [(one["segment"], one["start"]) for one in of_both] == [(0, 0), (0, 0), (0, 6), (1, 0), (1, 6)]
    written = make_run(client, "one two", model=SEQ2SEQ, target_text="three. Four")
    assert texts(units(client, written, "sentence", side="target")) == ["<s>", "three.", " Four"]
    assert texts(units(client, written, "sentence")) == ["<s>", "one two"]


def test_what_is_not_there_is_refused(client: TestClient, run: dict[str, Any]) -> None:
    answer = client.get(f"/api/runs/{run['id']}/units", params={"unit": "word", "side": "target"})
    assert (answer.status_code, answer.json()["error"]["details"]["valid"]) == (422, "source")
    answer = client.get(f"/api/runs/{run['id']}/units", params={"unit": "paragraph"})
    assert (answer.status_code, "unit" in answer.json()["error"]["details"]["fields"]) == (422, True)
    assert client.get(f"/api/runs/{run['id']}/units").status_code == 422
    assert client.get(f"/api/runs/{'0' * 64}/units?unit=word").status_code == 404


def test_many_requests_at_once_cut_a_text_once(
    client: TestClient, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, all_here, cut = [], threading.Barrier(3), Segmenter.units

    def counted(*given: Any) -> tuple[TextUnit, ...]:
        calls.append(given)
        time.sleep(0.1)
        return cut(*given)

    monkeypatch.setattr(Segmenter, "units", counted)
    lenses = client.app.state.services.lenses  # type: ignore[attr-defined]
    record = client.app.state.services.runs.read(run["id"])[0]  # type: ignore[attr-defined]

    def ask(_: int) -> tuple[TextUnit, ...]:
        all_here.wait(10)
        found: tuple[TextUnit, ...] = lenses.units(record, "word", "source")
        return found

    with ThreadPoolExecutor(3) as threads:
        first, *others = threads.map(ask, range(3))
    assert len(calls) == 1
    assert all(other is first for other in others)
    address = f"/api/runs/{run['id']}/units?unit=sentence"
    tag = client.get(address).headers["etag"]
    lenses.forget(run["id"])
    assert client.get(address, headers={"If-None-Match": tag}).status_code == 304
    assert len(calls) == 2  # what the client has is not cut again


def test_units_are_tagged_and_few_are_kept(client: TestClient, run: dict[str, Any]) -> None:
    address = f"/api/runs/{run['id']}/units?unit=word"
    first = client.get(address)
    assert client.get(address, headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    kept = client.app.state.services.lenses._units  # type: ignore[attr-defined]
    for number in range(KEPT_UNITS + 3):
        other = make_run(client, f"text {number}")
        settle(client, other)
        units(client, other, "word")
    assert len(kept) == KEPT_UNITS
    assert client.get(address).content == first.content
