"""Our pass and capture against transformers, on the two real models and texts of 2 to 500 tokens."""

from __future__ import annotations

import pytest
import torch

from models.huggingface import HuggingFaceModel
from models.protocol import RunResult
from tests.parity.references import Notes, all_weights, eager_and_ours, largest_difference, noted_pass
from tests.parity.texts import TEXTS, repeated_random_ids

CASES = [*TEXTS, "repeated random tokens"]
SAME_QUERY_AND_KEY = 1e-5  # the same arithmetic in another order; measured ≤ 5e-6
ROW_SUMS = 1e-5  # a row of up to 500 float32 weights; measured ≤ 2e-6


@pytest.fixture(params=["smollm2", "minilm"])
def model(request: pytest.FixtureRequest) -> HuggingFaceModel:
    chosen: HuggingFaceModel = request.getfixturevalue(request.param)
    return chosen


def ids_of(model: HuggingFaceModel, case: str) -> list[int]:
    if case == "repeated random tokens":
        return repeated_random_ids(model.model.config.vocab_size, 120, 4)
    return [token.id for token in model.tokenize(TEXTS[case])][: model.description.max_tokens]


def read_back(result: RunResult) -> list[torch.Tensor]:
    (site,) = result.capture.sites
    return [all_weights(result.capture, site.site, layer) for layer in range(site.n_layers)]


def assert_final_hidden_agrees(hidden: torch.Tensor, eager: Notes, sdpa: Notes) -> None:
    assert eager.hidden is not None
    assert sdpa.hidden is not None
    # two float32 passes that differ only in the order of sums; where SDPA happens to equal eager, some roundings
    rounding = 2e-6 * float(eager.hidden.abs().max())
    bound = max(rounding, 4 * float((sdpa.hidden - eager.hidden).abs().max()))
    assert float((hidden - eager.hidden).abs().max()) <= bound


@pytest.mark.parametrize("case", CASES)
def test_same_query_and_key_give_eager_weights(model: HuggingFaceModel, case: str) -> None:
    theirs, capture = eager_and_ours(model, ids_of(model, case))
    (site,) = capture.sites
    ours = [all_weights(capture, site.site, layer) for layer in range(site.n_layers)]
    assert largest_difference(ours, theirs) <= SAME_QUERY_AND_KEY


@pytest.mark.parametrize("case", CASES)
def test_end_to_end(model: HuggingFaceModel, case: str) -> None:
    """No further from eager than four times what transformers' own two kernels are from each other on this text."""
    ids = ids_of(model, case)
    result = model.run(ids)
    eager, sdpa = noted_pass(model.model, "eager_noting", ids), noted_pass(model.model, "sdpa_noting", ids)
    ours = read_back(result)
    drift = largest_difference(sdpa.weights, eager.weights)
    assert largest_difference(ours, eager.weights) <= max(1e-5, 4 * drift)
    assert result.card.verdict == "pass", result.card

    sums = torch.stack([layer.sum(-1) for layer in ours])
    assert float((sums - 1).abs().max()) <= ROW_SUMS
    if model.description.kind == "decoder":
        assert all(float(layer.triu(1).abs().max()) == 0.0 for layer in ours)
    assert_final_hidden_agrees(model.final_hidden(ids), eager, sdpa)


def test_the_texts_are_as_long_as_promised(smollm2: HuggingFaceModel) -> None:
    lengths = [len(ids_of(smollm2, case)) for case in CASES]
    assert len(lengths) >= 10
    assert min(lengths) == 2
    assert 450 <= max(lengths) <= 500
