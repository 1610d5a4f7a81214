"""The figures of a capture's heads in words: those of every version, made once, also where many ask at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from models import head_scores
from models.head_scores import distance_bins
from models.token_facts import facts_of
from tests.dense_heads import MIN_ROWS, SCORES, VERSIONS, Dense
from tests.fakes import FakeModel
from tests.unit.test_head_stats import MASKS, TOLERANCE, N, facts, layer

IN_TOKENS = TOLERANCE * N  # of a mean distance: masses at up to N distances, each times its distance


def distances(dense: Dense, version: str, head: int) -> dict[str, Any]:
    """How far a head looks, with pencil and paper; approximate where the pass sums in float32."""
    mass = dense.by_distance(version)[head].tolist()
    up_to = [sum(mass[: reach + 1]) for reach in range(N)]
    return {
        "mean": pytest.approx(sum(at * share for at, share in enumerate(mass)), abs=IN_TOKENS),
        "uniform": pytest.approx(dense.uniform_distance(version)[head], abs=1e-6),  # as many decimals are told
        "within_50": next(reach for reach in range(N) if up_to[reach] >= 0.5 * up_to[-1]),
        "within_90": next(reach for reach in range(N) if up_to[reach] >= 0.9 * up_to[-1]),
        "bins": pytest.approx([sum(mass[first:stop]) for first, stop in distance_bins(N)], abs=TOLERANCE),
        "rows": dense.rows(version)[head],
    }


@pytest.mark.parametrize("name", ["causal", "full"])
def test_each_version_is_told_with_its_own_figures(name: str) -> None:
    found, dense = layer(MASKS[name], facts(N, special=True), dtype=torch.float32)
    for head, told in enumerate(head_scores.head_scores(found)):
        for version in VERSIONS:
            words = told if version == "all" else told["without"][version]
            assert words["distance"] == distances(dense, version, head)
            mean, normalised = dense.entropy(version)[head]
            assert words["entropy"] == {
                "mean": pytest.approx(mean, abs=10 * TOLERANCE),  # nats, where little of a row is left
                "normalised": pytest.approx(normalised, abs=TOLERANCE),
                "rows": dense.rows(version)[head],
            }
            share, chance = dense.concentration(version)[head]
            assert words["concentration"] == {
                "share": pytest.approx(share, abs=TOLERANCE),
                "key": int(dense.by_key(version)[head].argmax()),
                "chance": pytest.approx(chance, abs=TOLERANCE),
                "rows": dense.rows(version)[head],
            }
            for score in SCORES:
                mean, chance, rows = dense.score(score, version)[head]
                given = words["scores"][score]
                assert (given and (given["score"], given["chance"], given["rows"])) == (
                    (pytest.approx(mean, abs=TOLERANCE), pytest.approx(chance, abs=TOLERANCE), rows)
                    if rows >= MIN_ROWS
                    else None
                )
            removed = told["own_sink"] if version == "all" else words["removed"]
            assert removed == pytest.approx(dense.left_out(version)[head], abs=TOLERANCE)


def test_words_are_made_once_for_all_who_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = FakeModel(2, 3)
    tokens = model.tokenize("the cat saw the cat and the dog saw the cat")
    ids = [token.id for token in tokens]
    capture = model.run(ids, facts=facts_of(tokens), on_layer=lambda *_: None, should_stop=lambda: False).capture
    together, layers, made = threading.Barrier(4), head_scores.head_scores, []

    def slow(figures: Any) -> Any:  # noqa: ANN401  as the real one
        made.append(1)
        time.sleep(0.05)
        return layers(figures)

    def ask(_: int) -> list[dict[str, Any]]:
        together.wait(5)
        return capture.head_scores("decoder.self")

    monkeypatch.setattr(head_scores, "head_scores", slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len(made) == 2  # once for each layer
    assert [(head["site"], head["layer"], head["head"]) for head in found[0]] == [
        ("decoder.self", layer, head) for layer in range(2) for head in range(3)
    ]
    assert all(one == found[0] for one in found)
    found[0].clear()  # the list is the caller's own
    assert len(capture.head_scores("decoder.self")) == 6
