"""A run of our own Transformer is a run like any other: sites, shapes, weights, card, bytes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from models.blocks import Workspace
from models.blockwise import AttentionInputs, AttentionSummary, blockwise_attention
from models.errors import Cancelled, CaptureError, ConfigError
from models.own import OwnModel, expected_modules
from models.transformer import Transformer
from models.transformer_config import Kind
from tests.parity.own import KINDS, POSITIONS, explicit_weights, largest, random_ids, small_model
from tests.parity.references import all_weights

# The softmax in another order, and what three layers make of that. Seen: 1.9e-6 and 4e-15, with peaked weights.
BOUNDS = {torch.float32: 5e-6, torch.float64: 1e-12}
SOURCE, TARGET = 150, 70  # several blocks of 64 rows, the last one partial

every_kind = pytest.mark.parametrize("kind", KINDS)
every_position = pytest.mark.parametrize("positions", POSITIONS)


def looked_into(model: Transformer, **options: object) -> OwnModel:
    return OwnModel(model, None, family="own", weight_precision="float32", revision="small", **options)  # type: ignore[arg-type]


def target_of(kind: Kind) -> list[int] | None:
    return random_ids(TARGET, 4)[0].tolist() if kind == "encoder-decoder" else None


def lengths(kind: Kind) -> dict[str, tuple[int, int]]:
    """Site -> query_len, key_len."""
    return {
        "encoder": {"encoder.self": (SOURCE, SOURCE)},
        "decoder": {"decoder.self": (SOURCE, SOURCE)},
        "encoder-decoder": {
            "encoder.self": (SOURCE, SOURCE),
            "decoder.self": (TARGET, TARGET),
            "decoder.cross": (TARGET, SOURCE),
        },
    }[kind]


@every_kind
@every_position
@pytest.mark.parametrize(("dtype", "n_kv_heads"), [(torch.float32, 2), (torch.float64, 4)])
def test_a_run_gives_the_explicit_weights(kind: Kind, positions: str, dtype: torch.dtype, n_kv_heads: int) -> None:
    model = small_model(kind, dtype, positions=positions, n_kv_heads=n_kv_heads)
    ids, target = random_ids(SOURCE), target_of(kind)
    result = looked_into(model).run(ids[0].tolist(), target_ids=target)
    assert result.card.verdict == "pass", result.card
    assert [check.status for check in result.card.checks if check.id == "whole_pass"] == ["pass"]
    sites = result.capture.sites
    assert {site.site: (site.query_len, site.key_len) for site in sites} == lengths(kind)
    assert {(site.n_layers, site.n_heads, site.n_kv_heads) for site in sites} == {(3, 4, n_kv_heads)}
    expected_masks = {"encoder.self": "full", "decoder.self": "causal", "decoder.cross": "full"}
    assert all(mask.kind == expected_masks[site.site] for site in sites for mask in site.masks)
    expected = explicit_weights(model, ids, None if target is None else torch.tensor([target]))
    assert len(expected) == 3 * len(sites)
    for (site, layer), weights in expected.items():
        captured = all_weights(result.capture, site, layer)
        assert captured.dtype == dtype
        assert largest(captured, weights[0]) <= BOUNDS[dtype], (site, layer)


def test_attention_is_not_flat() -> None:
    """A wrong scale would hide in flat attention: the mean top weight is far above that of equal weights, 0.04."""
    weights = explicit_weights(small_model("decoder", positions="rotary"), random_ids(SOURCE))
    assert float(torch.stack(list(weights.values())).amax(-1).mean()) > 0.3


@every_kind
@every_position
def test_capture_bytes_is_what_a_capture_takes(kind: Kind, positions: str) -> None:
    for n_kv_heads in (4, 1):
        own, target = looked_into(small_model(kind, positions=positions, n_kv_heads=n_kv_heads)), target_of(kind)
        capture = own.run(random_ids(300)[0].tolist(), target_ids=target).capture
        taken = sum(tensor.nbytes for tensor in capture.tensors().values())
        estimate = own.capture_bytes(300, 0 if target is None else TARGET)
        assert 0.9 * taken <= estimate <= 1.1 * taken, estimate / taken


@pytest.mark.parametrize("dropout", ["dropout", "attention_dropout"])
def test_training_mode_left_on_is_put_right(dropout: str) -> None:
    changes: dict[str, Any] = {dropout: 0.5}
    model, ids = small_model("decoder", **changes), random_ids(40)[0].tolist()
    own = looked_into(model)
    right = own.run(ids).capture
    model.train()
    result = own.run(ids)
    assert result.card.verdict == "pass"
    for layer in range(3):
        assert torch.equal(
            all_weights(result.capture, "decoder.self", layer), all_weights(right, "decoder.self", layer)
        )


def test_training_mode_that_cannot_be_put_right_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("decoder", attention_dropout=0.5)
    own = looked_into(model)
    model.train()
    monkeypatch.setattr(model, "eval", lambda: model)
    card = own.run(random_ids(40)[0].tolist()).card
    assert card.verdict == "fail"
    assert next(check for check in card.checks if check.id == "eval_mode").status == "fail"


def test_a_wrong_head_is_noticed() -> None:
    def scaled(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
        summary = blockwise_attention(inputs, workspace)
        summary.output[1] *= 1.01
        return summary

    card = looked_into(small_model("decoder", torch.float32), compute=scaled).run(random_ids(40)[0].tolist()).card
    failed = {check.id for check in card.checks if check.status == "fail"}
    assert {"module_output", "whole_pass"} <= failed


def test_a_module_that_is_passed_by_gives_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("encoder")
    own = looked_into(model)

    def passed_by(x: Tensor, *_masks: object, **_options: object) -> Tensor:
        return x

    monkeypatch.setattr(model.get_submodule("encoder.layers.1"), "forward", passed_by)
    with pytest.raises(CaptureError, match="2 of 3 attention modules"):
        own.run(random_ids(9)[0].tolist())


def test_expected_modules() -> None:
    assert {kind: expected_modules(small_model(kind)) for kind in KINDS} == {
        "encoder": {"encoder.self": 3},
        "decoder": {"decoder.self": 3},
        "encoder-decoder": {"encoder.self": 3, "decoder.self": 3, "decoder.cross": 3},
    }


def test_it_stops_when_asked_and_refuses_what_it_does_not_read() -> None:
    own = looked_into(small_model("decoder"))
    with pytest.raises(Cancelled):
        own.run([1, 2, 3], should_stop=lambda: True)
    with pytest.raises(ConfigError, match="one text, not a pair"):
        own.run([1, 2, 3], segments=[0, 0, 1])
    with pytest.raises(ConfigError, match="this is a decoder; given: one"):
        own.run([1, 2, 3], target_ids=[1])
    with pytest.raises(ConfigError, match="given: none"):
        looked_into(small_model("encoder-decoder")).run([1, 2, 3])
