"""Fixtures of the catalogue's tests: a fake loader and a catalogue with empty folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.services.catalogue import Catalogue
from app.services.downloads import Downloads
from tests.unit.catalogues import Loader


@pytest.fixture
def loader() -> Iterator[Loader]:
    """A loader that lets go of its threads when the test is over."""
    loader = Loader()
    yield loader
    loader.go.set()


@pytest.fixture
def make(tmp_path: Path, loader: Loader) -> Callable[..., Catalogue]:
    """A catalogue with an empty hub cache, no shipped models, the models folder tmp_path/models and the fake loader."""
    (tmp_path / "models").mkdir()

    def build(**changes: Any) -> Catalogue:
        values: dict[str, Any] = {
            "data_dir": tmp_path / "data",
            "models_dir": tmp_path / "models",
            "shipped_dir": tmp_path / "weights",
            "load_model": loader,
            "downloads": Downloads(tmp_path / "hub"),
        }
        return Catalogue(**(values | changes))

    return build
