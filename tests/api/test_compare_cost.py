"""What comparing two heads takes: texts are aligned once, a few rows are read at a time, too much is refused."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.services import comparison
from models.alignment import Alignment, align
from models.capture import Capture
from models.protocol import Index, Window
from tests.api.conftest import make_run
from tests.api.test_compare import CAT, ask, assert_same, found, weights


def test_a_zoom_aligns_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*given: Any) -> Alignment:
        calls.append(given)
        return align(*given)

    monkeypatch.setattr(comparison, "align", counted)
    a, b = make_run(client, "zoom into this")["id"], make_run(client, "zoom into that")["id"]
    for rows in ("0:2", "1:3", "0:1"):
        found(client, a, b, rows=rows)
    found(client, b, a)
    assert len(calls) == 2  # one for either order


def test_who_asks_meanwhile_waits_for_the_same_alignment(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def slow(*given: Any) -> Alignment:
        calls.append(given)
        time.sleep(0.2)
        return align(*given)

    monkeypatch.setattr(comparison, "align", slow)
    a, b = make_run(client, "asked twice")["id"], make_run(client, "asked two times")["id"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda rows: found(client, a, b, rows=rows), ("0:2", "1:2", "0:1", "0:2")))
    assert len(calls) == 1
    assert answers[0] == answers[3]


def test_over_many_heads_fewer_rows_are_read_at_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """All heads of a layer, or a weight of each layer, are in memory together."""
    monkeypatch.setattr(comparison, "AT_ONCE", 400)
    run, held, read = make_run(client, "one two three four five six seven eight " * 5)["id"], [], Capture.window
    a, b = weights(client, run, layer="mean", head="mean"), weights(client, run, head="mean")

    def noted(own: Capture, site: str, layer: Index, head: Index, *rest: Any) -> Window:
        window = read(own, site, layer, head, *rest)
        held.append(window.weights.numel() * (4 if layer == "mean" else 3))
        return window

    monkeypatch.setattr(Capture, "window", noted)
    assert_same(found(client, run, run, layer_a="mean", head_a="mean", head_b="mean"), a - b)
    assert 400 // 2 < max(held) <= 400


def test_too_much_is_refused_with_the_number(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MOST_WEIGHTS", 2 * 49 * 3)
    run = make_run(client, CAT)["id"]
    assert ask(client, run, run, head_a="max", head_b="max").status_code == 200
    answer = ask(client, run, run, layer_a="mean", head_b="mean")
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "comparison_too_large")
    assert answer.json()["error"]["details"] == {"weights": 49 * 4 + 49 * 3, "limit": 294}
