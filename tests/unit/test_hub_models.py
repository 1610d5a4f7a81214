"""Hub models in the catalogue: found in the cache, downloaded when a user asks, refused in plain words."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.services.catalogue import Catalogue
from app.services.downloads import DownloadFailed, Downloads, fetch_from_hub, wanted_files
from app.services.errors import ModelNeedsDownload, ModelUnavailable
from tests.unit.catalogues import COMMIT, Loader, cache_hub_model, load, until


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
