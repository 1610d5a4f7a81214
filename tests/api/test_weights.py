"""Windows, overviews, heads and rows: the numbers are the capture's own, in every format."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from starlette.testclient import TestClient

from models.capture import Capture
from tests.api.conftest import Start, make_run, settle, small_model

LONG = "one two three four five six seven eight nine ten " * 6


def capture_of(client: TestClient, run: dict[str, Any]) -> Capture:
    """The capture behind a run."""
    capture: Capture = client.app.state.services.runs.read(run["id"])[1]  # type: ignore[attr-defined]
    return capture


def exact(client: TestClient, run: dict[str, Any], layer: int, head: int) -> torch.Tensor:
    """All weights of one head."""
    return capture_of(client, run).weights("decoder.self", layer, (head, head + 1), (0, 6), (0, 6))[0]


def npy(content: bytes) -> npt.NDArray[Any]:
    """An array from its file form."""
    array: npt.NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    return array


def weights(client: TestClient, run: dict[str, Any], **query: Any) -> dict[str, Any]:
    """A window as JSON."""
    answer = client.get(run["links"]["weights"], params={"layer": 1, "head": 2, **query})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_whole_head_is_exact_and_masked_cells_are_null(client: TestClient, run: dict[str, Any]) -> None:
    answer = weights(client, run)
    expected = exact(client, run, 1, 2)
    assert (answer["rows"], answer["cols"], answer["row_step"], answer["col_step"]) == ([0, 6], [0, 6], 1, 1)
    for query_pos, row in enumerate(answer["weights"]):
        assert row[: query_pos + 1] == expected[query_pos, : query_pos + 1].tolist()
        assert row[query_pos + 1 :] == [None] * (5 - query_pos)


def test_a_part_of_a_head(client: TestClient, run: dict[str, Any]) -> None:
    part, whole = weights(client, run, rows="2:5", cols="1:3"), weights(client, run)
    for given, row in zip(part["weights"], whole["weights"][2:5], strict=True):
        assert given == pytest.approx(row[1:3], abs=1e-6)  # products of other sizes round differently


def test_the_formats_agree(client: TestClient, run: dict[str, Any]) -> None:
    whole = weights(client, run)["weights"]
    query = {"layer": 1, "head": 2}
    binary = client.get(run["links"]["weights"], params={**query, "format": "npy"})
    array = npy(binary.content)
    assert array.dtype == np.float32
    assert [[None if math.isnan(value) else value for value in row] for row in array.tolist()] == whole
    text = client.get(run["links"]["weights"], params={**query, "format": "csv"})
    lines = [line.split(",") for line in text.text.splitlines()]
    assert lines[0] == ["query/key", "0", "1", "2", "3", "4", "5"]
    assert [[float(cell) if cell else None for cell in line[1:]] for line in lines[1:]] == whole


@pytest.mark.parametrize("pool", ["max", "mean"])
def test_a_pooled_window_says_its_steps(client: TestClient, pool: str) -> None:
    run = make_run(client, LONG)
    n = run["sites"][0]["query_len"]
    answer = weights(client, run, max_cells=100, pool=pool)
    step = answer["row_step"]
    assert step == answer["col_step"] == math.ceil(n / 10)
    whole = torch.tensor(
        npy(client.get(run["links"]["weights"], params={"layer": 1, "head": 2, "format": "npy"}).content)
    )
    cell = whole[step : 2 * step, :step].double()
    told = pytest.approx(float(cell.max() if pool == "max" else cell.mean()), abs=1e-7)  # float32 has 6e-8 below 1
    assert answer["weights"][1][0] == told
    assert answer["weights"][0][1] is None, "a wholly masked cell"


def test_mean_and_max_over_heads(client: TestClient, run: dict[str, Any]) -> None:
    heads = [weights(client, run, head=head, rows="5:6")["weights"][0] for head in range(3)]
    mean = weights(client, run, head="mean", rows="5:6")["weights"][0]
    most = weights(client, run, head="max", rows="5:6")["weights"][0]
    # Not to the last bit: a mean or a product of another size is rounded otherwise.
    assert mean == pytest.approx([sum(column) / 3 for column in zip(*heads, strict=True)], abs=1e-6)
    assert most == pytest.approx([max(column) for column in zip(*heads, strict=True)], abs=1e-6)


@pytest.mark.parametrize("pool", ["max", "mean"])
def test_the_overview_is_square_root_coded(client: TestClient, run: dict[str, Any], pool: str) -> None:
    answer = client.get(run["links"]["overview"], params={"pool": pool})
    assert (answer.headers["content-type"], answer.headers["x-everyhead-pool"]) == ("application/x-npy", pool)
    array = npy(answer.content)
    assert array.dtype == np.uint8
    assert array.shape == (4, 3, 6, 6)
    expected = capture_of(client, run).overview("decoder.self", "max" if pool == "max" else "mean")
    # Half a step of 1/255 under the square root, at most 1 there: (w + 1/510)² - w² <= 1/255 + 1/510².
    assert np.abs((array.astype(float) / 255) ** 2 - expected.numpy()).max() <= 1 / 255 + 1 / 510**2


def test_every_head_has_its_figures(client: TestClient) -> None:
    run = make_run(client, LONG)
    heads = client.get(run["links"]["heads"]).json()["heads"]
    assert [(head["layer"], head["head"]) for head in heads] == [(i, j) for i in range(4) for j in range(3)]
    assert {"score", "chance", "corrected", "rows"} == set(heads[0]["scores"]["previous"])
    assert heads[0]["scores"]["previous"]["score"] > 0.8, "head 0 of the fake looks at the previous token"


@pytest.mark.parametrize("threshold", ["2", "-0.1", "nan", "inf", "abc", "", "0_1", "１"])
def test_a_threshold_is_told_its_whole_range(client: TestClient, run: dict[str, Any], threshold: str) -> None:
    answer = client.get(run["links"]["heads"], params={"threshold": threshold})
    assert answer.status_code == 422
    assert answer.json()["error"]["details"]["fields"] == {"threshold": "a number from 0 to 1"}
    for good in ("0", "1", "0.3", ".5"):
        assert client.get(run["links"]["heads"], params={"threshold": good}).json()["threshold"] == float(good)


def test_figures_that_cannot_be_told_are_null(client: TestClient, run: dict[str, Any]) -> None:
    head = client.get(run["links"]["heads"]).json()["heads"][0]
    assert set(head["scores"].values()) == {None}
    assert (head["entropy"], head["own_sink"], head["without"]["first"]["removed"]) == (None, None, None)
    assert (head["role"]["name"], head["role"]["sinks"]) == (None, [])


def test_rows_of_one_head(client: TestClient, run: dict[str, Any]) -> None:
    rows = client.get(f"{run['links']['self']}/rows", params={"layer": 0, "head": 1}).json()
    expected = exact(client, run, 0, 1)
    assert rows["self"] == pytest.approx(expected.diagonal().tolist())
    assert rows["previous"][0] is None, "the first row has no previous key"
    assert rows["top_key"] == expected.nan_to_num(0).argmax(-1).tolist()
    assert rows["first"] == pytest.approx(expected[:, 0].tolist(), abs=1e-6)  # from the pass, not read back
    assert min(rows["row_sum"]) >= 1.0, "the largest exponential of a row is 1"


def test_rows_without_a_meaning_are_null(
    client: TestClient, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = capture_of(client, run).row_stats("decoder.self")
    ask = {"layer": 0, "head": 1}
    zero = {name: values.clone() for name, values in known.items()}
    zero["previous"][..., 0] = 0.0  # as the engine has it
    zero["top_key"][..., 2] = -1  # a row that may attend to nothing
    monkeypatch.setattr(Capture, "row_stats", lambda *_: zero)
    rows = client.get(f"{run['links']['self']}/rows", params=ask).json()
    assert (rows["previous"][0], rows["top_key"][2]) == (None, None)
    cross = {name: values for name, values in known.items() if name not in ("self", "previous", "distance")}
    monkeypatch.setattr(Capture, "row_stats", lambda *_: cross)
    rows = client.get(f"{run['links']['self']}/rows", params=ask).json()
    assert rows["self"] == rows["previous"] == rows["distance"] == [None] * 6
    assert None not in rows["entropy"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_that_json_lacks_is_sent(client: TestClient, monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    run = make_run(client)
    monkeypatch.setattr("app.routes.heads.heads_of", lambda *_: [{"scores": {"previous": {"score": value}}}])
    content = client.get(run["links"]["heads"]).text
    assert json.loads(content)["heads"] == [{"scores": {"previous": {"score": None}}}]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"layer": 4}, "layer"),
        ({"layer": -1}, "layer"),
        ({"head": 3}, "head"),
        ({"rows": "0:7"}, "rows"),
        ({"rows": "3:3"}, "rows"),
        ({"cols": "5:2"}, "cols"),
        ({"site": "encoder.self"}, "site"),
    ],
)
def test_what_is_out_of_range_names_the_range(
    client: TestClient, run: dict[str, Any], query: dict[str, Any], name: str
) -> None:
    answer = client.get(run["links"]["weights"], params={"layer": 0, "head": 0, **query})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["details"]["name"]) == (422, "out_of_range", name)
    assert error["details"]["valid"]


WHICH = "a number from 0, or mean or max"
SPAN = "start:stop, e.g. 0:64"


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({"layer": "abc"}, {"layer": WHICH}),
        ({"layer": "0_1", "head": "+1"}, {"layer": WHICH, "head": WHICH}),
        ({"head": "\u0661"}, {"head": WHICH}),
        ({"rows": "a:b"}, {"rows": SPAN}),
        ({"rows": "3:", "cols": ":4"}, {"rows": SPAN, "cols": SPAN}),
        ({"cols": "\u0660:\u0661"}, {"cols": SPAN}),
        ({"max_cells": "1_0"}, {"max_cells": "a number from 1 to 65536"}),
        ({"max_cells": 65_537}, {"max_cells": "a number from 1 to 65536"}),
        ({"max_cells": 0}, {"max_cells": "a number from 1 to 65536"}),
        ({"pool": "sum"}, {"pool": "max or mean"}),
        ({"format": "png"}, {"format": "json, npy or csv"}),
        ({"site": "x" * 41}, {"site": "text of at most 40 characters"}),
    ],
)
def test_what_cannot_be_read_says_what_to_send(
    client: TestClient, run: dict[str, Any], query: dict[str, Any], fields: dict[str, str]
) -> None:
    answer = client.get(run["links"]["weights"], params={"layer": 0, "head": 0, **query})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "invalid_request")
    assert error["details"]["fields"] == fields


def test_what_is_missing_is_named(client: TestClient, run: dict[str, Any]) -> None:
    error = client.get(f"{run['links']['self']}/rows", params={"head": "first"}).json()["error"]
    assert error["details"]["fields"] == {"layer": "missing; it is required", "head": "a number from 0"}


@pytest.mark.parametrize(
    "call", ["weights?layer=9&head=0", "weights?layer=0&head=mean&rows=0:99", "rows?layer=0&head=9", "heads?site=x"]
)
def test_what_is_out_of_range_is_never_unchanged(client: TestClient, run: dict[str, Any], call: str) -> None:
    answer = client.get(f"{run['links']['self']}/{call}", headers={"If-None-Match": "*"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "out_of_range")


@pytest.mark.parametrize("call", ["", "/heads", "/overview", "/weights?layer=0&head=0", "/rows?layer=0&head=0"])
def test_an_unchanged_answer_is_not_sent_again(client: TestClient, run: dict[str, Any], call: str) -> None:
    settle(client, run)
    here = f"{run['links']['self']}{call}"
    first = client.get(here)
    assert first.headers["cache-control"] == "private, no-cache"
    again = client.get(here, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    other = client.get(here, headers={"If-None-Match": 'W/"other"'})
    assert other.status_code == 200


def test_other_windows_and_other_runs_have_other_tags(client: TestClient, run: dict[str, Any]) -> None:
    other = make_run(client, LONG)
    calls = [
        (run, "layer=0&head=0"),
        (run, "layer=0&head=1"),
        (run, "layer=0&head=0&pool=mean"),
        (other, "layer=0&head=0"),
    ]
    assert len({client.get(f"{one['links']['weights']}?{query}").headers["etag"] for one, query in calls}) == len(calls)


def test_answers_are_compressed(client: TestClient) -> None:
    run = make_run(client, LONG)
    for call in ("", "/heads", "/overview", "/weights?layer=0&head=0&format=npy"):
        answer = client.get(run["links"]["self"] + call, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip", call


def test_windows_of_a_long_run_stay_bounded(start: Start) -> None:
    client = start(small_model())
    run = make_run(client, "word " * 600)
    answer = weights(client, run)
    assert answer["row_step"] == 3, "601 tokens in at most 256 × 256 cells"
    assert sum(len(row) for row in answer["weights"]) <= 65_536
