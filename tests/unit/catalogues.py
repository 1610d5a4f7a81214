"""What the catalogue's tests share: a fake loader, a catalogue with empty folders, a hub cache with one model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from app.services.catalogue import Catalogue
from app.services.model_sources import CatalogueEntry
from models.protocol import AttentionModel
from tests.unit.tiny_checkpoints import save_gpt2

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

    def __call__(self, folder: Path, entry: CatalogueEntry, implementation: str) -> AttentionModel:
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
