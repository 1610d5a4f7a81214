"""Every folder with something of a model in it is listed: usable, or with what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.services.catalogue import Catalogue
from app.services.loading import load_model
from models.checkpoints import UnusableCheckpoint, read_checkpoint
from models.model_folders import local_checkpoint, local_names
from tests.unit.catalogues import COMMIT, Loader, cache_hub_model, load
from tests.unit.tiny_checkpoints import save_bert, save_gpt2


def save_adapter(folder: Path) -> Path:
    """What PEFT saves of a LoRA: its settings and its two matrices, here without any content."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"peft_type": "LORA", "base_model_name_or_path": "some/base"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    (folder / "adapter_model.safetensors").write_bytes(b"")
    return folder


def only_weights(folder: Path) -> None:
    """The configuration was forgotten."""
    save_bert(folder)
    (folder / "config.json").unlink()


def gguf(folder: Path) -> None:
    """One file of another program's format."""
    folder.mkdir(parents=True)
    (folder / "model.gguf").write_bytes(b"GGUF")


def two_snapshots(folder: Path) -> None:
    """A hub cache's folder without a main reference."""
    for commit in ("a" * 40, "b" * 40):
        save_bert(folder / "snapshots" / commit)


def damaged_cache(folder: Path) -> None:
    """A hub cache's folder from which the snapshots were cleared."""
    (folder / "refs").mkdir(parents=True)


@pytest.mark.parametrize(
    ("name", "make_it", "reason"),
    [
        ("lora", save_adapter, "adapter of some/base, without the model"),
        ("outer", lambda folder: save_bert(folder / "checkpoint-500"), "one folder deeper, in checkpoint-500"),
        ("outer", lambda folder: save_adapter(folder / "step-1"), "one folder deeper, in step-1"),
        ("hub", lambda folder: two_snapshots(folder / "models--a--b"), "one folder deeper, in models--a--b"),
        ("bare", only_weights, "no config.json"),
        ("gguf", gguf, "GGUF"),
        ("models--a--b", two_snapshots, "2 snapshots"),
        ("models--a--b", damaged_cache, "no config.json"),
    ],
)
def test_listed_with_what_to_do(
    make: Callable[..., Catalogue], tmp_path: Path, name: str, make_it: Callable[[Path], object], reason: str
) -> None:
    make_it(tmp_path / "models" / name)
    entry = {entry.id: entry for entry in make().list()}[f"local:{name}"]
    assert (entry.state, reason in str(entry.reason)) == ("unavailable", True), entry.reason


def test_folders_without_a_model_are_not_listed(tmp_path: Path) -> None:
    for name in ("empty", "notes", ".hidden", "deep"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("nothing")
    save_bert(tmp_path / "deep" / "a" / "b" / "c")
    (tmp_path / "file.safetensors").write_bytes(b"")
    assert local_names(tmp_path) == []


def test_a_models_folder_that_is_a_checkpoint(make: Callable[..., Catalogue], tmp_path: Path) -> None:
    save_bert(tmp_path / "models")
    entry = {entry.id: entry for entry in make().list()}["local:."]
    assert "EVERYHEAD_MODELS_DIR" in str(entry.reason)


@pytest.mark.parametrize("with_reference", [True, False])
def test_a_hub_caches_folder_is_a_model(
    make: Callable[..., Catalogue], loader: Loader, tmp_path: Path, with_reference: bool
) -> None:
    """Its snapshot links to blobs beside it, inside the folder: found by the main reference, or as the only one."""
    snapshot = cache_hub_model(tmp_path, "some/model")
    cached = snapshot.parent.parent
    if not with_reference:
        shutil.rmtree(cached / "refs")
    (tmp_path / "models").mkdir(exist_ok=True)
    cached.rename(tmp_path / "models" / cached.name)
    catalogue = make()
    entry = catalogue.entry("local:models--some--model")
    assert (entry.state, entry.name, entry.n_layers) == ("ready", "some/model", 2)
    load(catalogue, entry.id)
    assert loader.folders == [tmp_path / "models" / cached.name / "snapshots" / COMMIT]


def test_a_hub_caches_folder_may_not_lead_out_of_itself(tmp_path: Path) -> None:
    """Neither by its main reference nor by a link."""
    snapshot = cache_hub_model(tmp_path, "some/model")
    outside = save_bert(tmp_path / "outside")
    cached = snapshot.parent.parent
    (cached / "refs" / "main").write_text("../../../outside")
    (snapshot.parent / "other").mkdir()
    with pytest.raises(UnusableCheckpoint, match="2 snapshots"):
        local_checkpoint(cached.parent, cached.name)
    (cached / "refs" / "main").write_text(COMMIT)
    (snapshot / "model.safetensors").unlink()
    (snapshot / "model.safetensors").symlink_to(outside / "model.safetensors")
    with pytest.raises(UnusableCheckpoint, match="link"):
        local_checkpoint(cached.parent, cached.name)


@pytest.mark.parametrize("implementation", ["own", "transformers"])
def test_an_adapter_beside_its_model_is_named(
    make: Callable[..., Catalogue], tmp_path: Path, implementation: str
) -> None:
    """It is not applied; the list and the card say so, whoever runs the model."""
    folder = save_gpt2(tmp_path / "models" / "mine")
    assert read_checkpoint(folder, within=folder).notes == ()
    save_adapter(folder)
    entry = make().entry("local:mine")
    assert "LORA adapter" in str(entry.note)
    assert "not applied" in str(entry.note)
    card = (
        load_model(folder, entry, implementation)
        .run([1, 2], on_layer=lambda _done, _all: None, should_stop=lambda: False)
        .card
    )
    (line,) = [check for check in card.checks if check.id == "weights"]
    assert (line.status, line.detail["notes"]) == ("info", [entry.note])
