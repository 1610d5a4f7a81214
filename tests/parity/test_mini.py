"""The shipped everyhead-mini: the heads that its card names do on fresh random tokens what the card says.

Everything goes the way of a run (OwnModel, capture), so that the picture is judged and not only the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from models.capture import Capture
from models.own import OwnModel
from models.shipped import Shipped, read_shipped

SITE = "decoder.self"
SPANS = (64, 256)  # tokens that come twice; twice 256 is the longest text that the model takes
TEXTS = 8  # one text of 512 random tokens gives 0.83 to 0.86, as more or fewer of its tokens happen to come again
LEAST = 0.8  # what the model is shipped for, as a mean over texts
LEAST_DUPLICATE = 0.25  # of a row among 64 to 127 others; equal weights give 0.01
BY_ACCIDENT = 0.2  # on tokens that do not come again the same cells must hold little


@pytest.fixture(scope="module")
def shipped() -> Shipped:
    """The model as it lies in the repository."""
    return read_shipped("everyhead-mini")


@pytest.fixture(scope="module")
def own(shipped: Shipped) -> OwnModel:
    """The same as a model that one can look into."""
    return OwnModel(
        shipped.model,
        PreTrainedTokenizerFast(tokenizer_object=shipped.tokenizer),
        family="everyhead-mini",
        weight_precision="float16",
        revision=shipped.revision,
    )


def random_tokens(own: OwnModel, count: int, seed: int) -> list[int]:
    """Tokens of the whole vocabulary, drawn alike."""
    generator = torch.Generator().manual_seed(seed)
    ids: list[int] = torch.randint(own.model.config.vocab_size, (count,), generator=generator).tolist()
    return ids


def captured(own: OwnModel, ids: list[int], card: Mapping[str, Any], kind: str, span: int) -> Tensor:
    """All weights of the head that the card names for a kind."""
    found = card["figures"]["heads_on_repeated_random_tokens"][str(span)][kind]
    result = own.run(ids)
    assert [check.id for check in result.card.checks if check.status == "fail"] == []
    assert isinstance(result.capture, Capture)
    everything, head = (0, len(ids)), found["head"]
    return result.capture.weights(SITE, found["layer"], (head, head + 1), everything, everything)[0]


@pytest.mark.parametrize("span", SPANS)
def test_an_induction_head_finds_the_earlier_copy(own: OwnModel, shipped: Shipped, span: int) -> None:
    found = []
    for seed in range(TEXTS):
        once = random_tokens(own, span, seed=1000 + seed)
        weights = captured(own, once + once, shipped.card, "induction", span)
        found.append(float(weights.diagonal(1 - span)[1:].mean()))  # row span + i looks at i + 1
    assert sum(found) / TEXTS >= LEAST
    other = once + random_tokens(own, span, seed=2000)
    assert float(captured(own, other, shipped.card, "induction", span).diagonal(1 - span)[1:].mean()) <= BY_ACCIDENT


@pytest.mark.parametrize("span", SPANS)
def test_a_head_looks_at_the_previous_token(own: OwnModel, shipped: Shipped, span: int) -> None:
    once = random_tokens(own, span, seed=3000 + span)
    assert float(captured(own, once + once, shipped.card, "previous", span).diagonal(-1).mean()) >= LEAST


def test_a_head_looks_at_the_earlier_copy_itself(own: OwnModel, shipped: Shipped) -> None:
    found, others = [], []
    for seed in range(TEXTS):
        once = random_tokens(own, 64, seed=4000 + seed)
        found.append(float(captured(own, once + once, shipped.card, "duplicate", 64).diagonal(-64).mean()))
        other = once + random_tokens(own, 64, seed=5000 + seed)
        others.append(float(captured(own, other, shipped.card, "duplicate", 64).diagonal(-64).mean()))
    assert sum(found) / TEXTS >= LEAST_DUPLICATE
    assert sum(others) / TEXTS <= LEAST_DUPLICATE / 5


def test_the_card_says_what_the_model_is_shipped_for(shipped: Shipped) -> None:
    figures = shipped.card["figures"]
    assert figures["validation_loss"] < 0.95 * figures["bigram_loss"]
    assert figures["validation_loss_at_384_to_512"] <= figures["validation_loss_at_64_to_128"]
    assert len(figures["mean_distance_by_layer"]) == shipped.model.config.n_layers + 1
    for span in SPANS:
        heads = figures["heads_on_repeated_random_tokens"][str(span)]
        assert min(heads["previous"]["best"], heads["induction"]["best"]) >= LEAST
