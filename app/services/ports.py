"""What the service needs from a catalogue of models. `app/services/catalogue.py` and the tests' fake both fit.

Nothing here says where models live or how they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from torch import Tensor

from models.protocol import AttentionModel, CaptureReader

State = Literal["ready", "preparing", "needs_download", "unavailable"]
OnProgress = Callable[[float], None]  # fraction 0..1 of loading
ReadCapture = Callable[[Mapping[str, Tensor], dict[str, Any]], CaptureReader]


class ModelEntry(Protocol):
    """One model of the catalogue; what is unknown before a download is None."""

    @property
    def id(self) -> str:
        """Name in the API."""

    @property
    def name(self) -> str:
        """Name for people."""

    @property
    def family(self) -> str | None:
        """transformers' model type."""

    @property
    def kind(self) -> str | None:
        """decoder, encoder or encoder-decoder."""

    @property
    def n_layers(self) -> int | None:
        """Layers."""

    @property
    def n_heads(self) -> int | None:
        """Heads of a layer."""

    @property
    def n_kv_heads(self) -> int | None:
        """Key/value heads of a layer."""

    @property
    def max_tokens(self) -> int | None:
        """Longest text."""

    @property
    def state(self) -> State:
        """Whether it can be used now."""

    @property
    def reason(self) -> str | None:
        """Why it cannot be used."""

    @property
    def progress(self) -> float | None:
        """0..1 while it is being prepared."""

    @property
    def source(self) -> str:
        """Where the weights come from."""

    @property
    def licence(self) -> str | None:
        """Of the weights."""

    @property
    def revision(self) -> str | None:
        """Changes whenever the weights do."""

    @property
    def weight_precision(self) -> str | None:
        """Of the stored weights."""

    @property
    def takes_pair(self) -> bool | None:
        """Whether it reads a second text beside the first."""

    @property
    def implementations(self) -> Sequence[str]:
        """The code that can run it, "own" or "transformers"; the first is the default."""

    @property
    def note(self) -> str | None:
        """What else people must know."""


class Models(Protocol):
    """The catalogue. `load` may take long and is only called from worker threads."""

    def list(self) -> Iterable[ModelEntry]:
        """Every model, the default one first."""

    def entry(self, model_id: str) -> ModelEntry:
        """One model. Raises UnknownModel."""

    def prepare(self, model_id: str) -> None:
        """Start loading in the background; does nothing if it is loaded or being loaded."""

    def is_loaded(self, model_id: str, implementation: str | None = None) -> bool:
        """Whether `load` would answer at once. Raises UnknownModel."""

    def load(
        self,
        model_id: str,
        on_progress: OnProgress,
        should_stop: Callable[[], bool],
        implementation: str | None = None,
    ) -> AttentionModel:
        """The loaded model; waits until it is. Raises ModelUnavailable, ModelNeedsDownload, Cancelled.

        implementation: one of the entry's, its first if left out
        """

    def start_download(self, model_id: str) -> None:
        """Start fetching the weights. Raises UnknownModel, ModelUnavailable."""

    def download_events(self, model_id: str) -> Iterator[Mapping[str, Any]]:
        """Progress of a download, from now to its end."""
