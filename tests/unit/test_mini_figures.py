"""The figures of everyhead-mini's card, each against a slower way of finding it or a model whose answer is known."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.corpus import Corpus
from models.recipes import mini_figures as figures
from models.transformer import Transformer
from models.transformer_config import TransformerConfig

SHAPE = TransformerConfig(kind="decoder", vocab_size=11, d_model=8, n_heads=2, n_layers=2, d_ff=8, max_tokens=32)


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(SHAPE).eval()


def some_text(length: int, seed: int = 0) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(0, 11, length).astype(np.int32)


def test_losses_by_position(model: Transformer) -> None:
    text = some_text(60)
    found = figures.validation_losses(model, text, context=8)
    windows = [torch.from_numpy(text[start : start + 9]).long() for start in range(0, 60 - 8, 9)]
    expected = torch.zeros(8)
    for window in windows:
        chances = model(window[None, :-1]).detach()[0].log_softmax(-1)
        expected -= chances[torch.arange(8), window[1:]] / len(windows)
    assert torch.allclose(found, expected, atol=1e-6)  # sums of losses near 2.4, in float32


def test_the_baseline_counts_pairs() -> None:
    corpus = Corpus(some_text(400), some_text(100, seed=1))
    train, held_out = corpus.train.tolist(), corpus.validation.tolist()
    pairs, first = Counter(itertools.pairwise(train)), Counter(train[:-1])
    size = max(train + held_out) + 1
    single = {token: (train.count(token) + 1) / (len(train) + size) for token in range(size)}
    losses = [
        -sum(math.log((pairs[a, b] + k * single[b]) / (first[a] + k)) for a, b in itertools.pairwise(held_out))
        / (len(held_out) - 1)
        for k in figures.SMOOTHING
    ]
    assert figures.bigram_loss(corpus) == pytest.approx(min(losses))


def looking_at(kind: str, span: int) -> Tensor:
    """Weights (n_layers, 1, n_heads, 2 · span, 2 · span) of which layer 1, head 0 does what is asked."""
    n = 2 * span
    weights = torch.eye(n).expand(2, 1, 2, n, n).clone()
    rows = torch.arange(1, n) if kind == "previous" else torch.arange(span, n)
    back = {"previous": 1, "induction": span - 1, "duplicate": span}[kind]
    weights[1, 0, 0] = torch.eye(n)
    weights[1, 0, 0, rows] = 0
    weights[1, 0, 0, rows, rows - back] = 1
    return weights


KINDS = ("previous", "induction", "duplicate")


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_does_one_thing(kind: str, model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_weights", lambda _model, _row: looking_at(kind, 6))
    found = figures.head_scores(model, 6)
    assert found[kind] == {"best": 1.0, "layer": 1, "head": 0, "all": [[0.0, 0.0], [1.0, 0.0]]}
    assert [found[other]["best"] for other in KINDS if other != kind] == [0.0, 0.0]


def test_random_tokens_are_drawn_from_where_it_is_said(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []

    def weights(_model: Transformer, row: Tensor) -> Tensor:
        seen.append(row)
        return looking_at("previous", 5)

    monkeypatch.setattr(figures, "_weights", weights)
    for among, last in ((None, 10), (3, 2)):
        seen.clear()
        figures.head_scores(model, 5, among)
        rows = torch.cat(seen)
        assert int(rows.max()) == last
        assert torch.equal(rows[:, :5], rows[:, 5:])


def test_distances_of_heads_that_look_alike_everywhere(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    equal = torch.ones(8, 8).tril() / torch.arange(1.0, 9)[:, None]
    monkeypatch.setattr(figures, "_weights", lambda _model, _row: equal.expand(2, 1, 2, 8, 8))
    first, second, uniform = figures.mean_distances(model, some_text(40), context=8)
    assert first == second == uniform
    assert uniform == pytest.approx(7 / 4, abs=0.051)  # the mean of 0 … 7, halved; given to one decimal
