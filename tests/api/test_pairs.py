"""Heads on marked pairs: the numbers are those of the exact windows, and what cannot be is refused with what can."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import PAIRS, SEQ2SEQ, make_run, settle

# A weight read as a pair comes out of another product than in a window: float32 rounding, on weights up to 1.
ROUNDING = 2e-6
LAYERS, HEADS = 4, 3


def heads(client: TestClient, run: dict[str, Any], pairs: str, **query: Any) -> dict[str, Any]:
    """Every head's figures on the pairs."""
    answer = client.get(run["links"]["heads"], params={"pairs": pairs, **query})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def from_window(client: TestClient, run: dict[str, Any], head: dict[str, Any], query: range, key: range) -> float:
    """The weight of a pair out of the head's own window; a masked cell counts as 0."""
    place = {"site": head["site"], "layer": head["layer"], "head": head["head"]}
    spans = {"rows": f"{query.start}:{query.stop}", "cols": f"{key.start}:{key.stop}"}
    rows = client.get(run["links"]["weights"], params={**place, **spans}).json()["weights"]
    return sum(sum(weight or 0.0 for weight in row) for row in rows) / len(query)


def test_every_head_has_the_weights_of_its_windows(client: TestClient, run: dict[str, Any]) -> None:
    found = heads(client, run, "5:2,3-4:0-1")
    assert found["pairs"] == [{"query": [5, 5], "key": [2, 2]}, {"query": [3, 4], "key": [0, 1]}]
    assert [(head["layer"], head["head"]) for head in found["heads"]] == [
        (layer, head) for layer in range(LAYERS) for head in range(HEADS)
    ]
    for head in found["heads"]:
        expected = [
            from_window(client, run, head, range(5, 6), range(2, 3)),
            from_window(client, run, head, range(3, 5), range(2)),
        ]
        assert head["pairs"]["weights"] == pytest.approx(expected, abs=ROUNDING)
        assert head["pairs"]["mean"] == pytest.approx(sum(expected) / 2, abs=ROUNDING)


def test_another_cell_is_not_taken_for_it(client: TestClient, run: dict[str, Any]) -> None:
    found = [head["pairs"]["weights"][0] for head in heads(client, run, "5:2")["heads"]]
    wrong = [from_window(client, run, head, range(5, 6), range(3, 4)) for head in heads(client, run, "5:2")["heads"]]
    assert max(abs(one - other) for one, other in zip(found, wrong, strict=True)) > 0.1


def test_chance_and_what_is_over_it(client: TestClient, run: dict[str, Any]) -> None:
    for head in heads(client, run, "5:2,3-4:0-1")["heads"]:
        figures = head["pairs"]
        chances = [1 / 6, (2 / 4 + 2 / 5) / 2]  # a causal query i sees i + 1 keys
        assert figures["chances"] == pytest.approx(chances)
        assert figures["chance"] == pytest.approx(sum(chances) / 2)
        over = (figures["mean"] - figures["chance"]) / (1 - figures["chance"])
        assert figures["corrected"] == pytest.approx(over)


def test_a_forced_weight_has_nothing_over_chance(client: TestClient, run: dict[str, Any]) -> None:
    for head in heads(client, run, "0:0")["heads"]:
        assert head["pairs"] == {"weights": [1.0], "chances": [1.0], "mean": 1.0, "chance": 1.0, "corrected": None}


def test_figures_come_along_unless_left_out(client: TestClient, run: dict[str, Any]) -> None:
    usual = client.get(run["links"]["heads"]).json()["heads"]
    both, alone = heads(client, run, "5:2"), heads(client, run, "5:2", figures="false")
    assert [{name: head[name] for name in usual[0]} for head in both["heads"]] == usual
    assert all(set(head) == {"site", "layer", "head", "pairs"} for head in alone["heads"])
    assert [head["pairs"] for head in both["heads"]] == [head["pairs"] for head in alone["heads"]]
    assert "pairs" not in usual[0]


def test_cross_attention_and_encoders(client: TestClient) -> None:
    run = make_run(client, "one two three four five", model=SEQ2SEQ, target_text="uno dos tres")
    pair = make_run(client, "one two three", model=PAIRS, text_pair="four five")
    settle(client, run)
    settle(client, pair)
    for site in ("encoder.self", "decoder.self", "decoder.cross"):
        for head in heads(client, run, "3:1", site=site)["heads"]:
            assert head["site"] == site
            expected = from_window(client, run, head, range(3, 4), range(1, 2))
            assert head["pairs"]["weights"] == pytest.approx([expected], abs=ROUNDING)
    ahead = heads(client, pair, "1:6")["heads"]  # an encoder sees what comes after
    assert ahead[0]["pairs"]["chance"] == pytest.approx(1 / len(pair["tokens"]["source"]))
    refused = client.get(run["links"]["heads"], params={"pairs": "3:1"})
    assert (refused.status_code, refused.json()["error"]["details"]["fields"].keys()) == (422, {"site"})


@pytest.mark.parametrize(
    ("pairs", "valid"),
    [
        ("2:3", "a key that its query may attend to, among 0 to 2"),
        ("6:0", "query:key, queries 0 to 5, keys 0 to 5, in a-b with a <= b"),
        ("5:0-6", "query:key, queries 0 to 5, keys 0 to 5, in a-b with a <= b"),
        ("5:4-2", "query:key, queries 0 to 5, keys 0 to 5, in a-b with a <= b"),
    ],
)
def test_what_the_run_does_not_have_is_out_of_range(
    client: TestClient, run: dict[str, Any], pairs: str, valid: str
) -> None:
    answer = client.get(run["links"]["heads"], params={"pairs": f"5:2,{pairs}"})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == "out_of_range"
    assert error["details"] == {"name": "pairs", "given": pairs, "valid": valid}


@pytest.mark.parametrize(
    "pairs", ["", "5", "5:", ":2", "5:2,", "5-:2", "-1:2", "5:2;3:1", "٥:2", ",".join(["5:2"] * 33)]
)
def test_what_cannot_be_read_is_said_in_words(client: TestClient, run: dict[str, Any], pairs: str) -> None:
    answer = client.get(run["links"]["heads"], params={"pairs": pairs})
    assert answer.status_code == 422
    assert answer.json()["error"]["details"]["fields"] == {"pairs": "1 to 32 pairs query:key, e.g. 29:12,30-31:5-6"}


def test_many_pairs_are_taken(client: TestClient, run: dict[str, Any]) -> None:
    assert len(heads(client, run, ",".join(["5:2"] * 32))["heads"][0]["pairs"]["weights"]) == 32


def test_an_answer_is_kept_by_its_tag(client: TestClient, run: dict[str, Any]) -> None:
    first = client.get(run["links"]["heads"], params={"pairs": "5:2"})
    tag = {"If-None-Match": first.headers["etag"]}
    assert client.get(run["links"]["heads"], params={"pairs": "5:2"}, headers=tag).status_code == 304
    assert client.get(run["links"]["heads"], params={"pairs": "5:3"}, headers=tag).status_code == 200


@pytest.mark.parametrize("pairs", ["0-999999998:0", "0:0-999999998", "999999998:0"])
def test_a_huge_span_is_refused_before_it_is_spread_out(client: TestClient, run: dict[str, Any], pairs: str) -> None:
    answer = client.get(run["links"]["heads"], params={"pairs": pairs})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "out_of_range")
