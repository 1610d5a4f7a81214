"""The catalogue tells the truth about each model's state, loads each once, and never reaches the network by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.services import catalogue as module
from app.services import model_sources
from app.services.catalogue import Catalogue
from app.services.errors import ModelUnavailable, UnknownModel
from models.errors import Cancelled, ConfigError, UnsupportedModel
from models.packaged import WeightPackage
from models.protocol import AttentionModel
from tests.unit.catalogues import Loader, load, until
from tests.unit.tiny_checkpoints import save_bert, save_gpt2


def test_what_there_is(make: Callable[..., Catalogue], tmp_path: Path) -> None:
    save_bert(tmp_path / "models" / "mine")
    entries = {entry.id: entry for entry in make(hub_allow=("gpt2", "org/other")).list()}
    assert list(entries) == ["smollm2-135m", "minilm-l6", "gpt2", "org/other", "local:mine"]
    assert [entry.state for entry in entries.values()] == [
        "ready",
        "ready",
        "needs_download",
        "needs_download",
        "ready",
    ]
    smollm2, mine = entries["smollm2-135m"], entries["local:mine"]
    assert smollm2.weight_precision == "4-bit (Q4_1) expanded to float32"
    assert (smollm2.n_layers, smollm2.n_heads, smollm2.n_kv_heads, smollm2.max_tokens) == (30, 9, 3, 8192)
    assert (mine.kind, mine.n_layers, mine.n_heads, mine.max_tokens) == ("encoder", 3, 4, 32)
    assert (entries["minilm-l6"].kind, entries["minilm-l6"].n_heads) == ("encoder", 12)
    assert entries["org/other"].n_layers is None


def test_the_default_comes_first(make: Callable[..., Catalogue]) -> None:
    assert [entry.id for entry in make(default_model="gpt2").list()] == ["gpt2", "smollm2-135m", "minilm-l6"]


@pytest.mark.parametrize(
    "model_id", ["nope", "local:", "local:absent", "local:../models/mine", "local:..", "", "org/x"]
)
def test_unknown_ids(make: Callable[..., Catalogue], tmp_path: Path, model_id: str) -> None:
    save_bert(tmp_path / "models" / "mine")
    catalogue = make()
    for call in (catalogue.entry, catalogue.prepare, catalogue.start_download, catalogue.download_events):
        with pytest.raises(UnknownModel):
            call(model_id)
    with pytest.raises(UnknownModel):
        load(catalogue, model_id)


def test_a_bad_allow_list_fails_at_once(make: Callable[..., Catalogue]) -> None:
    with pytest.raises(ConfigError, match="allow-list"):
        make(hub_allow=("gpt2", "../etc"))


def test_loaded_once_for_all_who_ask_together(make: Callable[..., Catalogue], loader: Loader) -> None:
    catalogue = make()
    loader.go.clear()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(load, catalogue, "minilm-l6") for _ in range(4)]
        until(lambda: catalogue.entry("minilm-l6").state == "preparing")
        loader.go.set()
        models = [future.result(10) for future in waiting]
    assert loader.loaded == ["minilm-l6"]
    assert all(model is models[0] for model in models)
    assert catalogue.entry("minilm-l6").state == "ready"
    assert load(catalogue, "minilm-l6") is models[0]


def test_preparing_does_not_block_the_list(make: Callable[..., Catalogue], loader: Loader) -> None:
    catalogue = make()
    loader.go.clear()
    catalogue.prepare("minilm-l6")
    catalogue.prepare("minilm-l6")
    states = {entry.id: (entry.state, entry.progress) for entry in catalogue.list()}
    assert states["minilm-l6"][0] == "preparing"
    assert states["minilm-l6"][1] is not None
    assert states["smollm2-135m"] == ("ready", None)
    loader.go.set()
    load(catalogue, "minilm-l6")
    catalogue.prepare("minilm-l6")
    assert loader.loaded == ["minilm-l6"]


def test_one_load_at_a_time_and_two_models_kept(make: Callable[..., Catalogue], loader: Loader, tmp_path: Path) -> None:
    for name in "abc":
        save_bert(tmp_path / "models" / name)
    catalogue = make()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: load(catalogue, f"local:{name}"), "abc"))
    assert loader.most_at_once == 1
    first, second, last = loader.loaded
    load(catalogue, second)
    load(catalogue, first)  # was dropped when the last came; now the last is
    load(catalogue, second)
    load(catalogue, last)
    assert loader.loaded == [first, second, last, first, last]


def test_waiting_can_be_stopped(make: Callable[..., Catalogue], loader: Loader) -> None:
    catalogue = make()
    loader.go.clear()
    seen: list[float] = []
    with pytest.raises(Cancelled):
        catalogue.load("minilm-l6", seen.append, lambda: len(seen) > 1)
    loader.go.set()
    load(catalogue, "minilm-l6")  # the load itself went on
    assert loader.loaded == ["minilm-l6"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left"),
        (MemoryError(), "memory"),
        (ValueError("8 columns expected\nfor 3 heads"), "ValueError: 8 columns expected for 3 heads"),
    ],
)
def test_a_load_that_failed_for_want_of_something_says_so_and_can_be_tried_again(
    make: Callable[..., Catalogue], loader: Loader, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    catalogue = make()
    loader.error = error
    with pytest.raises(ModelUnavailable, match=reason) as caught:
        load(catalogue, "minilm-l6")
    assert "implementation" not in caught.value.message
    entry = catalogue.entry("minilm-l6")
    assert entry.state == "unavailable"
    assert reason in str(entry.reason)
    loader.error = None
    with pytest.raises(ModelUnavailable, match=reason):
        load(catalogue, "minilm-l6")
    monkeypatch.setattr(module, "FAILURE_SHOWN_S", 0.0)
    load(catalogue, "minilm-l6")
    assert catalogue.entry("minilm-l6").state == "ready"


def test_a_model_is_lost_only_with_all_its_implementations(
    make: Callable[..., Catalogue], loader: Loader, tmp_path: Path
) -> None:
    save_gpt2(tmp_path / "models" / "mine")
    catalogue = make()

    def loaded(implementation: str) -> AttentionModel:
        return catalogue.load("local:mine", lambda _: None, lambda: False, implementation)

    def refusal(implementation: str) -> str:
        with pytest.raises(ModelUnavailable) as caught:
            loaded(implementation)
        return str(caught.value.details["reason"])

    loader.error = UnsupportedModel("an odd tensor")
    assert refusal("own") == "an odd tensor; implementation: transformers may work"
    loader.error = None
    assert catalogue.entry("local:mine").state == "ready"
    loaded("transformers")
    assert refusal("own").startswith("an odd tensor"), "its own failure, not another attempt"
    assert loader.loaded == ["local:mine"]


def test_a_model_that_nothing_can_load(make: Callable[..., Catalogue], loader: Loader, tmp_path: Path) -> None:
    save_gpt2(tmp_path / "models" / "mine")
    catalogue = make()
    for implementation, reason in (("own", "an odd tensor"), ("transformers", "another reason")):
        loader.error = UnsupportedModel(reason)
        with pytest.raises(ModelUnavailable, match=reason):
            catalogue.load("local:mine", lambda _: None, lambda: False, implementation)
    entry = catalogue.entry("local:mine")
    assert (entry.state, entry.reason) == ("unavailable", "an odd tensor")


def test_a_failure_is_not_shown_for_ever(
    make: Callable[..., Catalogue], loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = make()
    loader.error = MemoryError()
    with pytest.raises(ModelUnavailable):
        load(catalogue, "minilm-l6")
    monkeypatch.setattr(module, "FAILURE_SHOWN_S", 0.0)
    assert catalogue.entry("minilm-l6").state == "ready"


def test_changed_weights_are_loaded_again(make: Callable[..., Catalogue], loader: Loader, tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "models" / "mine")
    catalogue = make()
    before = catalogue.entry("local:mine").revision
    load(catalogue, "local:mine")
    save_gpt2(folder)
    assert catalogue.entry("local:mine").revision != before
    load(catalogue, "local:mine")
    assert loader.loaded == ["local:mine", "local:mine"]


def test_each_implementation_is_a_model_of_its_own(make: Callable[..., Catalogue], tmp_path: Path) -> None:
    save_gpt2(tmp_path / "models" / "mine")
    save_bert(tmp_path / "models" / "other")
    catalogue = make()

    def loaded(implementation: str | None) -> AttentionModel:
        return catalogue.load("local:mine", lambda _: None, lambda: False, implementation)

    own = loaded("own")
    assert not catalogue.is_loaded("local:mine", "transformers")
    theirs = loaded("transformers")
    assert theirs is not own
    assert [loaded("own"), loaded("transformers"), loaded(None)] == [own, theirs, own]
    assert catalogue.is_loaded("local:mine", "transformers")
    with pytest.raises(ModelUnavailable, match="its implementation is transformers"):
        catalogue.load("local:other", lambda _: None, lambda: False, "own")


def test_unusable_local_folders(make: Callable[..., Catalogue], tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "models" / "mine")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    catalogue = make()
    entry = catalogue.entry("local:mine")
    assert (entry.state, "pickled" in str(entry.reason)) == ("unavailable", True)
    with pytest.raises(ModelUnavailable, match="pickled"):
        load(catalogue, "local:mine")


def test_packages_that_are_not_installed(make: Callable[..., Catalogue], monkeypatch: pytest.MonkeyPatch) -> None:
    absent = WeightPackage("surely_absent", "surely-absent", "x")
    monkeypatch.setattr(module, "SMOLLM2", absent)
    monkeypatch.setattr(module, "MINILM", absent)
    catalogue = make()
    for model_id in ("smollm2-135m", "minilm-l6"):
        assert catalogue.entry(model_id).reason == "the package surely-absent is not installed"
        with pytest.raises(ModelUnavailable, match="not installed"):
            load(catalogue, model_id)


def test_conversion_is_part_of_preparing(
    make: Callable[..., Catalogue], loader: Loader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Progress of the conversion is shown and the converted folder is what is loaded."""
    half, go = threading.Event(), threading.Event()

    def convert(_source: Path, target: Path, on_progress: Callable[[float], None]) -> Path:
        on_progress(0.5)
        half.set()
        assert go.wait(10)
        return target

    monkeypatch.setattr(model_sources, "convert_gguf", convert)
    catalogue = make()
    catalogue.prepare("smollm2-135m")
    assert half.wait(10)
    entry = catalogue.entry("smollm2-135m")
    assert entry.state == "preparing"
    assert entry.progress == pytest.approx(0.45)  # half of the conversion's 0.9
    go.set()
    load(catalogue, "smollm2-135m")
    assert loader.folders == [tmp_path / "data" / "models" / f"smollm2-135m-{entry.revision}"]
