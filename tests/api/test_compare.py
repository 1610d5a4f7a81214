"""Two heads compared over the API: against a dense computation from the runs' own weights, and what is refused."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.testclient import TestClient

from app.services import comparison
from models.capture import Capture
from models.protocol import Window
from models.tokens import Token
from tests.api.conftest import MODEL, PAIRS, SEQ2SEQ, Start, make_run, small_model

Matrix = NDArray[np.float64]
ROUNDING = 1e-6  # float32 weights of windows of other sizes
CAT, DOG = "the cat saw the dog again", "a bird and the dog again saw"


def ask(client: TestClient, a: str, b: str, **query: int | str) -> Any:  # noqa: ANN401  the answer's type is the client's
    given: dict[str, int | str] = {"a": a, "b": b, "layer_a": 0, "head_a": 0, "layer_b": 0, "head_b": 0, **query}
    return client.get("/api/compare", params=given)


def found(client: TestClient, a: str, b: str, **query: int | str) -> dict[str, Any]:
    answer = ask(client, a, b, **query)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def weights(client: TestClient, run: str, **query: int | str) -> Matrix:
    """The whole matrix of one head, NaN where masked."""
    given: dict[str, int | str] = {"layer": 0, "head": 0, **query}
    answer = client.get(f"/api/runs/{run}/weights", params=given).json()
    assert (answer["row_step"], answer["col_step"]) == (1, 1)
    return np.array(answer["weights"], dtype=float)  # None becomes NaN


def dense(matrix: Matrix, side: str, answer: dict[str, Any]) -> Matrix:
    """Keys summed, queries averaged, one cell after the other."""
    out = np.full((len(answer["axis_rows"]), len(answer["axis_cols"])), np.nan)
    for row, down in enumerate(answer["axis_rows"]):
        for col, across in enumerate(answer["axis_cols"]):
            block = matrix[slice(*down[side]), slice(*across[side])]
            if not np.isnan(block).all():
                out[row, col] = np.nansum(block) / (down[side][1] - down[side][0])
    return out


def expected(client: TestClient, answer: dict[str, Any], a: Matrix, b: Matrix) -> Matrix:
    return dense(a, "a", answer) - dense(b, "b", answer)


def assert_largest(answer: dict[str, Any], a: Matrix, b: Matrix) -> None:
    """Exactly the largest changes of the range, with both weights."""
    (top, bottom), (left, right) = answer["rows"], answer["cols"]
    ours, theirs = dense(a, "a", answer), dense(b, "b", answer)
    inside = np.abs(ours - theirs)[top:bottom, left:right]
    sizes = np.sort(inside[~np.isnan(inside) & (inside > 0)])[::-1][:20]
    assert [abs(one["difference"]) for one in answer["largest"]] == pytest.approx(sizes.tolist(), abs=ROUNDING)
    assert len({(one["row"], one["col"]) for one in answer["largest"]}) == len(sizes)
    for one in answer["largest"]:
        assert one["a"] == pytest.approx(ours[one["row"], one["col"]], abs=ROUNDING)
        assert one["b"] == pytest.approx(theirs[one["row"], one["col"]], abs=ROUNDING)
        assert one["difference"] == one["a"] - one["b"]


def assert_same(answer: dict[str, Any], reference: Matrix) -> None:
    np.testing.assert_allclose(np.array(answer["difference"], dtype=float), reference, rtol=0, atol=ROUNDING)


def test_two_heads_of_one_run(client: TestClient) -> None:
    run = make_run(client, CAT)["id"]
    answer = found(client, run, run, layer_a=1, head_a=2, layer_b=3, head_b=0)
    a, b = weights(client, run, layer=1, head=2), weights(client, run, layer=3, head=0)
    assert (answer["aligned"], answer["by"], answer["reason"]) == (True, "characters", None)
    assert [one["text"] for one in answer["axis_rows"]] == ["<s>", "the", " cat", " saw", " the", " dog", " again"]
    assert_same(answer, a - b)
    assert_largest(answer, a, b)


def test_a_head_differs_from_itself_nowhere(client: TestClient) -> None:
    run = make_run(client, CAT)["id"]
    answer = found(client, run, run)
    assert np.nanmax(np.abs(np.array(answer["difference"], dtype=float))) == 0
    assert answer["largest"] == []


def test_two_texts_on_one_model(client: TestClient) -> None:
    a, b = make_run(client, CAT)["id"], make_run(client, DOG)["id"]
    answer = found(client, a, b)
    assert answer["by"] == "tokens"
    assert [one["text"] for one in answer["axis_rows"]] == ["<s>", " the", " dog", " again"]
    assert (answer["axis_rows"][1]["a"], answer["axis_rows"][1]["b"]) == ([4, 5], [4, 5])
    assert answer["axis_rows"][0]["special"]
    matrices = weights(client, a), weights(client, b)
    assert_same(answer, expected(client, answer, *matrices))
    assert_largest(answer, *matrices)


def test_one_text_on_two_models_is_hidden_where_either_is(client: TestClient) -> None:
    a, b = make_run(client, CAT)["id"], make_run(client, CAT, model=PAIRS)["id"]
    answer = found(client, a, b, layer_b=2, head_b=5)
    assert answer["by"] == "characters"
    matrices = weights(client, a), weights(client, b, layer=2, head=5)
    assert_same(answer, expected(client, answer, *matrices))
    assert_largest(answer, *matrices)
    hidden = np.isnan(np.array(answer["difference"], dtype=float))
    assert (hidden == (np.triu(np.ones(hidden.shape), 1) > 0)).all()  # the encoder sees all, the decoder does not


def test_other_cuts_of_one_text_are_summed_and_averaged(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start()
    words = make_run(client, CAT)["id"]
    monkeypatch.setattr("tests.fakes.fake_tokens", letters)
    pieces = make_run(client, CAT, model=PAIRS)["id"]
    answer = found(client, words, pieces)
    assert [one["text"] for one in answer["axis_rows"]] == ["the", " cat", " saw", " the", " dog", " again"]
    assert answer["axis_rows"][1] == {"text": " cat", "special": False, "a": [2, 3], "b": [2, 4]}
    matrices = weights(client, words), weights(client, pieces)
    assert_same(answer, expected(client, answer, *matrices))
    assert_largest(answer, *matrices)
    assert np.nansum(dense(matrices[1], "b", answer), axis=1) == pytest.approx(1, abs=ROUNDING)


def letters(text: str, *, add_special_tokens: bool = True) -> list[Token]:
    """Another tokenizer: pieces of two letters, cut anew at each space."""
    edges = sorted({0, len(text), *(at for at, one in enumerate(text) if one == " ")})
    spans = [(start, min(start + 2, stop)) for first, stop in pairwise(edges) for start in range(first, stop, 2)]
    return [
        Token(i, 2 + i, text[start:stop], text[start:stop], start, stop, False, i, 1, 1, None)
        for i, (start, stop) in enumerate(spans)
    ]


@pytest.mark.parametrize("name", ["mean", "max"])
def test_over_heads_and_layers(client: TestClient, name: str) -> None:
    run = make_run(client, CAT)["id"]
    answer = found(client, run, run, head_a=name, layer_b=name, head_b="mean")
    a, b = weights(client, run, head=name), weights(client, run, layer=name, head="mean")
    assert_same(answer, a - b)
    assert_largest(answer, a, b)


@pytest.mark.parametrize(("rows", "cols"), [(None, None), ("3:40", "6:31"), ("7:8", None), ("0:45", "44:45")])
def test_large_ones_are_pooled_in_aligned_cells(
    client: TestClient, rows: str | None, cols: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts of a few rows, whatever the cells: nothing may hang on where a part ends."""
    monkeypatch.setattr(comparison, "AT_ONCE", 200)
    sizes, window = [], Capture.window

    def noted(*given: Any) -> Window:
        sizes.append(given[6])
        return window(*given)

    monkeypatch.setattr(Capture, "window", noted)
    run = make_run(client, "one two three four five six seven eight nine ten eleven " * 4)["id"]
    named = {name: value for name, value in (("rows", rows), ("cols", cols)) if value}
    answer = found(client, run, run, layer_b=2, head_b=1, max_cells=100, **named)
    assert max(sizes) <= 200
    assert rows or max(sizes) > 200 // 4  # of the four layers only one is read
    a, b = weights(client, run), weights(client, run, layer=2, head=1)
    assert_largest(answer, a, b)
    difference, steps = a - b, (answer["row_step"], answer["col_step"])
    spans = [list(map(int, (given or f"0:{len(a)}").split(":"))) for given in (rows, cols)]
    assert [answer["rows"], answer["cols"]] == spans
    reference = [
        [
            mean(
                difference[max(top, spans[0][0]) : top + steps[0], max(left, spans[1][0]) : left + steps[1]],
                spans,
                top,
                left,
            )
            for left in range(spans[1][0] // steps[1] * steps[1], spans[1][1], steps[1])
        ]
        for top in range(spans[0][0] // steps[0] * steps[0], spans[0][1], steps[0])
    ]
    assert_same(answer, np.array(reference))
    assert len(reference) * len(reference[0]) <= 100
    if rows is None:
        assert steps[0] > 1


def test_a_pooled_cell_is_the_mean_of_what_both_see(client: TestClient) -> None:
    text = "one two three four five six seven"
    all_seen, causal = make_run(client, text, model=PAIRS)["id"], make_run(client, text)["id"]
    answer = found(client, all_seen, causal, max_cells=16)
    difference = weights(client, all_seen)[:8, :8] - weights(client, causal)
    blocks = [[difference[top : top + 2, left : left + 2] for left in range(0, 8, 2)] for top in range(0, 8, 2)]
    assert_same(answer, np.array([[mean(block, [[0, 8], [0, 8]], 0, 0) for block in line] for line in blocks]))


def mean(block: Matrix, spans: list[list[int]], top: int, left: int) -> float:
    """Mean of what is visible of one cell, clipped to the range."""
    block = block[: spans[0][1] - max(top, spans[0][0]), : spans[1][1] - max(left, spans[1][0])]
    return math.nan if np.isnan(block).all() else float(np.nanmean(block))


def test_cross_attention_compares_with_cross_attention_alone(client: TestClient) -> None:
    run = make_run(client, CAT, model=SEQ2SEQ, target_text="the dog")["id"]
    answer = found(client, run, run, site_a="decoder.cross", site_b="encoder.self")
    assert (answer["aligned"], answer["reason"], answer["by"], answer["difference"]) == (False, "sites", None, None)
    assert (answer["axis_rows"], answer["largest"]) == ([], [])
    answer = found(client, run, run, site_a="decoder.cross", site_b="decoder.cross", layer_b=2)
    assert [len(answer["axis_rows"]), len(answer["axis_cols"])] == [3, 7]
    site = {"site": "decoder.cross"}
    assert_same(answer, weights(client, run, **site) - weights(client, run, layer=2, **site))


def test_axes_fit_by_characters_only_where_both_do(client: TestClient) -> None:
    targets = ("the dog", "a dog")
    a, b = (make_run(client, CAT, model=SEQ2SEQ, target_text=target)["id"] for target in targets)
    cross = {"site_a": "decoder.cross", "site_b": "decoder.cross"}
    answer = found(client, a, b, **cross)
    assert [[one["text"] for one in answer[axis]] for axis in ("axis_rows", "axis_cols")] == [
        ["<s>", " dog"],
        ["<s>", "the", " cat", " saw", " the", " dog", " again"],
    ]
    assert answer["by"] == "tokens"
    assert found(client, a, a, **cross)["by"] == "characters"


def test_a_decoder_beside_an_encoder_is_read_on_its_target(client: TestClient) -> None:
    run = make_run(client, CAT, model=SEQ2SEQ, target_text="the dog")["id"]
    answer = found(client, run, run, site_a="decoder.self", site_b="encoder.self")
    assert [one["text"] for one in answer["axis_rows"]] == ["<s>", "the", " dog"]
    assert [one["a"] for one in answer["axis_rows"]] == [[0, 1], [1, 2], [2, 3]]
    assert answer["axis_rows"][2]["b"] == [5, 6]


def test_texts_without_an_equal_token_say_so(client: TestClient) -> None:
    options = {"add_special_tokens": False}
    a, b = make_run(client, "one two", **options)["id"], make_run(client, "three four", **options)["id"]
    answer = found(client, a, b, rows="0:5")
    assert (answer["aligned"], answer["reason"]) == (False, "nothing_in_common")


def test_what_is_not_there_is_named_as_it_was_given(client: TestClient) -> None:
    run, both = make_run(client, CAT)["id"], make_run(client, CAT, model=SEQ2SEQ)["id"]
    for query, name in (
        ({"layer_a": 4}, "layer_a"),
        ({"head_b": 3}, "head_b"),
        ({"site_b": "encoder.self"}, "site_b"),
        ({"rows": "0:8"}, "rows"),
        ({"cols": "5:5"}, "cols"),
    ):
        answer = ask(client, run, run, **query)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "out_of_range")
        assert answer.json()["error"]["details"]["name"] == name
    answer = ask(client, run, both)
    assert (answer.status_code, list(answer.json()["error"]["details"]["fields"])) == (422, ["site_b"])
    answer = ask(client, run, "0" * 32)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "run_gone")
    assert answer.json()["error"]["details"] == {"parameter": "b"}


def test_an_unfinished_run_is_refused(start: Start) -> None:
    client = start(small_model(delay_s=0.2))
    run = client.post("/api/runs", json={"model": MODEL, "text": CAT}, headers={"Prefer": "respond-async"}).json()["id"]
    answer = ask(client, run, run)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_not_finished")
    assert answer.json()["error"]["details"]["parameter"] == "a"


def test_an_answer_may_be_kept_until_a_run_is_made_again(client: TestClient) -> None:
    a, b = make_run(client, CAT)["id"], make_run(client, DOG)["id"]
    first = ask(client, a, b)
    tag = {"If-None-Match": first.headers["etag"]}
    address = str(first.request.url)
    assert client.get(address, headers=tag).status_code == 304
    assert client.get(address.replace("head_b=0", "head_b=1"), headers=tag).status_code == 200
    client.delete(f"/api/runs/{b}")
    assert client.get(address, headers=tag).status_code == 404
    assert make_run(client, DOG)["id"] == b
    assert client.get(address, headers=tag).status_code == 200
