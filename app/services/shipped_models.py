"""The models that we trained, as entries of the catalogue: what they are comes from their cards, without any weights.

A folder that is not there is no model; one whose files are not those that were listed is a model that cannot be used.
How such a model is loaded is known to `models/shipped.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.services.model_sources import CatalogueEntry, OnProgress
from models.errors import EngineError
from models.shipped import FILES, HASHES, WEIGHTS, check_hashes, read_card
from models.transformer_config import TransformerConfig

SHIPPED = ("everyhead-mini", "everyhead-dates")  # in the order in which they are listed
FAMILY = "everyhead"

State = tuple[tuple[int, int], ...]  # size and time of change of each file


@dataclass(frozen=True)
class ShippedModel:
    """A model of ours, in `root`: trained by a recipe in `models/recipes/`, with a card and listed hashes."""

    name: str
    root: Path

    @property
    def id(self) -> str:
        """The model's id in the catalogue."""
        return self.name

    def entry(self) -> CatalogueEntry:
        """From its configuration and card; unavailable if a file is not the one that was listed."""
        base = CatalogueEntry(
            id=self.name,
            name=self.name,
            source="trained and shipped by this project",
            family=FAMILY,
            weight_precision="float16 expanded to float32",
            takes_pair=False,
            implementations=("own",),
        )
        try:
            revision, config, card = _facts(self.name, self.root, _state(self.name, self.root))
        except EngineError as error:
            return base.unavailable(str(error))
        return replace(
            base,
            kind=config.kind,
            n_layers=config.n_layers,
            n_heads=config.n_heads,
            n_kv_heads=config.n_kv_heads or config.n_heads,
            max_tokens=config.max_tokens,
            licence=card.get("licence"),
            note=card.get("about"),
            revision=revision,
        )

    def folder(self, on_progress: OnProgress) -> Path:
        """Where it lies."""
        return self.root / self.name


def shipped_models(root: Path = WEIGHTS) -> list[ShippedModel]:
    """Those of our models whose folder is there."""
    return [ShippedModel(name, root) for name in SHIPPED if (root / name).is_dir()]


def _state(name: str, root: Path) -> State:
    """What tells that files have changed; the hashes themselves take tens of milliseconds."""
    files = [path for path in (root / HASHES, *(root / name / file for file in FILES)) if path.is_file()]
    return tuple((state.st_size, state.st_mtime_ns) for state in (path.stat() for path in files))


@lru_cache(maxsize=8)
def _facts(name: str, root: Path, _state: State) -> tuple[str, TransformerConfig, Mapping[str, Any]]:
    """Revision, shape and card of a model. Raises UnsupportedModel, ConfigError."""
    revision = check_hashes(name, root)
    config = TransformerConfig.from_dict(json.loads((root / name / "config.json").read_text("utf-8")))
    return revision, config, read_card(name, root)
