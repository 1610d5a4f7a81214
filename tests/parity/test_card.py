"""Planted faults turn the correctness card red, each at the line meant to see it; without a fault all lines pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from models.blocks import Workspace
from models.blockwise import AttentionInputs, AttentionSummary, blockwise_attention
from models.card import Card, Check
from models.errors import Cancelled, CaptureError
from models.huggingface import HuggingFaceModel
from models.masks import MaskLayout
from tests.parity.tiny import looked_into, random_ids, tiny_model

TOKENS = 90


def with_compute(fault: Callable[[AttentionInputs, Workspace], AttentionSummary]) -> HuggingFaceModel:
    return HuggingFaceModel(
        tiny_model("llama"), None, max_tokens=512, weight_precision="float32", revision="t", compute=fault
    )


def failed(card: Card) -> set[str]:
    return {check.id for check in card.checks if check.status == "fail"}


def check(card: Card, name: str) -> Check:
    return next(check for check in card.checks if check.id == name)


def test_without_a_fault_every_line_passes() -> None:
    card = looked_into("llama").run(random_ids(TOKENS)).card
    assert failed(card) == set()
    assert [check.id for check in card.checks] == [
        "modules",
        "eval_mode",
        "arithmetic",
        "masks",
        "row_sums",
        "outside_mask",
        "read_back",
        "kept",
        "overviews",
        "figures",
        "non_finite",
        "module_output",
        "whole_pass",
    ]
    assert check(card, "modules").value == check(card, "modules").bound == 3


def test_mask_dropped_on_the_way_to_the_weights() -> None:
    def without_mask(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
        full = MaskLayout.full(inputs.query.shape[1], inputs.key.shape[1])
        return blockwise_attention(replace(inputs, mask=full), workspace)

    card = with_compute(without_mask).run(random_ids(TOKENS)).card
    assert failed(card) >= {"module_output", "whole_pass"}


def test_mask_lost_in_the_capture() -> None:
    """The pass was right, but what is read back shows the future."""

    def mask_forgotten_afterwards(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
        summary = blockwise_attention(inputs, workspace)
        full = MaskLayout.full(inputs.query.shape[1], inputs.key.shape[1])
        object.__setattr__(inputs, "mask", full)
        return summary

    card = with_compute(mask_forgotten_afterwards).run(random_ids(TOKENS)).card
    assert failed(card) >= {"row_sums", "outside_mask"}


def test_mask_never_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What transformers does in silence when no mask function is registered."""
    model = looked_into("llama")
    monkeypatch.setattr("transformers.models.llama.modeling_llama.create_causal_mask", lambda *_a, **_k: None)
    with pytest.raises(CaptureError, match="no mask"):
        model.run(random_ids(TOKENS))


def test_one_module_bypassed() -> None:
    class Bypass(nn.Module):
        """An attention module that computes something plausible elsewhere."""

        def forward(self, hidden_states: Tensor, **_options: object) -> tuple[Tensor, None]:
            return hidden_states.roll(1, 1), None

    model = looked_into("llama")
    model.model.model.layers[1].self_attn = Bypass()
    with pytest.raises(CaptureError, match="2 of 3") as raised:
        model.run(random_ids(TOKENS))
    assert raised.value.card is not None
    assert failed(raised.value.card) == {"modules"}


def test_a_heads_weights_scaled_in_the_capture() -> None:
    def scaled(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
        summary = blockwise_attention(inputs, workspace)
        summary.rows["row_sum"][2] *= 1.001
        return summary

    assert failed(with_compute(scaled).run(random_ids(TOKENS)).card) >= {"row_sums", "read_back"}


def test_a_heads_weights_scaled_in_the_pass() -> None:
    def scaled(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
        summary = blockwise_attention(inputs, workspace)
        summary.output[2] *= 1.01
        return summary

    assert failed(with_compute(scaled).run(random_ids(TOKENS)).card) >= {"module_output", "whole_pass"}


def test_dropout_left_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model = looked_into("llama")
    model.model.train()
    monkeypatch.setattr(type(model.model), "eval", lambda self: self)
    card = model.run(random_ids(TOKENS)).card
    assert failed(card) == {"eval_mode"}
    assert check(card, "eval_mode").value == 3


def test_numbers_that_are_not_finite() -> None:
    model = looked_into("llama")
    with torch.no_grad():
        model.model.model.layers[2].self_attn.v_proj.weight[0, 0] = torch.inf
    assert failed(model.run(random_ids(TOKENS)).card) >= {"non_finite", "module_output"}


def test_of_a_longer_text_a_part_is_compared_and_the_whole_on_request() -> None:
    model, ids = looked_into("gpt2"), random_ids(300)
    whole_pass = check(model.run(ids).card, "whole_pass")
    assert (whole_pass.status, whole_pass.detail["how"], whole_pass.detail["tokens"]) == ("pass", "prefix", 64)
    assert whole_pass.detail["compared_logits"] == 64
    asked = model.compare_whole_pass(ids)
    assert (asked.status, asked.detail["how"], asked.detail["tokens"]) == ("pass", "whole", 300)


def test_an_excerpt_of_an_encoders_text_goes_through_both_ways() -> None:
    whole_pass = check(looked_into("bert").run(random_ids(300)).card, "whole_pass")
    assert (whole_pass.status, whole_pass.detail["how"], whole_pass.detail["tokens"]) == ("pass", "excerpt", 64)


def test_a_card_with_a_comparison_left_out_is_not_passed() -> None:
    passed, left = Check("row_sums", "pass", 0.0, 1.0), Check("masks", "not_compared", None)
    assert Card((passed,)).verdict == "pass"
    assert Card((passed, left)).verdict == "partial"
    assert Card((left, Check("modules", "fail", 1, 2))).verdict == "fail"


def test_progress_and_cancel_between_modules() -> None:
    model = looked_into("llama")
    seen: list[tuple[int, int]] = []
    model.run(random_ids(5), on_layer=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    seen.clear()
    with pytest.raises(Cancelled):
        model.run(
            random_ids(5),
            on_layer=lambda done, total: seen.append((done, total)),
            should_stop=lambda: len(seen) == 2,
        )
    assert seen == [(1, 3), (2, 3)]
