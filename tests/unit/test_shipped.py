"""Shipped models: written, signed, read back; a changed, missing or unlisted file is refused by name."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.errors import ConfigError, UnsupportedModel
from models.parameters import LISTED, copy_parameters
from models.recipes import Prepared, tiny
from models.shipped import (
    CURVE_POINTS,
    FILES,
    HASHES,
    WEIGHTS,
    TrainingFacts,
    check_hashes,
    half_weights,
    read_shipped,
    revision_of,
    sign,
    write_shipped,
)
from models.transformer import Transformer

NAME = "everyhead-tiny"
LARGEST = 12 * 1024 * 1024  # bytes of a file: what a repository carries without pain
SHIPPED = sorted(folder.name for folder in WEIGHTS.glob("*") if folder.is_dir()) if WEIGHTS.is_dir() else []
LOSSES = [4.0 - i / 100 for i in range(119)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one model that was never trained, signed."""
    prepared = tiny.prepare(tmp_path)
    model = Transformer(tiny.MODEL).eval()
    write_shipped(tmp_path / NAME, tiny.RECIPE, prepared, model, TrainingFacts("the command", 1.234, LOSSES))
    sign(tmp_path)
    return tmp_path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@torch.no_grad()
def test_a_model_comes_back_as_it_was_written(tmp_path: Path) -> None:
    model = Transformer(replace(tiny.MODEL, tied=False)).eval()
    rounded = {name: weight.float() for name, weight in half_weights(model).items()}
    recipe = replace(tiny.RECIPE, model=model.config)
    write_shipped(tmp_path / NAME, recipe, tiny.prepare(tmp_path), model, TrainingFacts("c", 1.0, LOSSES))
    listed = sign(tmp_path)
    shipped = read_shipped(NAME, tmp_path)
    assert shipped.model.config == model.config
    assert not shipped.model.training
    parameters = dict(shipped.model.named_parameters())
    assert parameters.keys() == rounded.keys()
    for name, parameter in parameters.items():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, rounded[name])  # float16 values, exactly
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    assert torch.equal(shipped.model(ids), model(ids))  # the one that was written has been rounded too
    assert shipped.tokenizer.encode("7 31 0").ids == [7, 31, 0]
    assert listed == {f"{NAME}/{file}": digest(tmp_path / NAME / file) for file in FILES}
    assert shipped.revision == check_hashes(NAME, tmp_path) == revision_of(NAME, tmp_path)


def test_figures_are_those_of_the_rounded_weights(tmp_path: Path) -> None:
    seen: list[bool] = []

    def evaluate(model: Transformer) -> dict[str, float]:
        seen.append(all(torch.equal(p, p.half().float()) for p in model.parameters()))
        return {"loss": 1.5}

    prepared = tiny.prepare(tmp_path)
    measured = Prepared(prepared.tokenizer, prepared.next_batch, prepared.data, evaluate)
    write_shipped(tmp_path / NAME, tiny.RECIPE, measured, Transformer(tiny.MODEL), TrainingFacts("c", 1.0, LOSSES))
    assert seen == [True]


def test_the_card_says_how_it_was_made(root: Path) -> None:
    card = json.loads((root / NAME / "card.json").read_text("utf-8"))
    assert_complete(card)
    assert card["training"]["command"] == "the command"
    assert card["training"]["minutes"] == 1.2
    assert card["training"]["final_loss"] == pytest.approx(sum(LOSSES[-60:]) / 60)
    curve = card["training"]["loss_curve"]
    assert len(curve) <= CURVE_POINTS
    assert curve[0] == [0, pytest.approx((LOSSES[0] + LOSSES[1]) / 2)]
    assert card["figures"]["validation_loss"] == pytest.approx(math.log(tiny.VOCAB_SIZE), rel=0.05)  # untrained


@pytest.mark.parametrize("file", FILES)
def test_one_flipped_byte(root: Path, file: str) -> None:
    path = root / NAME / file
    expected, content = digest(path), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    message = rf"^{NAME}/{file} is not the file that was shipped: SHA-256 should be {expected}, is {digest(path)}$"
    with pytest.raises(UnsupportedModel, match=message):
        read_shipped(NAME, root)


@pytest.mark.parametrize("file", FILES)
def test_a_missing_or_unlisted_file(root: Path, file: str) -> None:
    listed = json.loads((root / HASHES).read_text("utf-8"))
    (root / HASHES).write_text(
        json.dumps({name: own for name, own in listed.items() if not name.endswith(file)}), "utf-8"
    )
    with pytest.raises(UnsupportedModel, match=rf"{NAME}/{file} is not in {HASHES}"):
        read_shipped(NAME, root)
    with pytest.raises(UnsupportedModel, match=rf"{NAME}/{file} is not in {HASHES}"):
        revision_of(NAME, root)
    (root / NAME / file).unlink()
    with pytest.raises(UnsupportedModel, match=rf"{NAME}/{file} is missing"):
        read_shipped(NAME, root)


def test_a_damaged_or_missing_list(root: Path) -> None:
    (root / HASHES).write_text('{"everyhead', "utf-8")
    with pytest.raises(ConfigError, match=rf"{HASHES} cannot be read"):
        read_shipped(NAME, root)
    for content, given in (("[]", "list"), ("null", "NoneType"), ("3", "int")):
        (root / HASHES).write_text(content, "utf-8")
        for read in (read_shipped, revision_of):
            with pytest.raises(ConfigError, match=rf"^{HASHES} cannot be read: it must be a JSON object, got {given}$"):
                read(NAME, root)
    (root / HASHES).write_text(json.dumps({f"{NAME}/{file}": 3 for file in FILES}), "utf-8")
    with pytest.raises(ConfigError, match=rf"a SHA-256 must be text; not so: {NAME}/card\.json"):
        revision_of(NAME, root)
    (root / HASHES).unlink()
    with pytest.raises(ConfigError, match=rf"{HASHES} cannot be read"):
        read_shipped(NAME, root)


def test_signed_files_that_do_not_fit_together(root: Path) -> None:
    """Every hash holds, but the configuration is of another model."""
    path = root / NAME / "config.json"
    path.write_text(json.dumps(replace(tiny.MODEL, d_ff=96).as_dict()), "utf-8")
    sign(root)
    with pytest.raises(UnsupportedModel, match=r"feed_forward\.inner\.weight should be \(96, 64\), is \(128, 64\)"):
        read_shipped(NAME, root)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "{", "Expecting property name"),
        ("config.json", "null", "it must be a JSON object, got NoneType"),
        ("config.json", json.dumps(tiny.MODEL.as_dict() | {"d_model": "64"}), "d_model must be an integer, got '64'"),
        ("config.json", json.dumps(tiny.MODEL.as_dict() | {"n_kv_heads": 0}), "at least one head, got .*n_kv_heads=0"),
        ("card.json", "[1]", "it must be a JSON object, got list"),
        ("card.json", "", "Expecting value"),
        ("tokenizer.json", "{}", ""),
        ("model.safetensors", "no weights", ""),
    ],
)
def test_signed_files_of_no_use(root: Path, file: str, content: str, message: str) -> None:
    (root / NAME / file).write_text(content, "utf-8")
    sign(root)
    with pytest.raises(UnsupportedModel, match=rf"^{NAME}/{file} cannot be used: .*{message}"):
        read_shipped(NAME, root)


def test_signed_weights_that_are_no_numbers(root: Path) -> None:
    path = root / NAME / "model.safetensors"
    weights = load_file(path)
    weights["decoder.final_norm.bias"][3] = math.nan
    save_file(weights, path)
    sign(root)
    with pytest.raises(UnsupportedModel, match=r"cannot be used: .* NaN or infinity: decoder\.final_norm\.bias$"):
        read_shipped(NAME, root)


def test_wrong_weights_are_listed_and_change_nothing() -> None:
    model = Transformer(tiny.MODEL)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    given = {name: torch.zeros_like(parameter) for name, parameter in before.items()}
    del given["decoder.final_norm.bias"]
    given["decoder.final_norm.scale"] = torch.zeros(64)
    given["decoder.layers.0.feed_forward.outer.weight"] = torch.zeros(128, 64)
    with pytest.raises(ConfigError) as caught:
        copy_parameters(model, given)
    assert str(caught.value) == (
        "these weights do not fit the model; missing: decoder.final_norm.bias; unexpected: decoder.final_norm.scale; "
        "wrong shapes: decoder.layers.0.feed_forward.outer.weight should be (64, 128), is (128, 64)"
    )
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())
    with pytest.raises(ConfigError, match=rf"missing: .* and {len(before) - LISTED} more$"):
        copy_parameters(model, {})
    with pytest.raises(ConfigError, match=r"unexpected: output\.weight"):  # tied: it is the embeddings, given once
        copy_parameters(model, {**before, "output.weight": torch.zeros(32, 64)})
    for odd, what in (
        (torch.zeros(64).to(torch.int8), "floating-point numbers; these are not"),
        (torch.zeros(64, dtype=torch.complex64), "floating-point numbers; these are not"),
        (torch.full((64,), math.nan), "finite; these hold NaN or infinity"),
    ):
        with pytest.raises(ConfigError, match=rf"^weights must be {what}: decoder\.final_norm\.bias$"):
            copy_parameters(model, {**before, "decoder.final_norm.bias": odd})
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


def assert_complete(card: dict[str, object]) -> None:
    """What a card must say: recipe, data and its licence, command, hardware, time, loss."""
    training, data = card["training"], card["data"]
    assert isinstance(training, dict)
    assert isinstance(data, dict)
    for name in ("name", "about", "licence", "figures", "parameters"):
        assert card[name], name
    for name in ("command", "hardware", "minutes", "torch", "steps", "rate", "seed", "final_loss", "loss_curve"):
        assert training[name] is not None, name
    assert data["texts"]
    for text in data["texts"]:  # each with its licence
        assert any(word in text.get("licence", text["name"]) for word in ("MIT", "public domain")), text


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_in_the_repository(name: str) -> None:
    check_hashes(name)
    assert {path.name for path in (WEIGHTS / name).iterdir()} == set(FILES)
    for file in FILES:
        assert (WEIGHTS / name / file).stat().st_size <= LARGEST, file
    shipped = read_shipped(name)
    assert shipped.card["name"] == name
    assert_complete(dict(shipped.card))
    assert shipped.card["parameters"] == sum(parameter.numel() for parameter in shipped.model.parameters())
    assert all(bool(parameter.isfinite().all()) for parameter in shipped.model.parameters())


def test_nothing_else_is_listed() -> None:
    listed = json.loads((WEIGHTS / HASHES).read_text("utf-8")) if (WEIGHTS / HASHES).is_file() else {}
    assert sorted(listed) == sorted(f"{name}/{file}" for name in SHIPPED for file in FILES)
