"""The catalogue tells the truth about each model's state, loads each once, and never reaches the network by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from app.services import catalogue as module
from app.services import model_sources
from app.services.catalogue import Catalogue
from app.services.downloads import DownloadFailed, Downloads, fetch_from_hub, wanted_files
from app.services.errors import ModelNeedsDownload, ModelUnavailable, UnknownModel
from app.services.model_sources import CatalogueEntry
from models.errors import Cancelled, ConfigError, UnsupportedModel
from models.packaged import WeightPackage
from models.protocol import AttentionModel
from tests.unit.tiny_checkpoints import save_bert, save_gpt2

COMMIT = "a" * 40


class Loader:
    """Stands in for the engine: counts, and waits where a test says so."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.folders: list[Path] = []
        self.go = threading.Event()
        self.go.set()
        self.error: Exception | None = None
        self.most_at_once = 0
        self._at_once = 0

    def __call__(self, folder: Path, entry: CatalogueEntry) -> AttentionModel:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        assert self.go.wait(10)
        time.sleep(0.05)  # long enough to be met by a second load, if there were one
        self._at_once -= 1
        if self.error:
            raise self.error
        self.loaded.append(entry.id)
        self.folders.append(folder)
        return cast("AttentionModel", (entry.id, len(self.loaded)))


@pytest.fixture
def loader() -> Iterator[Loader]:
    """A loader that lets go of its threads when the test is over."""
    loader = Loader()
    yield loader
    loader.go.set()


@pytest.fixture
def make(tmp_path: Path, loader: Loader) -> Callable[..., Catalogue]:
    """A catalogue with an empty hub cache, the models folder tmp_path/models and the fake loader."""
    (tmp_path / "models").mkdir()

    def build(**changes: Any) -> Catalogue:
        values: dict[str, Any] = {
            "data_dir": tmp_path / "data",
            "models_dir": tmp_path / "models",
            "load_model": loader,
            "downloads": Downloads(tmp_path / "hub"),
        }
        return Catalogue(**(values | changes))

    return build


def load(catalogue: Catalogue, model_id: str) -> AttentionModel:
    """Load and wait, never stopping."""
    return catalogue.load(model_id, lambda _: None, lambda: False)


def cache_hub_model(tmp_path: Path, repo: str = "gpt2") -> Path:
    """Put a whole checkpoint into the hub cache, linked from the snapshot to the blobs as the hub's own client does."""
    folder = tmp_path / "hub" / f"models--{repo.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    save_gpt2(snapshot)
    (folder / "blobs").mkdir()
    for file in list(snapshot.iterdir()):
        file.rename(folder / "blobs" / file.name)
        file.symlink_to(Path("../../blobs") / file.name)
    return snapshot


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


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
        (UnsupportedModel("its attention is fused"), "its attention is fused"),
        (OSError(28, "No space left on device"), "No space left"),
        (MemoryError(), "memory"),
        (KeyError("secret"), "KeyError"),
    ],
)
def test_a_failed_load_says_why_and_can_be_tried_again(
    make: Callable[..., Catalogue], loader: Loader, error: Exception, reason: str
) -> None:
    catalogue = make()
    loader.error = error
    with pytest.raises(ModelUnavailable, match=reason) as caught:
        load(catalogue, "minilm-l6")
    assert "secret" not in caught.value.message
    entry = catalogue.entry("minilm-l6")
    assert entry.state == "unavailable"
    assert reason in str(entry.reason)
    loader.error = None
    load(catalogue, "minilm-l6")
    assert catalogue.entry("minilm-l6").state == "ready"


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


def test_a_hub_model_from_the_cache(make: Callable[..., Catalogue], loader: Loader, tmp_path: Path) -> None:
    snapshot = cache_hub_model(tmp_path)
    catalogue = make(offline=True)
    entry = catalogue.entry("gpt2")
    assert (entry.state, entry.revision, entry.n_layers, entry.name) == ("ready", COMMIT, 2, "GPT-2 (124M)")
    load(catalogue, "gpt2")
    assert loader.folders == [snapshot]
    assert [event["status"] for event in catalogue.download_events("gpt2")] == ["done"]


def test_a_half_cached_hub_model_needs_its_download(make: Callable[..., Catalogue], tmp_path: Path) -> None:
    snapshot = cache_hub_model(tmp_path)
    (snapshot / "model.safetensors").unlink()
    catalogue = make()
    assert catalogue.entry("gpt2").state == "needs_download"
    with pytest.raises(ModelNeedsDownload):
        load(catalogue, "gpt2")


def test_a_download_is_followed_and_then_used(make: Callable[..., Catalogue], loader: Loader, tmp_path: Path) -> None:
    go = threading.Event()

    def fetch(_repo: str, _cache: Path, on_bytes: Callable[[int, int], None]) -> None:
        on_bytes(30, 120)
        assert go.wait(10)
        cache_hub_model(tmp_path)
        on_bytes(120, 120)

    catalogue = make(downloads=Downloads(tmp_path / "hub", fetch))
    catalogue.start_download("gpt2")
    until(lambda: catalogue.entry("gpt2").progress == 0.25)
    assert catalogue.entry("gpt2").state == "preparing"
    events = catalogue.download_events("gpt2")
    assert next(events)["progress"] == 0.25
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(load, catalogue, "gpt2")  # runs wait for the download
        go.set()
        assert [event["status"] for event in events][-1] == "done"
        waiting.result(10)
    assert loader.loaded == ["gpt2"]


def test_a_failed_download_says_why_and_can_be_tried_again(make: Callable[..., Catalogue], tmp_path: Path) -> None:
    outcomes: list[Exception | None] = [DownloadFailed("The hub cannot be reached."), KeyError("secret"), None]

    def fetch(*_: object) -> None:
        if (error := outcomes.pop(0)) is not None:
            raise error

    catalogue = make(downloads=Downloads(tmp_path / "hub", fetch))
    for said in ("The hub cannot be reached.", "The download stopped: KeyError."):
        catalogue.start_download("gpt2")
        last = list(catalogue.download_events("gpt2"))[-1]
        assert (last["status"], last["error"]["message"]) == ("failed", said)
        assert (catalogue.entry("gpt2").state, catalogue.entry("gpt2").reason) == ("needs_download", said)
    catalogue.start_download("gpt2")
    assert list(catalogue.download_events("gpt2"))[-1]["status"] == "done"


def test_a_real_download_without_a_network(make: Callable[..., Catalogue], tmp_path: Path) -> None:
    """HF_HUB_OFFLINE is set for all tests: the library itself refuses, and that is what the user is told."""
    catalogue = make(downloads=Downloads(tmp_path / "hub", fetch_from_hub))
    catalogue.start_download("gpt2")
    last = list(catalogue.download_events("gpt2"))[-1]
    assert last["status"] == "failed"
    assert "HF_HUB_OFFLINE" in last["error"]["message"]


def test_downloads_that_are_refused(make: Callable[..., Catalogue]) -> None:
    with pytest.raises(ModelUnavailable, match="nothing to download"):
        make().start_download("minilm-l6")
    offline = make(offline=True)
    assert "EVERYHEAD_OFFLINE" in str(offline.entry("gpt2").reason)
    with pytest.raises(ModelUnavailable, match="EVERYHEAD_OFFLINE"):
        offline.start_download("gpt2")


def test_no_download_was_started(make: Callable[..., Catalogue]) -> None:
    assert [event["status"] for event in make().download_events("gpt2")] == ["failed"]


def test_only_safetensors_configuration_and_tokenizer_are_fetched() -> None:
    support = ["config.json", "merges.txt", "tokenizer.json", "vocab.json"]
    junk = [
        "64.tflite",
        "flax_model.msgpack",
        "onnx/model.safetensors",
        "pytorch_model.bin",
        "modeling.py",
        "README.md",
    ]
    assert wanted_files(["model.safetensors", *support, *junk]) == ["model.safetensors", *support]
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = "model.safetensors.index.json"
    assert wanted_files([*shards, index, *support, *junk]) == [*shards, index, *support]
    for names in ([*support, *junk], [*shards, *support]):
        with pytest.raises(DownloadFailed, match="safetensors"):
            wanted_files(names)
