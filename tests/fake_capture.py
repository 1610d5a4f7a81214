"""A capture for tests: a small query and key per head, from which any window is computed, as a real capture does.

Heads are peaked in five ways (previous token, itself, first token, look-alikes, spread out). The weights are random, so
nothing here says anything about a real model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from models.errors import RangeError
from models.protocol import Index, MaskKind, Pool, SiteDescription, Span, Window

SITE = "decoder.self"
WIDTH = 8
KINDS = 5


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
    for low, high in itertools.pairwise(edges):
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
        self.sites: tuple[SiteDescription, ...] = (
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
            scores = 0.3 * scores + 9.0 * (key_pos == aims[kind])
        elif kind == KINDS - 1:
            scores = scores * 0.1
        masked = key_pos > query_pos
        weights = scores.masked_fill(masked, -torch.inf).softmax(-1)
        seen: Tensor = weights.masked_fill(masked, torch.nan)
        return seen

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
        grids: Tensor = torch.stack(cells).nan_to_num(0.0).unflatten(0, (n_layers, n_heads))
        return grids

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
