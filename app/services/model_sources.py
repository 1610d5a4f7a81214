"""Where each model of the catalogue comes from: a package, the hub cache, a local folder. One class for each.

A source says what it knows without loading anything, and gives a folder with a checkpoint. It knows nothing of threads,
of which models are loaded, or of how a checkpoint becomes a model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from transformers import AutoConfig

from app.services.downloads import Downloads
from app.services.ports import State
from models.checkpoints import Checkpoint, IncompleteCheckpoint, UnusableCheckpoint, read_checkpoint
from models.errors import EngineError, UnsupportedModel
from models.model_folders import local_checkpoint, local_title
from models.packaged import (
    WeightPackage,
    convert_gguf,
    find_weights,
    gguf_revision,
    is_converted,
    package_revision,
)

logger = logging.getLogger("everyhead.catalogue")

OnProgress = Callable[[float], None]
BY_TRANSFORMERS = ("transformers",)


@dataclass(frozen=True)
class CatalogueEntry:
    """One model as the catalogue shows it; what is unknown before a download is None."""

    id: str
    name: str
    source: str
    state: State = "ready"
    reason: str | None = None
    progress: float | None = None
    family: str | None = None
    kind: str | None = None
    n_layers: int | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = None
    max_tokens: int | None = None
    licence: str | None = None
    revision: str | None = None
    weight_precision: str | None = None
    note: str | None = None
    takes_pair: bool | None = None
    implementations: tuple[str, ...] = BY_TRANSFORMERS

    def unavailable(self, reason: str) -> CatalogueEntry:
        """This entry, not usable for the reason given."""
        return replace(self, state="unavailable", reason=reason, progress=None)

    def described_by(self, checkpoint: Checkpoint) -> CatalogueEntry:
        """This entry with what its checkpoint says; precision and revision only where the entry has none."""
        return replace(
            self,
            family=checkpoint.family,
            kind=checkpoint.kind,
            n_layers=checkpoint.n_layers,
            n_heads=checkpoint.n_heads,
            n_kv_heads=checkpoint.n_kv_heads,
            max_tokens=checkpoint.max_tokens,
            revision=self.revision or checkpoint.revision,
            weight_precision=self.weight_precision or checkpoint.weight_precision,
            takes_pair=checkpoint.takes_pair,
            note=" ".join(filter(None, (self.note, *checkpoint.notes))) or None,
            implementations=implementations_of(checkpoint),
        )


class ModelSource(Protocol):
    """A place that one model comes from."""

    @property
    def id(self) -> str:
        """The model's id in the catalogue."""

    def entry(self) -> CatalogueEntry:
        """What is known now. Quick; never loads weights or asks the network."""

    def folder(self, on_progress: OnProgress) -> Path:
        """The checkpoint's folder, made if need be. Called only when `entry` says ready."""


@dataclass(frozen=True)
class GgufPackage:
    """A GGUF file in a package, converted under `converted_dir` on first use."""

    base: CatalogueEntry
    package: WeightPackage
    converted_dir: Path

    @property
    def id(self) -> str:
        """The model's id in the catalogue."""
        return self.base.id

    def entry(self) -> CatalogueEntry:
        """From the base: its figures are those of the one file in the package."""
        source = find_weights(self.package)
        if source is None:
            return self.base.unavailable(_not_installed(self.package))
        return replace(self.base, revision=gguf_revision(source))

    def folder(self, on_progress: OnProgress) -> Path:
        """The converted checkpoint; converts it if that was not done."""
        source = find_weights(self.package)
        if source is None:
            raise UnusableCheckpoint(_not_installed(self.package))
        target = self.converted_dir / f"{self.id}-{gguf_revision(source)}"
        return target if is_converted(target) else convert_gguf(source, target, on_progress)


@dataclass(frozen=True)
class FolderPackage:
    """A safetensors checkpoint in a package, used where it lies."""

    base: CatalogueEntry
    package: WeightPackage

    @property
    def id(self) -> str:
        """The model's id in the catalogue."""
        return self.base.id

    def entry(self) -> CatalogueEntry:
        """From the checkpoint."""
        folder = find_weights(self.package)
        if folder is None:
            return self.base.unavailable(_not_installed(self.package))
        base = replace(self.base, revision=package_revision(self.package))
        return _described(base, lambda: read_checkpoint(folder, within=folder))

    def folder(self, on_progress: OnProgress) -> Path:
        """The folder in the package."""
        folder = find_weights(self.package)
        if folder is None:
            raise UnusableCheckpoint(_not_installed(self.package))
        return folder


@dataclass(frozen=True)
class HubModel:
    """A model of the hub: from the local cache, or downloaded when a user asks."""

    base: CatalogueEntry
    repo: str
    downloads: Downloads = field(compare=False)
    offline: bool = False

    @property
    def id(self) -> str:
        """The model's id in the catalogue."""
        return self.base.id

    def entry(self) -> CatalogueEntry:
        """Ready if the cache holds a whole checkpoint, else preparing or needs_download."""
        progress = self.downloads.progress(self.repo)
        if progress and progress.status == "progress":
            return replace(self.base, state="preparing", progress=progress.as_event()["progress"])
        failure = progress.reason if progress else None
        reason = "Downloads are switched off (EVERYHEAD_OFFLINE)." if self.offline else failure
        missing = replace(self.base, state="needs_download", reason=reason)
        snapshot = self.downloads.cached_snapshot(self.repo)
        if snapshot is None:
            return missing
        base = replace(self.base, revision=snapshot.name)
        try:
            return _described(
                base, lambda: read_checkpoint(snapshot, within=self.downloads.cache_folder(self.repo)), pass_on=True
            )
        except IncompleteCheckpoint:  # a download that was interrupted, or files that another program fetched
            return missing

    def folder(self, on_progress: OnProgress) -> Path:
        """The snapshot in the cache."""
        snapshot = self.downloads.cached_snapshot(self.repo)
        if snapshot is None:
            raise UnusableCheckpoint("it is no longer in the hub cache")
        return snapshot


@dataclass(frozen=True)
class LocalModel:
    """A checkpoint in a sub-folder of the models folder."""

    models_dir: Path
    name: str

    @property
    def id(self) -> str:
        """The model's id in the catalogue."""
        return f"local:{self.name}"

    def entry(self) -> CatalogueEntry:
        """From the checkpoint; unavailable with the reason where it cannot be used."""
        base = CatalogueEntry(id=self.id, name=local_title(self.name), source="folder in the models folder")
        return _described(base, lambda: local_checkpoint(self.models_dir, self.name))

    def folder(self, on_progress: OnProgress) -> Path:
        """The folder, checked again."""
        return local_checkpoint(self.models_dir, self.name).folder


def implementations_of(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The code that can run a checkpoint; the first is the default. GPT-2 runs on our own Transformer.

    Raises:  ConfigError for a shape that no Transformer can have
    """
    if checkpoint.family != "gpt2":
        return BY_TRANSFORMERS
    from models.gpt2_weights import config_from_gpt2  # here: other entries of the list need no engine

    try:
        config_from_gpt2(AutoConfig.from_pretrained(checkpoint.folder, local_files_only=True))
    except UnsupportedModel:  # an option that ours does not have
        return BY_TRANSFORMERS
    return ("own", "transformers")


def _not_installed(package: WeightPackage) -> str:
    return f"the package {package.distribution} is not installed"


def _described(base: CatalogueEntry, read: Callable[[], Checkpoint], *, pass_on: bool = False) -> CatalogueEntry:
    """The entry, unavailable where its checkpoint cannot be used, so that none can break the list of all.

    With `pass_on` an IncompleteCheckpoint is passed on.
    """
    try:
        return base.described_by(read())
    except IncompleteCheckpoint as error:
        if pass_on:
            raise
        return base.unavailable(str(error))
    except EngineError as error:
        return base.unavailable(str(error))
    except Exception as error:  # the files are anybody's, and so is what a library makes of them
        logger.warning("describing %s failed", base.id, exc_info=error)
        return base.unavailable(f"its files cannot be understood ({type(error).__name__})")
