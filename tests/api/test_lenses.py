"""Windows through lenses and over units: numbers made of the exact weights, in every format; refusals with why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient
from torch import Tensor

from app.services import lenses as service
from app.services.records import RunRecord
from models import lens_windows, lenses
from models.lens_windows import Axis
from models.units import Unit
from tests.api.conftest import SEQ2SEQ, Start, make_run, settle, small_model
from tests.api.test_weights import capture_of, npy, weights

# A product of another shape rounds scores, here up to 12, by another 1e-6 or two; a weight moves by a quarter of that.
ROUNDING = 1e-6
IN_FLOAT32 = 1e-6  # of each number: sixteen times its last bit
TEXT = "It is so. 北京 is big! Why not? The cat saw the cat. " * 2


@pytest.fixture
def run(client: TestClient) -> dict[str, Any]:
    """A run of several sentences, on disk: read from there twice, it is the same to the last bit."""
    made = make_run(client, TEXT)
    settle(client, made)
    return made


def exact(client: TestClient, run: dict[str, Any], layer: int = 1, head: int = 2) -> Tensor:
    """All weights of one head, in float64."""
    n = len(run["tokens"]["source"])
    return capture_of(client, run).weights("decoder.self", layer, (head, head + 1), (0, n), (0, n))[0].double()


def spans(client: TestClient, run: dict[str, Any], unit: str) -> list[tuple[int, int]]:
    found = client.get(f"/api/runs/{run['id']}/units", params={"unit": unit}).json()["units"]
    return [(one["first"], one["stop"]) for one in found]


def summed(dense: Tensor, units: list[tuple[int, int]]) -> list[list[float]]:
    """Keys summed, queries averaged."""
    return [[float(dense[slice(*rows), slice(*cols)].sum(-1).mean()) for cols in units] for rows in units]


def compare(found: list[list[float | None]], expected: list[list[float]], rel: float = IN_FLOAT32) -> None:
    """Masked cells are null, and nothing else is."""
    for i, (row, line) in enumerate(zip(found, expected, strict=True)):
        for j, (cell, value) in enumerate(zip(row, line, strict=True)):
            assert cell is None if j > i else cell == pytest.approx(value, rel=rel)


@pytest.mark.parametrize("unit", ["character", "word", "sentence"])
@pytest.mark.parametrize("lens", ["raw", "value", "output"])
def test_a_window_is_the_lens_summed_over_units(client: TestClient, run: dict[str, Any], lens: str, unit: str) -> None:
    dense, tensors = exact(client, run), capture_of(client, run).tensors()
    if lens != "raw":
        value, norms = tensors["decoder.self.1.value"][0], tensors["decoder.self.1.output_norms"][2]
        lengths = {"value": value.norm(dim=-1), "output": norms}
        dense = dense * lengths[lens].double()
    answer = weights(client, run, lens=lens, unit=unit)
    assert (answer["lens"], answer["unit"], answer["removed"]) == (lens, unit, None)
    compare(answer["weights"], summed(dense, spans(client, run, unit)))
    assert answer["unit_max"] == (1 if lens == "raw" else pytest.approx(float(lengths[lens].max())))
    assert answer["formula"].startswith("1/|I| · Σ(i ∈ I) Σ(j ∈ J) ")
    if lens == "raw":
        sums = [sum(cell or 0 for cell in row) for row in answer["weights"]]
        assert sums == pytest.approx([1] * len(sums))


@pytest.mark.parametrize(("layer", "head"), [(1, 2), (1, 1), (0, 2)], ids=["all", "much", "nothing"])
def test_without_the_sink_rows_are_whole_again_and_the_mass_is_told(
    client: TestClient, run: dict[str, Any], layer: int, head: int
) -> None:
    dense = exact(client, run, layer, head)
    answer = weights(client, run, lens="sink_free", layer=layer, head=head)
    assert answer["removed"] == pytest.approx(dense[:, 0].tolist(), abs=ROUNDING)
    for row, own in zip(answer["weights"][1:], dense[1:], strict=True):
        assert row[0] is None
        left = float(1 - own[0])
        assert abs(left - 0.01) > ROUNDING, "nothing is told of a row with less"
        if left < 0.01:
            assert set(row) == {None}
        else:
            known = [cell or 0 for cell in row[1:]]
            assert sum(known) == pytest.approx(1, abs=ROUNDING / left)
            assert known == pytest.approx((own[1:] / left).tolist(), abs=ROUNDING / left)
    assert set(answer["weights"][0]) == {None}
    assert answer["unit_max"] == 1


def test_the_mass_of_a_cell_without_the_sink_is_the_mean_of_its_rows(client: TestClient, run: dict[str, Any]) -> None:
    first = exact(client, run, 1, 1)[:, 0]
    answer = weights(client, run, lens="sink_free", head=1, max_cells=100)
    cells = first.split(answer["row_step"])
    assert len(cells[0]) > len(cells[-1]), "the last one is smaller"
    assert answer["removed"] == pytest.approx([float(cell.mean()) for cell in cells], abs=ROUNDING)


def test_over_heads_the_mass_is_their_mean_and_the_scale_that_of_the_largest(
    client: TestClient, run: dict[str, Any]
) -> None:
    each = [weights(client, run, lens="sink_free", head=head)["removed"] for head in range(3)]
    mean = weights(client, run, lens="sink_free", head="mean")["removed"]
    assert mean == pytest.approx(np.mean(each, axis=0).tolist(), rel=IN_FLOAT32)
    largest = [weights(client, run, lens="output", head=head)["unit_max"] for head in range(3)]
    assert weights(client, run, lens="output", head="mean")["unit_max"] == max(largest) > largest[0]


def rolled_out(client: TestClient, run: dict[str, Any], site: str, last: int) -> Tensor:
    """The rollout up to a layer from all weights, in float64."""
    capture = capture_of(client, run)
    described = capture.site(site)
    n, heads = described.query_len, (0, described.n_heads)
    expected = torch.eye(n, dtype=torch.float64)
    for layer in range(last + 1):
        mean = capture.weights(site, layer, heads, (0, n), (0, n)).double().mean(0)
        expected = (mean + torch.eye(n, dtype=torch.float64)) / 2 @ expected
    return expected


def test_rollout_is_kept_and_goes_on_from_the_layer_below(
    client: TestClient, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def noting(*place: Any, first: int, below: Tensor | None) -> Tensor:
        begun.append(first)
        return lenses.rollout(*place, first=first, below=below)

    monkeypatch.setattr(service, "rollout", noting)
    for layer in (1, 2, 2):
        answer = weights(client, run, lens="rollout", layer=layer)
    assert begun == [0, 2]
    n = len(answer["weights"])  # positive terms in each sum of the three products, of which each may lose its last bit
    compare(answer["weights"], rolled_out(client, run, "decoder.self", 2).tolist(), rel=3 * n * 2**-24)
    other_head = weights(client, run, lens="rollout", layer=2, head=0)
    assert other_head["weights"] == answer["weights"]
    for word in range(service.KEPT_ROLLOUTS + 1):
        weights(client, make_run(client, f"a {word}"), lens="rollout")
    assert len(client.app.state.services.lenses._rollouts) == service.KEPT_ROLLOUTS  # type: ignore[attr-defined]


def test_each_site_has_its_own_rollout(client: TestClient) -> None:
    run = make_run(client, "one two three four", model=SEQ2SEQ, target_text="uno dos tres cuatro")
    for layer in (1, 2):  # the second goes on from the first, at its own site
        for site in ("encoder.self", "decoder.self"):
            answer = weights(client, run, site=site, lens="rollout", layer=layer)
            seen = np.array(answer["weights"], dtype=float)  # None becomes NaN
            expected = rolled_out(client, run, site, layer).numpy()
            assert seen.shape == expected.shape == (5, 5)
            np.testing.assert_allclose(np.nan_to_num(seen), expected, rtol=0, atol=ROUNDING)


def test_units_are_what_ranges_and_steps_count(client: TestClient, run: dict[str, Any]) -> None:
    whole = weights(client, run, unit="sentence")["weights"]
    n = len(whole)
    part = weights(client, run, unit="sentence", rows=f"1:{n}", cols="0:2")
    assert (part["rows"], part["cols"]) == ([1, n], [0, 2])
    for given, row in zip(part["weights"], whole[1:], strict=True):
        assert given == pytest.approx(row[:2], abs=ROUNDING)
    query: dict[str, Any] = {"layer": 1, "head": 2, "unit": "sentence", "rows": f"0:{n + 1}"}
    answer = client.get(run["links"]["weights"], params=query)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"]["valid"] == f"start:stop with 0 <= start < stop <= {n}"
    pooled = weights(client, run, unit="word", max_cells=30, pool="mean", lens="output")
    assert pooled["row_step"] > 1
    assert sum(map(len, pooled["weights"])) <= 30


def test_npy_and_csv_hold_the_same(client: TestClient, run: dict[str, Any]) -> None:
    query: dict[str, Any] = {"layer": 1, "head": 2, "lens": "output", "unit": "word"}
    answer = weights(client, run, **query)
    binary = client.get(run["links"]["weights"], params={**query, "format": "npy"})
    expected = np.array([[np.nan if cell is None else cell for cell in row] for row in answer["weights"]], np.float32)
    np.testing.assert_array_equal(npy(binary.content), expected)
    assert float(binary.headers["x-everyhead-max"]) == answer["unit_max"]
    lines = client.get(run["links"]["weights"], params={**query, "format": "csv"}).text.splitlines()
    assert len(lines) == len(answer["weights"]) + 1
    assert [float(cell) for cell in lines[-1].split(",")[1:]] == answer["weights"][-1]


def test_a_plain_window_says_that_it_is_plain(client: TestClient, run: dict[str, Any]) -> None:
    plain = weights(client, run)
    assert {name: plain[name] for name in ("lens", "unit", "unit_max", "removed", "formula")} == {
        "lens": "raw",
        "unit": "token",
        "unit_max": 1.0,
        "removed": None,
        "formula": "A(i, j)",
    }


def test_over_heads_and_layers_each_head_comes_first(client: TestClient, run: dict[str, Any]) -> None:
    each = [weights(client, run, lens="output", unit="word", head=head)["weights"] for head in range(3)]
    mean = weights(client, run, lens="output", unit="word", head="mean")["weights"]
    for i in range(len(mean)):
        expected = [sum(one[i][j] for one in each) / 3 for j in range(i + 1)]
        assert mean[i][: i + 1] == pytest.approx(expected, rel=IN_FLOAT32)


@pytest.mark.parametrize(
    ("query", "formula"),
    [
        ({"head": "mean"}, "1/H · Σₕ Aₕ(i, j)"),
        ({"layer": "mean", "head": "max"}, "1/L · Σₗ maxₕ Aₗₕ(i, j)"),
        ({"layer": "max", "lens": "value", "unit": "word"}, "maxₗ 1/|I| · Σ(i ∈ I) Σ(j ∈ J) Aₗ(i, j) · ‖vₗ(j)‖"),
        (
            {"head": "mean", "lens": "rollout", "unit": "sentence"},
            "1/|I| · Σ(i ∈ I) Σ(j ∈ J) R(i, j), R = R(l) = ½ (Ā(l) + Id) · R(l − 1), R(−1) = Id, Ā = 1/H · Σₕ Aₕ",
        ),
    ],
)
def test_the_formula_is_of_what_was_asked_for(
    client: TestClient, run: dict[str, Any], query: dict[str, Any], formula: str
) -> None:
    assert weights(client, run, **query)["formula"] == formula


def test_a_unit_over_too_many_heads_does_not_blame_the_lens(
    client: TestClient, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lens_windows, "WEIGHTS_REDUCED", 5)
    answer = client.get(run["links"]["weights"], params={"layer": 1, "head": "mean", "unit": "word"})
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (422, "too_many_heads")
    assert answer.json()["error"]["message"].startswith("This window cannot be shown: over 3 heads")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"lens": "rollout", "layer": "mean"}, "ends at one layer"),
        ({"lens": "rollout", "layer": "max", "head": "max"}, "ends at one layer"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(
    client: TestClient, run: dict[str, Any], query: dict[str, Any], words: str
) -> None:
    answer = client.get(run["links"]["weights"], params={"layer": 1, "head": 2, **query})
    body = answer.json()["error"]
    assert (answer.status_code, body["code"], body["details"]["lens"]) == (422, "lens_refused", "rollout")
    assert words in body["message"]


def test_a_model_without_a_known_projection_and_a_long_text_are_refused(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start(small_model())
    other = make_run(client, "one two", model=SEQ2SEQ, target_text="three four")
    at: dict[str, Any] = {"layer": 0, "head": 0, "site": "decoder.cross"}
    refused = client.get(other["links"]["weights"], params={**at, "lens": "output"})
    assert (refused.status_code, "output projection" in refused.json()["error"]["message"]) == (422, True)
    refused = client.get(other["links"]["weights"], params={**at, "lens": "rollout"})
    assert (refused.status_code, "two texts" in refused.json()["error"]["message"]) == (422, True)
    assert client.get(other["links"]["weights"], params={**at, "lens": "value", "unit": "word"}).status_code == 200
    monkeypatch.setattr(lenses, "ROLLOUT_TOKENS", 5)
    refused = client.get(make_run(client, TEXT)["links"]["weights"], params={"layer": 0, "head": 0, "lens": "rollout"})
    assert (refused.status_code, "up to 5 tokens" in refused.json()["error"]["message"]) == (422, True)
    assert client.get(other["links"]["weights"], params={**at, "lens": "grad"}).status_code == 422


def test_a_planted_fault_is_seen(client: TestClient, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    dense = exact(client, run)
    whole = service.LensService._axis

    def shifted(own: service.LensService, record: RunRecord, _unit: Unit, side: service.Side) -> Axis:
        return whole(own, record, "character", side)

    monkeypatch.setattr(service.LensService, "_axis", shifted)
    answer = weights(client, run, unit="sentence")
    with pytest.raises((AssertionError, ValueError)):
        compare(answer["weights"], summed(dense, spans(client, run, "sentence")))
