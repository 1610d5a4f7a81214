"""The figures of heads as JSON-ready dicts, each with what uniform attention would give.

    score      mean over the usable rows of the weight on the target keys
    chance     mean over the same rows of the share of targets among the visible keys
    corrected  (score − chance) / (1 − chance)

With fewer than MIN_ROWS usable rows there is no number. Works on what `models/head_stats.py` collected; knows nothing
of where that is stored.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from models.head_targets import MIN_ROWS, SCORES, VERSIONS
from models.protocol import SiteDescription, Span

DECIMALS = 6  # of all figures: as many as float32 sums of shares have right

Figures = dict[str, Any]


def rounded(value: float) -> float:
    """A figure as it is told."""
    return round(value, DECIMALS)


def corrected_score(score: float, chance: float) -> float:
    """How much of what chance leaves open the score takes: 0 is chance, 1 is all."""
    return (score - chance) / (1 - chance)


def distance_bins(length: int) -> list[Span]:
    """Half-open ranges of distances for drawing: 0, 1, then doubling; the last holds length − 1."""
    edges = [0, 1]
    while edges[-1] < length:
        edges.append(edges[-1] * 2)
    return list(itertools.pairwise(edges))


def head_scores(figures: Mapping[str, Tensor]) -> list[Figures]:
    """Put the figures of one layer into words.

    Shapes:  figures: as HeadCollector.figures gives them -> one dict per head
    Values:  {"scores": {name: {score, chance, corrected, rows} or None},
              "entropy": {mean (nats), normalised (entropy / ln visible keys, mean), rows} or None,
              "distance": {mean, uniform, within_50, within_90 (distances that hold so much of the mass), bins (mass by
              distance_bins), rows} or None,
              "concentration": {share (what the most-read key gets, mean over rows), key, chance, rows} or None,
              "own_sink": mean mass that the head's own sink takes, 0 without one; None on too short a text alone,
              "without": {"first" | "special": {removed (mean mass left out) or None, the same four} or None}}
    """
    n_heads = figures["removed"].shape[-1]
    by_version = [_version(figures, at) for at in range(len(figures["removed"]))]
    left_out = dict.fromkeys(VERSIONS[1:]) | dict(zip(VERSIONS[1:], by_version[1:], strict=False))
    return [
        {
            **{name: value for name, value in by_version[0][head].items() if name != "removed"},
            "own_sink": by_version[0][head]["removed"],
            "without": {name: None if heads is None else heads[head] for name, heads in left_out.items()},
        }
        for head in range(n_heads)
    ]


class ScoresOfSites:
    """The figures of all heads in words, each site's made once, whichever thread asks first.

    About 13 kB a head, which `capture_bytes` does not count: they are not stored, and few captures are open at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, list[Figures]] = {}

    def read(self, site: SiteDescription, figures: Mapping[str, Tensor]) -> list[Figures]:
        """One dict per head: site, layer, head and what `head_scores` gives. The list is the caller's own.

        Shapes:  figures: as HeadCollector.figures gives them, layers first
        """
        with self._lock:
            if site.site not in self._told:
                self._told[site.site] = [
                    {"site": site.site, "layer": layer, "head": head, **told}
                    for layer in range(site.n_layers)
                    for head, told in enumerate(head_scores({name: of[layer] for name, of in figures.items()}))
                ]
            return list(self._told[site.site])


def _version(figures: Mapping[str, Tensor], at: int) -> list[Figures]:
    removed, entropy = figures["removed"][at].T.tolist(), figures["entropy"][at].T.tolist()
    concentration = figures["concentration"][at].T.tolist()
    scores = figures["scores"][at].permute(2, 0, 1).tolist()  # heads, scores, (score, chance, rows)
    distances = _distances(figures, at)
    return [
        {
            "removed": _removed(*removed[head]),
            "scores": {name: _score(*scores[head][place]) for place, name in enumerate(SCORES)},
            "entropy": _told(entropy[head], "mean", "normalised"),
            "distance": distances[head],
            "concentration": _concentration(*concentration[head]),
        }
        for head in range(len(removed))
    ]


def _can_tell(rows: float, *values: float) -> bool:
    # not finite: the pass gave no numbers, and its card fails
    return rows >= MIN_ROWS and all(map(math.isfinite, values))


def _removed(share: float, rows: float) -> float | None:
    # told of all rows that the mask lets count: also where it is nearly everything, so that no row has anything left
    return rounded(share) if _can_tell(rows, share) else None


def _score(score: float, chance: float, rows: float) -> Figures | None:
    if not _can_tell(rows, score):
        return None
    return {
        "score": rounded(score),
        "chance": rounded(chance),
        "corrected": rounded(corrected_score(score, chance)),
        "rows": int(rows),
    }


def _told(values: Sequence[float], *names: str) -> Figures | None:
    *numbers, rows = values
    if not _can_tell(rows, *numbers):
        return None
    return {**{name: rounded(value) for name, value in zip(names, numbers, strict=True)}, "rows": int(rows)}


def _concentration(share: float, key: float, chance: float, rows: float) -> Figures | None:
    if not _can_tell(rows, share):
        return None
    return {"share": rounded(share), "key": int(key), "chance": rounded(chance), "rows": int(rows)}


def _distances(figures: Mapping[str, Tensor], at: int) -> list[Figures | None]:
    rows = figures["entropy"][at, 2].tolist()  # the same rows count
    if "by_distance" not in figures:
        return [None] * len(rows)
    mass = figures["by_distance"][at].double()  # (n_heads, distances)
    uniform = figures["uniform_distance"][at].tolist()
    means = (mass @ torch.arange(mass.shape[1], dtype=torch.float64)).tolist()
    half, most = (within(mass, share).tolist() for share in (0.5, 0.9))
    bins = binned(mass).tolist()
    return [
        {
            "mean": rounded(means[head]),
            "uniform": rounded(uniform[head]),
            "within_50": half[head],
            "within_90": most[head],
            "bins": [rounded(value) for value in bins[head]],
            "rows": int(rows[head]),
        }
        if _can_tell(rows[head], means[head])
        else None
        for head in range(len(rows))
    ]


def within(mass: Tensor, share: float) -> Tensor:
    """The smallest distance up to which there is at least this share of the mass.

    Shapes:  mass (n, distances), of any total -> (n), int64
    """
    held = mass.double().cumsum(-1)
    return (held < share * held[:, -1:]).sum(-1)


def binned(mass: Tensor) -> Tensor:
    """Sum up the mass within each of distance_bins.

    Shapes:  (n, distances) -> (n, bins)
    """
    return torch.stack([mass[:, first:stop].sum(-1) for first, stop in distance_bins(mass.shape[1])], -1)
