"""Heads and layers as the API answers them: roles by the threshold asked for, bins of each site, each layer's mask."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from models.attention import causal_mask, sliding_window_mask
from models.capture import Capture
from models.masks import MaskLayout
from tests.api.conftest import SEQ2SEQ, make_run

N_SOURCE, N_TARGET, WINDOW = 15, 12, 3
TEXT = "word " * (N_SOURCE - 2) + "end"


def heads_at(client: TestClient, run: dict[str, Any], threshold: float) -> list[dict[str, Any]]:
    answer = client.get(run["links"]["heads"], params={"threshold": threshold}).json()
    heads: list[dict[str, Any]] = answer["heads"]
    return heads


def layers_of(client: TestClient, run: dict[str, Any]) -> dict[str, Any]:
    answer = client.get(f"{run['links']['self']}/layers")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_role_is_given_from_the_threshold_that_was_asked_for(client: TestClient) -> None:
    run = make_run(client, "the cat saw the cat and the dog saw the cat, and so on. " * 3)
    names = []
    for threshold in (0.3, 0.99):
        roles = [head["role"] for head in heads_at(client, run, threshold)]
        told = [role for role in roles if role["corrected"] is not None]
        assert [role["name"] for role in told] == [
            role["best"] if role["corrected"] >= threshold else role["otherwise"] for role in told
        ]
        names.append([role["name"] for role in roles])
    assert names[0] != names[1], "some score lies between"


def test_the_bins_of_a_site_reach_just_over_its_longest_distance(client: TestClient) -> None:
    run = make_run(client, TEXT, model=SEQ2SEQ, target_text="word " * (N_TARGET - 2) + "end")
    assert [site["query_len"] for site in run["sites"]] == [N_SOURCE, N_TARGET, N_TARGET]
    answer = client.get(run["links"]["heads"]).json()
    doubling = [[0, 1], [1, 2], [2, 4], [4, 8], [8, 16]]
    assert answer["bins"] == {"encoder.self": doubling, "decoder.self": doubling, "decoder.cross": []}
    for head in answer["heads"]:
        bins = [] if head["distance"] is None else head["distance"]["bins"]
        assert len(bins) == len(answer["bins"][head["site"]])


def test_each_layer_is_told_beside_equal_weights_under_its_own_mask(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(client, TEXT)
    causal = causal_mask(N_SOURCE)
    seen = [MaskLayout.from_mask(mask) for mask in (causal, causal & sliding_window_mask(N_SOURCE, window=WINDOW))]
    monkeypatch.setattr(Capture, "mask", lambda _own, _site, layer: seen[layer % 2])
    layers = layers_of(client, run)["layers"]
    rows = range(1, N_SOURCE)  # row 0 sees one key
    for layer in layers:
        keys = [min(row + 1, WINDOW) if layer["layer"] % 2 else row + 1 for row in rows]
        mean = sum((n_keys - 1) / 2 for n_keys in keys) / len(keys)
        assert layer["all"]["distance"]["uniform"] == pytest.approx(mean, abs=1e-6)  # told with six decimals


def test_verdicts_speak_of_every_layer(client: TestClient) -> None:
    answer = layers_of(client, make_run(client, TEXT))
    assert [layer["layer"] for layer in answer["layers"]] == [0, 1, 2, 3]
    for version in ("all", "first"):
        read = [(layer["layer"], layer[layer["of"] if version == "all" else version]) for layer in answer["layers"]]
        kinds = {number: reach["kind"] for number, reach in read if reach}
        told = answer["verdicts"][version]
        assert {at: one["code"] for one in told for at in range(one["layers"][0], one["layers"][1] + 1)} == kinds
        assert kinds, "there is something to tell"
