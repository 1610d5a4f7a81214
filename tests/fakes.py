"""A model and a catalogue for tests of the service and the page: quick, deterministic, with the shapes of a real one.

Heads are peaked in five ways (previous token, itself, first token, look-alikes, spread out). The weights are random, so nothing
here says anything about a real model. Used by tests only.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from app.services.errors import ModelNeedsDownload, ModelUnavailable, UnknownModel
from app.services.ports import ModelEntry, OnProgress, State
from models.card import Card, Check
from models.errors import Cancelled, RangeError
from models.protocol import (
    Index,
    MaskKind,
    ModelDescription,
    OnLayer,
    Pool,
    RunResult,
    ShouldStop,
    SiteDescription,
    Span,
    Window,
)
from models.tokens import Token

SITE = "decoder.self"
WIDTH = 8
KINDS = 5


def fake_tokens(text: str, *, add_special_tokens: bool = True) -> list[Token]:
    """Words with the space before them; a character beyond the basic alphabets becomes its bytes; <s> comes first."""
    spans = [(match.start(), match.end()) for match in re.finditer(r"\s?[A-Za-z0-9]+|[\s\S]", text)]
    tokens: list[Token] = [Token(0, 1, "<s>", "<s>", 0, 0, True, None, 1, 1, None)] if add_special_tokens else []
    for word, (start, end) in enumerate(spans):
        piece = text[start:end]
        parts = len(piece.encode("utf-8", "replace")) if len(piece) == 1 and ord(piece) > 0x2E7F else 1
        for part in range(1, parts + 1):
            data = piece.encode("utf-8", "replace")[part - 1 : part].hex().upper() if parts > 1 else None
            number = 2 + sum(ord(c) * 31**i for i, c in enumerate(piece)) % 50_000 + part
            tokens.append(Token(len(tokens), number, piece, piece, start, end, False, word, part, parts, data))
    return tokens


def cell_steps(rows: int, cols: int, max_cells: int) -> int:
    """The smallest common step with which rows × cols fits into max_cells."""
    step = 1
    while math.ceil(rows / step) * math.ceil(cols / step) > max_cells:
        step += 1
    return step


def pool_cells(weights: Tensor, row0: int, col0: int, row_step: int, col_step: int, pool: Pool) -> Tensor:
    """Pool (rows, cols) with NaN where masked; cells are aligned to index 0 of the whole matrix."""
    if row_step == 1 and col_step == 1:
        return weights
    bands = [_band(weights, 1, col0, col_step, pool)]
    return torch.cat([_band(band, 0, row0, row_step, pool) for band in bands])


def _band(weights: Tensor, axis: int, start: int, step: int, pool: Pool) -> Tensor:
    """Pool along one axis, leaving out NaN; a cell of nothing but NaN stays NaN. Means of equal cells only."""
    length = weights.shape[axis]
    edges = [0, *range(step - start % step, length, step), length]
    cells = []
    for low, high in zip(edges, edges[1:], strict=False):
        part = weights.narrow(axis, low, high - low)
        if pool == "mean":
            cells.append(part.nanmean(axis))
        else:
            best = part.nan_to_num(-1.0).amax(axis)
            cells.append(torch.where(best < 0, torch.nan, best))
    return torch.stack(cells, axis)


class FakeCapture:
    """Keeps a small query and key per head; any window is computed from them, as a real capture does."""

    def __init__(self, query: Tensor, key: Tensor) -> None:
        self.query, self.key = query, key  # (n_layers, n_heads, seq_len, WIDTH)
        n_layers, n_heads, seq_len, _ = query.shape
        step = max(1, math.ceil(seq_len / 64))
        self.seq_len = seq_len
        self.sites = (
            SiteDescription(
                SITE,
                n_layers,
                n_heads,
                max(1, n_heads // 3),
                seq_len,
                seq_len,
                step,
                step,
                tuple(MaskKind("causal") for _ in range(n_layers)),
                True,
            ),
        )

    def rows(self, layer: int, head: int, rows: Span) -> Tensor:
        """(rows, seq_len) float32 weights; NaN above the diagonal."""
        start, stop = rows
        query_pos = torch.arange(start, stop).unsqueeze(1)
        key_pos = torch.arange(self.seq_len).unsqueeze(0)
        scores = 2.0 * (self.query[layer, head, start:stop] @ self.key[layer, head].T)
        kind = (layer * self.query.shape[1] + head) % KINDS
        aims = {0: query_pos - 1, 1: query_pos, 2: torch.zeros_like(query_pos)}
        if kind in aims:
            scores = scores + 7.0 * (key_pos == aims[kind])
        elif kind == KINDS - 1:
            scores = scores * 0.1
        masked = key_pos > query_pos
        weights = scores.masked_fill(masked, -torch.inf).softmax(-1)
        return weights.masked_fill(masked, torch.nan)

    def _check(self, site: str, name: str, given: Index, count: int) -> list[int]:
        """The indices that `given` stands for."""
        if site != SITE:
            raise RangeError("site", site, SITE)
        if isinstance(given, str):
            return list(range(count))
        if not 0 <= given < count:
            raise RangeError(name, given, f"0 to {count - 1}")
        return [given]

    def _span(self, name: str, span: Span | None) -> Span:
        if span is None:
            return (0, self.seq_len)
        if not 0 <= span[0] < span[1] <= self.seq_len:
            raise RangeError(name, f"{span[0]}:{span[1]}", f"a:b with 0 <= a < b <= {self.seq_len}")
        return span

    def window(
        self, site: str, layer: Index, head: Index, rows: Span | None, cols: Span | None, max_cells: int, pool: Pool
    ) -> Window:
        """One window, pooled by the smallest steps with at most max_cells cells."""
        layers = self._check(site, "layer", layer, self.query.shape[0])
        heads = self._check(site, "head", head, self.query.shape[1])
        rows, cols = self._span("rows", rows), self._span("cols", cols)
        stack = torch.stack([self.rows(i, j, rows)[:, cols[0] : cols[1]] for i in layers for j in heads])
        weights = stack.amax(0) if "max" in (layer, head) else stack.mean(0)
        step = cell_steps(rows[1] - rows[0], cols[1] - cols[0], max_cells)
        return Window(rows, cols, step, step, pool, pool_cells(weights, rows[0], cols[0], step, step, pool))

    def overview(self, site: str, pool: Pool) -> Tensor:
        """(n_layers, n_heads, g, g); long texts are sampled rather than pooled, which is enough for a fake."""
        self._check(site, "layer", "mean", 1)
        n_layers, n_heads = self.query.shape[:2]
        step = self.sites[0].row_step
        thin = self if self.seq_len <= 256 else FakeCapture(self.query[:, :, ::step], self.key[:, :, ::step])
        step = step if thin is self else 1
        cells = [
            pool_cells(thin.rows(layer, head, (0, thin.seq_len)), 0, 0, step, step, pool)
            for layer in range(n_layers)
            for head in range(n_heads)
        ]
        return torch.stack(cells).nan_to_num(0.0).unflatten(0, (n_layers, n_heads))

    def head_scores(self, site: str) -> list[dict[str, Any]]:
        """One dict per head, null where fewer than 8 rows can be used."""
        self._check(site, "layer", "mean", 1)
        stats = self.row_stats(site)
        return [
            self._score(layer, head, {name: values[layer, head] for name, values in stats.items()})
            for layer in range(self.query.shape[0])
            for head in range(self.query.shape[1])
        ]

    def _score(self, layer: int, head: int, stats: Mapping[str, Tensor]) -> dict[str, Any]:
        rows = self.seq_len - 1
        chance = float((1.0 / torch.arange(1, self.seq_len + 1)).mean())
        few = rows < 8

        def one(name: str) -> dict[str, Any] | None:
            score = float(stats[name][1:].mean()) if not few else 0.0
            corrected = (score - chance) / (1 - chance)
            return None if few else {"score": score, "chance": chance, "corrected": corrected, "rows": rows}

        entropy = float(stats["entropy"].mean())
        most = float(torch.arange(1, self.seq_len + 1).log().mean())
        return {
            "site": SITE,
            "layer": layer,
            "head": head,
            "scores": {name: one(name) for name in ("previous", "self", "first")},
            "entropy": None if few else {"mean": entropy, "normalised": entropy / most, "rows": rows},
            "distance": None
            if few
            else {"mean": float(stats["distance"].mean()), "uniform": (self.seq_len - 1) / 4, "rows": rows},
        }

    def row_stats(self, site: str) -> dict[str, Tensor]:
        """Per-row statistics, each (n_layers, n_heads, seq_len)."""
        n_layers, n_heads = self.query.shape[:2]
        step = math.ceil(self.seq_len / 256)
        if step > 1:  # exact would take half a minute: sample and stretch
            thin = FakeCapture(self.query[:, :, ::step], self.key[:, :, ::step]).row_stats(site)
            return {name: v.repeat_interleave(step, -1)[..., : self.seq_len] for name, v in thin.items()}
        heads = [self._head_stats(layer, head) for layer in range(n_layers) for head in range(n_heads)]
        return {
            name: torch.stack([head[name] for head in heads]).unflatten(0, (n_layers, n_heads)) for name in heads[0]
        }

    def _head_stats(self, layer: int, head: int) -> dict[str, Tensor]:
        weights = self.rows(layer, head, (0, self.seq_len)).nan_to_num(0.0)
        place = torch.arange(self.seq_len)
        own = weights.diagonal()
        previous = torch.cat([torch.tensor([torch.nan]), weights.diagonal(-1)])
        logs = torch.where(weights > 0, weights.log(), 0.0)
        return {
            "entropy": -(weights * logs).sum(-1),
            "distance": (weights * (place.unsqueeze(1) - place).abs()).sum(-1),
            "self": own,
            "previous": previous,
            "first": weights[:, 0],
            "top_key": weights.argmax(-1),
            "row_max": weights.amax(-1),
            "row_sum": weights.sum(-1),
        }

    def tensors(self) -> dict[str, Tensor]:
        """What is stored."""
        return {"query": self.query, "key": self.key}

    def metadata(self) -> dict[str, Any]:
        """What gives the capture back, with the tensors."""
        return {"format": "fake"}


def read_fake_capture(tensors: Mapping[str, Tensor], metadata: dict[str, Any]) -> FakeCapture:
    """The capture that `tensors` and `metadata` gave."""
    if metadata != {"format": "fake"}:
        raise ValueError("not a fake capture")
    return FakeCapture(tensors["query"], tensors["key"])


class FakeModel:
    """30 layers × 9 heads unless told otherwise; can be slow, and can fail, both per layer."""

    def __init__(
        self,
        n_layers: int = 30,
        n_heads: int = 9,
        *,
        max_tokens: int = 8192,
        delay_s: float = 0.0,
        fail_at: int | None = None,
        failure: Exception | None = None,
    ) -> None:
        self.description = ModelDescription(
            "fake",
            "decoder",
            n_layers,
            n_heads,
            max(1, n_heads // 3),
            max_tokens,
            "transformers",
            "float32",
            "float32",
            "fake-1",
        )
        self.delay_s, self.fail_at = delay_s, fail_at
        self.failure = failure or RuntimeError("planted")
        self.runs = 0
        self.layers_done = 0

    def tokenize(self, text: str, *, add_special_tokens: bool = True) -> list[Token]:
        """See `fake_tokens`."""
        return fake_tokens(text, add_special_tokens=add_special_tokens)

    def capture_bytes(self, n_tokens: int) -> int:
        """Query and key in float32."""
        return 2 * 4 * WIDTH * n_tokens * self.description.n_layers * self.description.n_heads

    def run(self, token_ids: Sequence[int], *, on_layer: OnLayer, should_stop: ShouldStop) -> RunResult:
        """A pass whose weights depend on token ids, layer and head alone."""
        self.runs += 1
        self.layers_done = 0
        about = self.description
        started = time.perf_counter()
        table = torch.randn(50_400, WIDTH, generator=torch.Generator().manual_seed(7))
        query, key = [], []
        for layer in range(about.n_layers):
            if should_stop():
                raise Cancelled("stopped")
            time.sleep(self.delay_s)
            if layer == self.fail_at:
                raise self.failure
            turn = torch.randn(2, about.n_heads, WIDTH, WIDTH, generator=torch.Generator().manual_seed(layer)) / 3
            query.append(table[list(token_ids)] @ turn[0])
            key.append(table[list(token_ids)] @ turn[1])
            self.layers_done = layer + 1
            on_layer(layer + 1, about.n_layers)
        capture = FakeCapture(torch.stack(query), torch.stack(key))
        return RunResult(
            capture, fake_card(len(token_ids)), {"forward": time.perf_counter() - started, "checks": 0.001}
        )

    def compare_whole_pass(self, token_ids: Sequence[int], *, should_stop: ShouldStop) -> Check:
        """Always within the bound."""
        time.sleep(self.delay_s)
        if should_stop():
            raise Cancelled("stopped")
        return Check("whole_pass", "pass", 2.5e-6, 1e-5, {"reference": "sdpa"})


def fake_card(n_tokens: int) -> Card:
    """All checks pass; the whole pass is compared up to 256 tokens."""
    whole = Check("whole_pass", "pass", 1.2e-6, 1e-5, {"reference": "sdpa"})
    return Card(
        (
            Check("modules", "pass", 30, 30),
            Check("eval_mode", "pass", "eval"),
            Check("arithmetic", "info", "float32", None, {"weight_precision": "float32", "path": "fake"}),
            Check("row_sums", "pass", 3e-7, 1e-5),
            Check("outside_mask", "pass", 0.0, 0.0),
            Check("non_finite", "pass", 0, 0),
            Check("module_output", "pass", 8e-7, 1e-5, {"rows": 8}),
            whole if n_tokens <= 256 else replace(whole, status="not_compared", value=None),
        )
    )


@dataclass(frozen=True)
class FakeEntry:
    """One line of the fake catalogue."""

    id: str
    name: str
    family: str = "fake"
    kind: str = "decoder"
    n_layers: int | None = 30
    n_heads: int | None = 9
    n_kv_heads: int | None = 3
    max_tokens: int | None = 8192
    state: State = "ready"
    reason: str | None = None
    progress: float | None = None
    source: str = "made up by the tests"
    licence: str = "MIT"
    revision: str | None = "fake-1"
    weight_precision: str = "float32"
    note: str | None = "A fake: its weights are random."

    def as_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


class FakeModels:
    """A catalogue over given models: one ready, one that must be downloaded, one that cannot be used."""

    def __init__(self, model: FakeModel | None = None, *, load_s: float = 0.0) -> None:
        self.model = model or FakeModel()
        self.load_s = load_s
        self.loaded = load_s == 0.0
        self.downloads: list[str] = []

    def list(self) -> Iterable[ModelEntry]:
        """Every model, the default one first."""
        about = self.model.description
        return [
            FakeEntry(
                "fake-30x9",
                "Fake 30 × 9",
                n_layers=about.n_layers,
                n_heads=about.n_heads,
                max_tokens=about.max_tokens,
                state="ready" if self.loaded else "preparing",
                progress=None if self.loaded else 0.5,
            ),
            FakeEntry("gpt2", "GPT-2", "gpt2", n_layers=None, n_heads=None, n_kv_heads=None, state="needs_download"),
            FakeEntry("broken", "Broken", state="unavailable", reason="its folder holds no safetensors file"),
        ]

    def entry(self, model_id: str) -> ModelEntry:
        """One model. Raises UnknownModel."""
        for entry in self.list():
            if entry.id == model_id:
                return entry
        raise UnknownModel(model_id)

    def prepare(self, model_id: str) -> None:
        """Nothing to do ahead of time."""

    def load(self, model_id: str, on_progress: OnProgress, should_stop: ShouldStop) -> FakeModel:
        """The one model, after load_s seconds the first time."""
        entry = self.entry(model_id)
        if entry.state == "needs_download":
            raise ModelNeedsDownload(model_id)
        if entry.state == "unavailable":
            raise ModelUnavailable(model_id, entry.reason or "")
        started = time.perf_counter()
        while not self.loaded and (past := time.perf_counter() - started) < self.load_s:
            if should_stop():
                raise Cancelled("stopped")
            on_progress(past / self.load_s)
            time.sleep(0.05)
        self.loaded = True
        return self.model

    def start_download(self, model_id: str) -> None:
        """Only noted."""
        if self.entry(model_id).state != "needs_download":
            raise ModelUnavailable(model_id, "it does not come from a download")
        self.downloads.append(model_id)

    def download_events(self, model_id: str) -> Iterator[Mapping[str, Any]]:
        """Two steps, then an end."""
        self.entry(model_id)
        yield {"status": "running", "done": 1, "total": 2}
        yield {"status": "done", "done": 2, "total": 2}
