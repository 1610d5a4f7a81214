"""What the service needs from a model, and nothing more: describe, tokenise, run, read windows.

Implemented by `models/huggingface.py` (any transformers model) and by the tests' fakes. Nothing here says where a model
lives, so that an implementation may run in another process or on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import Tensor

from models.card import Card, Check
from models.token_facts import TokenFacts
from models.tokens import Token

if TYPE_CHECKING:
    from models.masks import MaskLayout

Pool = Literal["max", "mean"]
Index = int | Literal["mean", "max"]  # a layer or head, or the mean / maximum over all of them
Span = tuple[int, int]  # half-open [start, stop)
Rows = Span | list[int]  # a run of rows, or chosen ones
OnLayer = Callable[[int, int], None]  # (modules done, modules in all), after each attention module
ShouldStop = Callable[[], bool]  # asked before each attention module


@dataclass(frozen=True)
class ModelDescription:
    """What is known of a model before any run. n_heads and n_kv_heads are those of its first site."""

    family: str  # transformers' model_type: "llama", "bert", …
    kind: Literal["decoder", "encoder", "encoder-decoder"]
    n_layers: int
    n_heads: int
    n_kv_heads: int
    max_tokens: int
    implementation: str  # "transformers" or "own"
    dtype: str  # of the arithmetic: "float32", "float64"
    weight_precision: str  # of the stored weights, e.g. "float32", "4-bit (Q4_1) expanded to float32"
    revision: str  # changes whenever the weights do
    takes_pair: bool = False  # whether it reads a second text beside the first (BERT-type encoders)


@dataclass(frozen=True)
class MaskKind:
    """One layer's mask in words.

    kind    causal (keys 0..i), full, causal_window (the last `window` keys up to i), window (|i − j| ≤ window), ranges,
            dense
    window  keys in a window, None for the other kinds
    """

    kind: str
    window: int | None = None


@dataclass(frozen=True)
class SiteDescription:
    """One site of a run: its shape, how its overview is pooled, and each layer's mask."""

    site: str  # decoder.self, encoder.self, decoder.cross
    n_layers: int
    n_heads: int
    n_kv_heads: int
    query_len: int
    key_len: int
    row_step: int  # query rows per overview cell
    col_step: int  # keys per overview cell
    masks: tuple[MaskKind, ...]  # one per layer
    sums_to_one: bool  # False where heads have a sink logit, which takes part of each row


@dataclass(frozen=True)
class Window:
    """A rectangle of one head's weights.

    weights (ceil(rows / row_step), ceil(cols / col_step)), NaN where no weight of the cell is visible; exact when both
    steps are 1. Cells are aligned to index 0 of the whole matrix: the first and the last may be partial.
    """

    rows: Span
    cols: Span
    row_step: int
    col_step: int
    pool: Pool
    weights: Tensor


class CaptureReader(Protocol):
    """What a run keeps, read back. All methods may be called from several threads at once."""

    sites: tuple[SiteDescription, ...]

    def site(self, name: str) -> SiteDescription:
        """The description of one site. Raises RangeError."""

    def window(
        self, site: str, layer: Index, head: Index, rows: Span | None, cols: Span | None, max_cells: int, pool: Pool
    ) -> Window:
        """One window, pooled by the smallest steps with at most max_cells cells. Raises RangeError."""

    def weights(self, site: str, layer: int, heads: Span, rows: Rows, cols: Rows) -> Tensor:
        """Weights of neighbouring heads of one module, exact; rows and columns are each a span or a list.

        Shapes:  -> (heads, rows, cols), float32 (float64 for float64 models)
        Values:  0 where the mask hides the key
        Raises:  RangeError
        """

    def weights_of_layers(self, site: str, layers: Span, heads: Span, rows: Rows, cols: Rows) -> Tensor:
        """The same rectangle of neighbouring layers; few weights of many layers come fastest so.

        Shapes:  -> (layers, heads, rows, cols), as `weights` gives them
        Raises:  RangeError
        """

    def mask(self, site: str, layer: int) -> MaskLayout:
        """Which keys each query of a module may attend to. Raises RangeError."""

    def overview(self, site: str, pool: Pool) -> Tensor:
        """(n_layers, n_heads, g_rows, g_cols), float32: max, or mean over visible cells; 0 where wholly masked."""

    def head_scores(self, site: str) -> list[dict[str, Any]]:
        """One JSON-ready dict per head: site, layer, head, scores, entropy, distance (see models/head_scores.py)."""

    def sink_share(self, site: str, layer: int) -> Tensor | None:
        """The share of each row that goes to its head's sink logit, (n_heads, query_len); None without such logits."""

    def figures(self, site: str) -> dict[str, Tensor]:
        """What was collected of every head, layers first (see models/head_stats.py)."""

    def row_stats(self, site: str) -> dict[str, Tensor]:
        """Per-row statistics, each (n_layers, n_heads, query_len)."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be stored, by flat name (goes into one safetensors file)."""

    def metadata(self) -> dict[str, Any]:
        """JSON-ready description that, with the tensors, gives the capture back."""


@dataclass(frozen=True)
class RunResult:
    """One finished run: what was kept, what was checked, and seconds by stage."""

    capture: CaptureReader
    card: Card
    seconds: dict[str, float]


class AttentionModel(Protocol):
    """A model that one can look into. One call of `run` at a time per model."""

    description: ModelDescription

    def tokenize(
        self,
        text: str,
        *,
        text_pair: str | None = None,
        add_special_tokens: bool = True,
        should_stop: ShouldStop = lambda: False,
    ) -> list[Token]:
        """Tokens of the text, with offsets into it, and of the second text of a pair. Does not run the model.

        Raises UnsupportedModel for a pair where `description.takes_pair` is False, and Cancelled. May be called from
        several threads at once.
        """

    def tokenize_target(self, text: str) -> list[Token]:
        """What the decoder reads for a target text: its start token, then the text. Does not run the model.

        Raises UnsupportedModel for models that are no encoder–decoder.
        """

    def write_target(
        self, token_ids: Sequence[int], *, segments: Sequence[int] | None = None, should_stop: ShouldStop
    ) -> list[Token]:
        """What the model writes by itself for a source, as what its decoder reads. Raises Cancelled between tokens."""

    def capture_bytes(self, n_tokens: int, n_target: int = 0) -> int:
        """Bytes that the capture of a run over n_tokens, and n_target of a target, takes in memory and on disk."""

    def run(
        self,
        token_ids: Sequence[int],
        *,
        target_ids: Sequence[int] | None = None,
        segments: Sequence[int] | None = None,
        facts: TokenFacts | None = None,
        target_facts: TokenFacts | None = None,
        seed: int | None = None,
        on_layer: OnLayer,
        should_stop: ShouldStop,
    ) -> RunResult:
        """Run one text and capture every head. Raises Cancelled, CaptureError.

        target_ids: what the decoder reads, only for encoder–decoder models; segments: 0 or 1 for each token of a pair;
        facts, target_facts: which tokens are special or punctuation, None for unknown; seed: of the draw of rows and
        cells that are checked, None for another each time.
        """

    def compare_whole_pass(
        self,
        token_ids: Sequence[int],
        *,
        target_ids: Sequence[int] | None = None,
        segments: Sequence[int] | None = None,
        should_stop: ShouldStop,
    ) -> Check:
        """The card's `whole_pass` check: our pass against the model's own default kernel. Raises Cancelled."""


def device_of_choice() -> torch.device:
    """CUDA when torch sees a GPU, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
