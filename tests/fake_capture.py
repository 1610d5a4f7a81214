"""A capture for tests: a small query and key per head, from which any window is computed, as a real capture does.

Heads are peaked in five ways (previous token, itself, first token, look-alikes, spread out; in cross-attention: along
the diagonal, last token, first token, look-alikes, spread out). The weights are random, so nothing here says anything
about a real model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from models.errors import RangeError
from models.protocol import Index, MaskKind, Pool, SiteDescription, Span, Window

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


class FakeSite:
    """One site: query (n_layers, n_heads, query_len, WIDTH), key (n_layers, n_heads, key_len, WIDTH)."""

    def __init__(self, name: str, query: Tensor, key: Tensor) -> None:
        self.name, self.query, self.key = name, query, key
        self.n_layers, self.n_heads, self.query_len, _ = query.shape
        self.key_len = key.shape[2]
        self.causal, self.cross = name == "decoder.self", name.endswith("cross")
        self.description = SiteDescription(
            name,
            self.n_layers,
            self.n_heads,
            max(1, self.n_heads // 3),
            self.query_len,
            self.key_len,
            max(1, math.ceil(self.query_len / 64)),
            max(1, math.ceil(self.key_len / 64)),
            (MaskKind("causal" if self.causal else "full"),) * self.n_layers,
            True,
        )

    def thinned(self, row_step: int, col_step: int) -> FakeSite:
        """Every so many rows and columns of it: exact figures of long texts would take half a minute."""
        return FakeSite(self.name, self.query[:, :, ::row_step], self.key[:, :, ::col_step])

    def rows(self, layer: int, head: int, rows: Span) -> Tensor:
        """(rows, key_len) float32 weights; NaN where masked."""
        start, stop = rows
        query_pos = torch.arange(start, stop).unsqueeze(1)
        key_pos = torch.arange(self.key_len).unsqueeze(0)
        scores = 2.0 * (self.query[layer, head, start:stop] @ self.key[layer, head].T)
        kind = (layer * self.n_heads + head) % KINDS
        along = query_pos * self.key_len // max(1, self.query_len)
        aims = {0: query_pos - 1, 1: query_pos, 2: torch.zeros_like(query_pos)}
        if self.cross:
            aims |= {0: along, 1: torch.full_like(query_pos, self.key_len - 1)}
        if kind in aims:
            scores = 0.3 * scores + 9.0 * (key_pos == aims[kind])
        elif kind == KINDS - 1:
            scores = scores * 0.1
        masked = (key_pos > query_pos) & self.causal
        weights = scores.masked_fill(masked, -torch.inf).softmax(-1)
        seen: Tensor = weights.masked_fill(masked, torch.nan)
        return seen

    def head_stats(self, layer: int, head: int) -> dict[str, Tensor]:
        """Per-row statistics of one head."""
        weights = self.rows(layer, head, (0, self.query_len)).nan_to_num(0.0)
        logs = torch.where(weights > 0, weights.log(), 0.0)
        stats = {
            "entropy": -(weights * logs).sum(-1),
            "first": weights[:, 0],
            "top_key": weights.argmax(-1),
            "row_max": weights.amax(-1),
            "row_sum": weights.sum(-1),
        }
        if self.cross:
            return stats
        place = torch.arange(self.query_len)
        stats["distance"] = (weights * (place.unsqueeze(1) - place).abs()).sum(-1)
        stats["self"] = weights.diagonal()
        stats["previous"] = torch.cat([torch.tensor([torch.nan]), weights.diagonal(-1)])
        return stats

    def score(self, layer: int, head: int, stats: Mapping[str, Tensor]) -> dict[str, Any]:
        """The figures of one head, null where fewer than 8 rows can be used."""
        visible = torch.arange(1, self.query_len + 1) if self.causal else torch.full((self.query_len,), self.key_len)
        rows, chance = self.query_len - 1, float((1.0 / visible).mean())
        few = rows < 8

        def one(name: str) -> dict[str, Any] | None:
            if few or name not in stats:
                return None
            score = float(stats[name][1:].mean())
            return {"score": score, "chance": chance, "corrected": (score - chance) / (1 - chance), "rows": rows}

        entropy, most = float(stats["entropy"].mean()), float(visible.log().mean())
        distance = None if few or self.cross else float(stats["distance"].mean())
        return {
            "site": self.name,
            "layer": layer,
            "head": head,
            "scores": {name: one(name) for name in ("previous", "self", "first")},
            "entropy": None if few else {"mean": entropy, "normalised": entropy / most, "rows": rows},
            "distance": None
            if distance is None
            else {"mean": distance, "uniform": (self.query_len - 1) / 4, "rows": rows},
        }


class FakeCapture:
    """Keeps a small query and key per head and site; any window is computed from them, as a real capture does."""

    def __init__(self, sites: Sequence[FakeSite]) -> None:
        self.by_name = {site.name: site for site in sites}
        self.sites: tuple[SiteDescription, ...] = tuple(site.description for site in sites)

    def _site(self, name: str) -> FakeSite:
        if name not in self.by_name:
            raise RangeError("site", name, f"one of {', '.join(self.by_name)}")
        return self.by_name[name]

    @staticmethod
    def _check(name: str, given: Index, count: int) -> list[int]:
        """The indices that `given` stands for."""
        if isinstance(given, str):
            return list(range(count))
        if not 0 <= given < count:
            raise RangeError(name, given, f"0 to {count - 1}")
        return [given]

    @staticmethod
    def _span(name: str, span: Span | None, length: int) -> Span:
        if span is None:
            return (0, length)
        if not 0 <= span[0] < span[1] <= length:
            raise RangeError(name, f"{span[0]}:{span[1]}", f"a:b with 0 <= a < b <= {length}")
        return span

    def window(
        self, site: str, layer: Index, head: Index, rows: Span | None, cols: Span | None, max_cells: int, pool: Pool
    ) -> Window:
        """One window, pooled by the smallest steps with at most max_cells cells."""
        of = self._site(site)
        layers, heads = self._check("layer", layer, of.n_layers), self._check("head", head, of.n_heads)
        rows, cols = self._span("rows", rows, of.query_len), self._span("cols", cols, of.key_len)
        stack = torch.stack([of.rows(i, j, rows)[:, cols[0] : cols[1]] for i in layers for j in heads])
        weights = stack.amax(0) if "max" in (layer, head) else stack.mean(0)
        step = cell_steps(rows[1] - rows[0], cols[1] - cols[0], max_cells)
        return Window(rows, cols, step, step, pool, pool_cells(weights, rows[0], cols[0], step, step, pool))

    def overview(self, site: str, pool: Pool) -> Tensor:
        """(n_layers, n_heads, g_rows, g_cols); long texts are sampled rather than pooled: enough here."""
        of = self._site(site)
        steps = of.description.row_step, of.description.col_step
        if max(of.query_len, of.key_len) > 256:
            of, steps = of.thinned(*steps), (1, 1)
        cells = [
            pool_cells(of.rows(layer, head, (0, of.query_len)), 0, 0, *steps, pool)
            for layer in range(of.n_layers)
            for head in range(of.n_heads)
        ]
        grids: Tensor = torch.stack(cells).nan_to_num(0.0).unflatten(0, (of.n_layers, of.n_heads))
        return grids

    def head_scores(self, site: str) -> list[dict[str, Any]]:
        """One dict per head."""
        of, stats = self._site(site), self.row_stats(site)
        return [
            of.score(layer, head, {name: values[layer, head] for name, values in stats.items()})
            for layer in range(of.n_layers)
            for head in range(of.n_heads)
        ]

    def row_stats(self, site: str) -> dict[str, Tensor]:
        """Per-row statistics, each (n_layers, n_heads, query_len)."""
        of = self._site(site)
        step = math.ceil(max(of.query_len, of.key_len) / 256)
        if step > 1:  # sample and stretch
            thin = FakeCapture([of.thinned(step, step)]).row_stats(site)
            return {name: v.repeat_interleave(step, -1)[..., : of.query_len] for name, v in thin.items()}
        heads = [of.head_stats(layer, head) for layer in range(of.n_layers) for head in range(of.n_heads)]
        return {name: torch.stack([one[name] for one in heads]).unflatten(0, (of.n_layers, -1)) for name in heads[0]}

    def tensors(self) -> dict[str, Tensor]:
        """What is stored."""
        return {
            f"{name}|{part}": values
            for name, site in self.by_name.items()
            for part, values in (("query", site.query), ("key", site.key))
        }

    def metadata(self) -> dict[str, Any]:
        """What gives the capture back, with the tensors."""
        return {"format": "fake", "sites": list(self.by_name)}


def read_fake_capture(tensors: Mapping[str, Tensor], metadata: dict[str, Any]) -> FakeCapture:
    """The capture that `tensors` and `metadata` gave."""
    if metadata.get("format") != "fake":
        raise ValueError("not a fake capture")
    return FakeCapture([FakeSite(name, tensors[f"{name}|query"], tensors[f"{name}|key"]) for name in metadata["sites"]])
