"""Statistics of heads from the statistics of their rows, each with what uniform attention would give.

    score      mean over the usable rows of the weight on the target key
    chance     mean over the same rows of 1 / (number of visible keys): the score of uniform attention
    corrected  (score − chance) / (1 − chance)

A row is usable if its target key is visible and at least one other key is: a row with one key says nothing. With fewer
than MIN_ROWS usable rows there is no number. Works on what `models/blockwise.py` measured; knows nothing of where that
is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from models.masks import MaskLayout

MIN_ROWS = 8
TARGETS = ("previous", "self", "first")


def head_scores(rows: Mapping[str, Tensor], mask: MaskLayout) -> list[dict[str, Any]]:
    """Summarise the heads of one layer.

    Shapes:  rows: each (n_heads, query_len), as in AttentionSummary.rows -> one dict per head, JSON-ready
    Values:  {"scores": {"previous" | "self" | "first": {score, chance, corrected, rows} or None},
              "entropy": {mean (nats), normalised (entropy / ln visible keys, mean), rows} or None,
              "distance": {mean, uniform (tokens), rows} or None}; None where the mask leaves fewer than MIN_ROWS usable
              rows or
             the site has no such statistic
    """
    visible = mask.visible_counts()
    several = visible >= 2
    n_heads = rows["entropy"].shape[0]
    scores = {
        name: _target_scores(rows.get(name), _target_visible(mask, name) & several, visible, n_heads)
        for name in TARGETS
    }
    entropies = _entropies(rows["entropy"], several, visible)
    distances = _distances(rows.get("distance"), several, mask, n_heads)
    return [
        {
            "scores": {name: per_head[head] for name, per_head in scores.items()},
            "entropy": entropies[head],
            "distance": distances[head],
        }
        for head in range(n_heads)
    ]


def _target_visible(mask: MaskLayout, name: str) -> Tensor:
    n_queries = mask.query_len
    query_pos = torch.arange(n_queries, device=mask.starts.device)
    key_pos = {"previous": query_pos - 1, "self": query_pos, "first": torch.zeros_like(query_pos)}[name]
    inside = (key_pos >= mask.starts) & (key_pos < mask.stops)
    if mask.dense is None:
        return inside
    return inside & mask.dense.gather(1, key_pos.clamp(0, mask.key_len - 1)[:, None])[:, 0]


def _target_scores(values: Tensor | None, usable: Tensor, visible: Tensor, n_heads: int) -> list[dict[str, Any] | None]:
    n_rows = int(usable.sum())
    if values is None or n_rows < MIN_ROWS:
        return _nothing(n_heads)
    chance = float((1.0 / visible[usable].double()).mean())
    means = values[:, usable].double().mean(-1).tolist()
    return [
        {"score": mean, "chance": chance, "corrected": (mean - chance) / (1 - chance), "rows": n_rows} for mean in means
    ]


def _entropies(entropy: Tensor, usable: Tensor, visible: Tensor) -> list[dict[str, Any] | None]:
    n_rows = int(usable.sum())
    if n_rows < MIN_ROWS:
        return _nothing(entropy.shape[0])
    of_rows = entropy[:, usable].double()
    normalised = (of_rows / visible[usable].double().log()).mean(-1).tolist()
    means = of_rows.mean(-1).tolist()
    return [{"mean": m, "normalised": n, "rows": n_rows} for m, n in zip(means, normalised, strict=True)]


def _distances(distance: Tensor | None, usable: Tensor, mask: MaskLayout, n_heads: int) -> list[dict[str, Any] | None]:
    n_rows = int(usable.sum())
    if distance is None or n_rows < MIN_ROWS:
        return _nothing(n_heads)
    uniform = float(mask.mean_distances()[usable].mean())
    means = distance[:, usable].double().mean(-1).tolist()
    return [{"mean": mean, "uniform": uniform, "rows": n_rows} for mean in means]


def _nothing(n_heads: int) -> list[dict[str, Any] | None]:
    # a statistic that this site or text cannot give, for every head
    return [None] * n_heads
