"""A checkpoint folder is described from its own files, and refused where it must be."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, LlamaConfig, RobertaConfig

from models.checkpoints import (
    INDEX,
    IncompleteCheckpoint,
    UnusableCheckpoint,
    max_tokens_of,
    read_checkpoint,
)
from models.families import kind_of
from models.model_folders import local_checkpoint, local_names
from models.packaged import MINILM, find_weights
from tests.unit.tiny_checkpoints import save_bert, save_gpt2, save_t5


def edit_json(path: Path, **changes: object) -> None:
    """Change keys of a JSON file; None removes one."""
    content = json.loads(path.read_text()) if path.exists() else {}
    content.update(changes)
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))


@pytest.mark.parametrize(
    ("save", "expected"),
    [
        (save_gpt2, ("gpt2", "decoder", 2, 2, 2, 16)),
        (save_bert, ("bert", "encoder", 3, 4, 4, 32)),
        (save_t5, ("t5", "encoder-decoder", 2, 2, 2, 2048)),
    ],
)
def test_described_from_the_configuration(
    tmp_path: Path, save: Callable[[Path], Path], expected: tuple[object, ...]
) -> None:
    found = read_checkpoint(save(tmp_path), within=tmp_path)
    assert (found.family, found.kind, found.n_layers, found.n_heads, found.n_kv_heads, found.max_tokens) == expected
    assert found.weight_precision == "float32"


def test_the_real_encoder() -> None:
    folder = find_weights(MINILM)
    assert folder is not None
    found = read_checkpoint(folder, within=folder)
    assert (found.family, found.kind, found.n_layers, found.n_heads, found.max_tokens) == (
        "bert",
        "encoder",
        6,
        12,
        512,
    )


def test_precision_is_that_of_the_stored_weights(tmp_path: Path) -> None:
    save_gpt2(tmp_path, dtype=torch.bfloat16)
    edit_json(tmp_path / "config.json", dtype="float32")  # what the configuration claims does not count
    assert read_checkpoint(tmp_path, within=tmp_path).weight_precision == "bfloat16"


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (GPT2Config(), "decoder"),
        (LlamaConfig(num_hidden_layers=1), "decoder"),
        (LlamaConfig(architectures=["LlamaModel"]), "decoder"),
        (RobertaConfig(), "encoder"),
        (RobertaConfig(architectures=["RobertaForCausalLM"]), "encoder"),  # its mask hides nothing without is_decoder
        (RobertaConfig(architectures=["RobertaForCausalLM"], is_decoder=True), "decoder"),
        (RobertaConfig(is_decoder=True), "decoder"),
    ],
)
def test_kinds(config: GPT2Config | LlamaConfig | RobertaConfig, kind: str) -> None:
    assert kind_of(config) == kind


def test_limits(tmp_path: Path) -> None:
    """RoBERTa's 514 positions hold 512 tokens; a tokenizer may state less than its model, and 10^30 means nothing."""
    assert max_tokens_of(RobertaConfig(max_position_embeddings=514, pad_token_id=1), tmp_path) == 512
    edit_json(tmp_path / "tokenizer_config.json", model_max_length=10**30)
    assert max_tokens_of(GPT2Config(n_positions=1024), tmp_path) == 1024
    edit_json(tmp_path / "tokenizer_config.json", model_max_length=100)
    assert max_tokens_of(GPT2Config(n_positions=1024), tmp_path) == 100


@pytest.mark.parametrize("name", ["", ".", "..", "../m/inner", "inner/../inner", "/etc", "inner\\x", "a\0b", "absent"])
def test_only_direct_sub_folders(tmp_path: Path, name: str) -> None:
    save_gpt2(tmp_path / "m" / "inner")
    assert local_checkpoint(tmp_path / "m", "inner").n_layers == 2
    with pytest.raises(UnusableCheckpoint):
        local_checkpoint(tmp_path / "m", name)


def test_names(tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    assert local_names(tmp_path) == ["a", "b"]
    assert local_names(tmp_path / "absent") == []


def test_links_that_leave_are_refused(tmp_path: Path) -> None:
    outside, models = tmp_path / "outside", tmp_path / "models"
    save_gpt2(outside)
    models.mkdir()
    (models / "linked").symlink_to(outside)
    with pytest.raises(UnusableCheckpoint, match="link"):
        local_checkpoint(models, "linked")
    inner = save_gpt2(models / "inner")
    (inner / "notes.txt").symlink_to(inner / "config.json")
    assert local_checkpoint(models, "inner").kind == "decoder"  # a link inside is fine
    (inner / "model.safetensors").unlink()
    (inner / "model.safetensors").symlink_to(outside / "model.safetensors")
    with pytest.raises(UnusableCheckpoint, match="link"):
        local_checkpoint(models, "inner")
    for loop in (models / "loop", save_gpt2(models / "other") / "loop"):
        loop.symlink_to(loop)
    for name in ("loop", "other"):
        with pytest.raises(UnusableCheckpoint):
            local_checkpoint(models, name)


def test_the_models_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    save_gpt2(tmp_path / "disk" / "m")
    (tmp_path / "models").symlink_to(tmp_path / "disk")
    assert local_checkpoint(tmp_path / "models", "m").n_heads == 2


def remove(name: str) -> Callable[[Path], object]:
    """A change: the file is gone."""
    return lambda folder: (folder / name).unlink()


def pickled(folder: Path) -> None:
    """Only a pickle is left."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def cut_short(folder: Path) -> None:
    """A copy that was interrupted."""
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.truncate((folder / "model.safetensors").stat().st_size - 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (remove("config.json"), "no config.json"),
        (remove("model.safetensors"), "no model.safetensors"),
        (remove("tokenizer.json"), "no tokenizer"),
        (pickled, "pickled"),
        (cut_short, "whole safetensors"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\xff" * 16), "whole safetensors"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b""), "whole safetensors"),
        (lambda folder: (folder / "config.json").write_text("{"), "not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "not a JSON object"),
        (lambda folder: edit_json(folder / "config.json", auto_map={"AutoModel": "m.M"}), "never run"),
        (lambda folder: edit_json(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["t.T"]}), "never run"),
        (lambda folder: edit_json(folder / "config.json", model_type="surely-not-a-family"), "does not know"),
        (lambda folder: edit_json(folder / "config.json", model_type=None), "does not know"),
    ],
)
def test_refusals_say_why(tmp_path: Path, change: Callable[[Path], object], reason: str) -> None:
    change(save_gpt2(tmp_path))
    with pytest.raises(UnusableCheckpoint, match=reason):
        read_checkpoint(tmp_path, within=tmp_path)


def test_sharded_weights(tmp_path: Path) -> None:
    save_gpt2(tmp_path, shard="2KB")
    whole = read_checkpoint(tmp_path, within=tmp_path)
    assert whole.weight_precision == "float32"
    shard = sorted(tmp_path.glob("model-*.safetensors"))[0]
    content = shard.read_bytes()
    shard.unlink()
    with pytest.raises(IncompleteCheckpoint, match="1 of its"):
        read_checkpoint(tmp_path, within=tmp_path)
    shard.write_bytes(content)
    edit_json(tmp_path / INDEX, weight_map={"wte.weight": "../elsewhere.safetensors"})
    with pytest.raises(UnusableCheckpoint, match="does not name"):
        read_checkpoint(tmp_path, within=tmp_path)


def test_the_revision_follows_the_files(tmp_path: Path) -> None:
    save_gpt2(tmp_path)

    def revision() -> str:
        return read_checkpoint(tmp_path, within=tmp_path).revision

    first = revision()
    assert revision() == first
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")  # same size, same header
    os.utime(weights, ns=(0, 1))
    second = revision()
    edit_json(tmp_path / "config.json", layer_norm_epsilon=0.5)
    assert len({first, second, revision()}) == 3
