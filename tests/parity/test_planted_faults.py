"""Each planted fault turns the card red or is refused: two lengths, a decoder, an encoder, an encoder–decoder."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedConfig

from models.blocks import Workspace
from models.blockwise import AttentionInputs, AttentionSummary, blockwise_attention
from models.card import Card
from models.errors import CaptureError
from models.fit import Misfit
from models.huggingface import HuggingFaceModel
from tests.parity import plants
from tests.parity.plants import Plant, before, inside, kept, result
from tests.parity.sweep import build, compare
from tests.parity.tiny import CONFIGS, looked_into, random_ids, tiny_model

LENGTHS = (40, 400)
MODELS = ("llama", "bert", "t5")
SEED = 3


def scale_query(given: dict[str, Any]) -> None:
    given["query"][:, 2] *= 1.05


def shift_keys(given: dict[str, Any]) -> None:
    given["key"] = given["key"].roll(1, 2)


def scale_of_d(given: dict[str, Any]) -> None:
    given["scaling"] = (given.get("scaling") or given["query"].shape[-1] ** -0.5) / given["query"].shape[-1] ** 0.5


def wrong_groups(given: dict[str, Any]) -> None:
    group = given["query"].shape[1] // given["key"].shape[1]
    for name in ("key", "value"):
        given[name] = given[name].repeat(1, group, 1, 1)  # head h reads h % n_kv


def no_mask(given: dict[str, Any]) -> None:
    if given["attention_mask"] is not None:
        given["attention_mask"] = torch.ones_like(given["attention_mask"], dtype=torch.bool)


def drop_weights(summary: AttentionSummary) -> None:
    torch.nn.functional.dropout(summary.output, 0.1, inplace=True)


def scale_output(summary: AttentionSummary) -> None:
    summary.output[2] *= 1.05


def shift_row_max(summary: AttentionSummary) -> None:
    summary.rows["row_max"] += 1e-3


def shift_row_max_of_a_head(summary: AttentionSummary) -> None:
    summary.rows["row_max"][2] += 1e-3


def rows_of_others(inputs: AttentionInputs) -> AttentionInputs:
    query = inputs.query.clone()
    query[2, -13:-10] = query[2, -7:-4]  # beyond the part that is compared with the model's own kernel
    return replace(inputs, query=query)


def sums_of_three_rows(summary: AttentionSummary) -> None:
    summary.rows["row_sum"][2, -13:-10] *= 1.01


FAULTS: dict[str, Plant] = {
    "keys shifted": before(shift_keys),
    "a head's query × 1.05": before(scale_query),
    "scale 1/d": before(scale_of_d),
    "a head's output × 1.05": result(scale_output),
    "dropout in our attention": result(drop_weights),
    "dropout in the feed-forward layers": plants.dropout_anywhere,
    "a module bypassed": plants.bypass,
    "row maxima off by 1e-3": result(shift_row_max),
    "a head's row maxima off by 1e-3": result(shift_row_max_of_a_head),
    "two layers exchanged": kept(plants.two_layers),
    "all layers reversed": kept(plants.layers_reversed),
    "two heads exchanged": kept(plants.two_heads),
    "two keys exchanged": kept(plants.two_keys),
    "three rows wrong": kept(plants.three_rows),
    "three rows computed for other positions": inside(rows_of_others),
    "three rows' sums wrong": result(sums_of_three_rows),
    "an overview of maxima halved": result(plants.halve(("overview_max",))),
    "an overview of means halved": result(plants.halve(("overview_mean",))),
    "figures × 0.8": result(plants.smaller_figures),
    "row figures × 0.8": result(plants.smaller_row_figures),
}
ONLY_CAUSAL: dict[str, Plant] = {
    "mask dropped by the mask function": plants.see_everything,
    "mask dropped on the way": before(no_mask),
    "mask dropped inside": inside(plants.no_mask_inside),
}


def run(model: HuggingFaceModel, family: str, count: int) -> Card:
    """The card of a run, also of one that was refused with it."""
    targets = random_ids(min(count, 300), seed=1) if family == "t5" else None
    try:
        return model.run(random_ids(count), target_ids=targets, seed=SEED).card
    except CaptureError as error:
        return error.card or Card(())


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("family", MODELS)
def test_without_a_fault_everything_was_compared_and_passes(family: str, count: int) -> None:
    card = run(looked_into(family), family, count)
    assert card.verdict == "pass", [check for check in card.checks if check.status not in ("pass", "info")]


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(monkeypatch: pytest.MonkeyPatch, fault: str, family: str, count: int) -> None:
    model = looked_into(family)
    FAULTS[fault](monkeypatch, model)
    assert run(model, family, count).verdict == "fail"


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("family", ["llama", "t5"])
@pytest.mark.parametrize("fault", ONLY_CAUSAL)
def test_a_dropped_mask_is_seen(monkeypatch: pytest.MonkeyPatch, fault: str, family: str, count: int) -> None:
    model = looked_into(family)
    ONLY_CAUSAL[fault](monkeypatch, model)
    assert run(model, family, count).verdict == "fail"


@pytest.mark.parametrize("count", LENGTHS)
def test_a_key_hidden_from_an_encoder_is_seen(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    model = looked_into("bert")
    plants.hide_the_last_key(monkeypatch, model)
    assert run(model, "bert", count).verdict == "fail"


@pytest.mark.parametrize("count", LENGTHS)
def test_key_heads_read_in_the_wrong_order_are_seen(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    model = looked_into("llama")
    before(wrong_groups)(monkeypatch, model)
    assert run(model, "llama", count).verdict == "fail"


@pytest.mark.parametrize(("window", "count"), [(16, 40), (16, 400), (300, 400)])
def test_an_ignored_window_is_seen(monkeypatch: pytest.MonkeyPatch, window: int, count: int) -> None:
    def windowed() -> PreTrainedConfig:
        config = mistral()
        config.sliding_window = window
        return config

    mistral = CONFIGS["mistral"]
    monkeypatch.setitem(CONFIGS, "mistral", windowed)
    assert run(looked_into("mistral"), "mistral", count).verdict == "pass"
    model = looked_into("mistral")
    plants.forget_windows(monkeypatch, model)
    card = run(model, "mistral", count)
    assert next(check for check in card.checks if check.id == "masks").status == "fail"


@pytest.mark.parametrize("count", LENGTHS)
def test_an_ignored_selection_of_keys_is_seen(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    def ignore(given: dict[str, Any]) -> None:
        assert given.pop("indices") is not None

    config = build.tiny_config("deepseek_v32")
    made = build.tiny_model("deepseek_v32", config)
    model = HuggingFaceModel(made, None, max_tokens=512, weight_precision="float32", revision="tiny")
    assert run(model, "deepseek_v32", count).verdict == "pass"
    before(ignore)(monkeypatch, model)
    card = run(model, "deepseek_v32", count)
    assert next(check for check in card.checks if check.id == "masks").status == "fail"


@pytest.mark.parametrize("family", MODELS)
def test_a_missing_tensor_is_refused(tmp_path: Path, family: str) -> None:
    compare.save(tiny_model(family), tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    missing = next(name for name in tensors if name.endswith(("q_proj.weight", "query.weight", ".q.weight")))
    del tensors[missing]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(Misfit, match=f"missing: .*{re.escape(missing)}"):
        HuggingFaceModel.load(tmp_path, weight_precision="float32", revision="x", device=torch.device("cpu"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("fault", "line"), [("rows", "module_output"), ("sums", "row_sums")])
def test_three_rows_of_one_module_are_seen_whatever_is_drawn(fault: str, line: str, seed: int) -> None:
    """The draw of rows that are read back meets them with a quarter's chance only."""
    model, calls = looked_into("llama"), iter(range(3))

    def compute(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
        second = next(calls, None) == 1  # later calls are of the comparison with the default kernel
        summary = blockwise_attention(rows_of_others(inputs) if second and fault == "rows" else inputs, workspace)
        if second and fault == "sums":
            sums_of_three_rows(summary)
        return summary

    model._compute = compute
    card = model.run(random_ids(400), seed=seed).card
    assert next(check for check in card.checks if check.id == line).status == "fail"
