"""Figures of heads against a dense float64 computation from transformers' eager weights; and heads that are known."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from models import blockwise
from models.head_scores import head_scores
from models.huggingface import HuggingFaceModel
from models.own import OwnModel
from models.protocol import CaptureReader
from models.roles import role_of
from models.shipped import read_shipped
from models.token_facts import TokenFacts, facts_of
from tests.dense_heads import Dense, assert_same
from tests.parity.references import eager_and_ours
from tests.parity.texts import TEXTS, repeated_random_ids
from tests.parity.tiny import VOCABULARY, looked_into, random_ids

TOLERANCE = 1e-5  # of masses; weights of the same query and key differ by up to 5e-6, a mean over rows by less
SITES = {"decoder": "decoder.self", "encoder": "encoder.self"}
FAMILIES = ("gpt2", "bert", "llama", "mistral", "gemma2", "gpt_oss")  # full, causal, windows, a soft cap, sinks


def compare(model: HuggingFaceModel, ids: list[int], facts: TokenFacts) -> int:
    """All figures of all layers; gives how many numbers were compared."""
    theirs, capture = eager_and_ours(model, ids, facts)
    site = SITES[model.description.kind]
    figures = capture.figures(site)
    compared = 0
    for layer, weights in enumerate(theirs):
        mask = capture.mask(site, layer).visible((0, len(ids)), (0, len(ids)))
        dense = Dense(weights.double() * mask, mask, facts)
        compared += assert_same({name: values[layer] for name, values in figures.items()}, dense, TOLERANCE)
    return compared


@pytest.mark.parametrize("text", ["long prose", "long chinese", "code"])
@pytest.mark.parametrize("name", ["smollm2", "minilm"])
def test_figures_of_real_models(name: str, text: str, request: pytest.FixtureRequest) -> None:
    model: HuggingFaceModel = request.getfixturevalue(name)
    tokens = model.tokenize(TEXTS[text])[:300]
    assert compare(model, [token.id for token in tokens], facts_of(tokens)) > 100


@pytest.mark.parametrize("family", FAMILIES)
def test_figures_of_every_kind_of_attention(family: str) -> None:
    ids = [one % 40 + 3 for one in random_ids(150)]  # few different ones: many repeats
    assert max(ids) < VOCABULARY
    special = tuple(at in (0, 80, 149) for at in range(150))
    facts = TokenFacts(tuple(ids), special, tuple(one % 7 == 0 for one in ids))
    assert compare(looked_into(family), ids, facts) > 100


def figures_of(capture: CaptureReader, site: str = "decoder.self") -> list[dict[str, Any]]:
    """Heads as the API gives them, layer after layer."""
    figures: dict[str, Tensor] = capture.figures(site)
    n_layers = len(figures["removed"])
    return [head for i in range(n_layers) for head in head_scores({k: v[i] for k, v in figures.items()})]


@pytest.fixture(scope="module")
def mini() -> OwnModel:
    """The shipped everyhead-mini."""
    found = read_shipped("everyhead-mini")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=found.tokenizer)
    name, revision = "everyhead-mini", found.revision
    return OwnModel(found.model, tokenizer, family=name, weight_precision="float16", revision=revision)


def roles_of(heads: list[dict[str, Any]], threshold: float = 0.3) -> set[str]:
    return {role_of(head, threshold)["name"] for head in heads}


def best(heads: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The highest score over all heads."""
    scores: list[dict[str, Any]] = [head["scores"][name] for head in heads if head["scores"][name] is not None]
    return max(scores, key=lambda score: float(score["corrected"]))


@pytest.mark.parametrize("name", ["smollm2", "mini"])
def test_repeated_random_tokens_show_the_heads_of(name: str, request: pytest.FixtureRequest) -> None:
    model: HuggingFaceModel | OwnModel = request.getfixturevalue(name)
    ids = repeated_random_ids(model.model.config.vocab_size, 60, 3)
    heads = figures_of(model.run(ids).capture)
    for kind in ("induction", "duplicate"):
        found = best(heads, kind)
        assert found["corrected"] > 0.3, kind
        assert found["score"] > 5 * found["chance"], kind
    assert {"induction", "duplicate"} <= roles_of(heads)


def test_a_text_without_repeats_tells_nothing_of_them(smollm2: HuggingFaceModel, mini: OwnModel) -> None:
    for model in (smollm2, mini):
        ids = repeated_random_ids(model.model.config.vocab_size, 60, 1)
        assert len(set(ids)) == len(ids)
        heads = figures_of(model.run(ids).capture)
        assert {head["scores"][name] is None for head in heads for name in ("induction", "duplicate")} == {True}
        assert not {"induction", "duplicate"} & roles_of(heads, threshold=0.0)


def test_a_planted_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each key gets goes to its neighbour."""
    right = blockwise._sum_rows
    monkeypatch.setattr(blockwise, "_sum_rows", lambda *block: right(*block).roll(1, -1))
    facts = TokenFacts(tuple(random_ids(150)), (False,) * 150, (False,) * 150)
    with pytest.raises(AssertionError):
        compare(looked_into("llama"), random_ids(150), facts)
