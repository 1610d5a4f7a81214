"""The figures of one layer's heads from what was collected of its weights: sums over rows, in float64.

Knows what a layer's collection looks like, not how it was made; `models/head_scores.py` puts the figures into JSON.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from models.head_targets import MIN_ROWS, NEAR, OFFSETS, PLACE, SCORES, VERSIONS, HeadTargets

TINY = 1e-37  # inside a logarithm that is multiplied by the weight itself: w ln w is 0 for w = 0
LEFT = 0.01  # of a row: with less left over, dividing by it would show rounding, so the row does not count
OF_ROWS = ("previous", "self", "next", "local", "first", "duplicate", "induction")  # scores summed row by row


@dataclass(frozen=True)
class Collected:
    """What is collected of one layer.

    Shapes:  left (versions, n_heads, query_len); special_entropy (n_heads, query_len); by_key (n_heads, 1 + known
             columns, versions, key_len); by_offset (n_heads, versions, offsets); repeated (n_heads, kinds, query_len)
    Values:  left: what each row has left; special_entropy: Σ w ln w over special keys; by_key: over all rows that
             count, then over those that count for a score about columns, each row divided by what it has left but in
             "all", keys that the version leaves out included; by_offset: all rows divided by what they have left, by
             key − query + query_len − 1, without the keys that the version leaves out, in "all" without the first;
             repeated: mass on duplicate and induction keys without the first, see models.repeats.KINDS
    """

    left: Tensor
    special_entropy: Tensor
    by_key: Tensor
    by_offset: Tensor
    repeated: Tensor


def layer_figures(
    targets: HeadTargets, found: Collected, entropy: Tensor, first: Tensor, near: Tensor
) -> dict[str, Tensor]:
    """Sum up a layer.

    Shapes:  entropy (nats), first (n_heads, query_len), near (offsets, n_heads, query_len) as near_keys gives it
             -> float64: removed (versions, 2, n_heads); scores (versions, SCORES, 3, n_heads), entropy (versions, 3,
             n_heads), concentration (versions, 4, n_heads), and where there are distances float32 by_distance
             (versions, n_heads, query_len), float64 row_share (versions, query_len), uniform_distance (versions,
             n_heads)
    Values:  removed: mean mass that the version leaves out, in "all" what the heads' own sinks take, and rows: all that
             see two keys, also those that have nothing left; scores: score, chance, rows; entropy: mean, mean of
             entropy / ln(visible keys), rows; concentration: share of the most-read key, its index, chance, rows;
             by_distance: mean mass at each |query − key|; uniform_distance: mean |query − key| of equal weights over
             the same rows; row_share: what each row counts for in the mean over the heads that have enough rows; all of
             them 0 without rows
    """
    versions = [_Version(targets, found, at, first) for at in range(len(targets.versions))]
    figures = {
        "removed": [of.removed() for of in versions],
        "scores": [of.scores(near) for of in versions],
        "entropy": [of.entropy(entropy) for of in versions],
        "concentration": [of.concentration() for of in versions],
    }
    if targets.same_sequence:
        figures["by_distance"] = [of.by_distance().float() for of in versions]
        figures["uniform_distance"] = [of.uniform_distance() for of in versions]
        figures["row_share"] = [of.row_share() for of in versions]
    return {name: torch.stack(values) for name, values in figures.items()}


def figures_size(n_heads: int, query_len: int, *, same_sequence: bool) -> int:
    """How many float32 numbers the figures of a layer take at most: those of all three versions."""
    in_float64 = n_heads * (
        3 * len(SCORES) + 3 + 4 + 2 + 1
    )  # scores, entropy, concentration, removed, uniform distance
    return len(VERSIONS) * (2 * in_float64 + ((n_heads + 2) * query_len if same_sequence else 0))


class _Version:
    """One version of a layer.

    rows   (n_heads, query_len), float64, 1 for a row that counts
    left   (n_heads, query_len), float64, what a row has left
    scale  (n_heads, query_len), float64, what such a row's weights are multiplied with in scores: 1 / left, but in
           "all" 1, so that scores are of the weights as they are, whatever a head's own sink takes
    """

    def __init__(self, targets: HeadTargets, found: Collected, at: int, first: Tensor) -> None:
        self._targets, self._found, self._at, self._first = targets, found, at, first
        self.name = targets.versions[at]
        self._of = targets.of(self.name)
        self.left = found.left[at].double()
        self.rows = self._of.usable * (self.left >= LEFT).double()
        self.scale = self.rows if self.name == "all" else self.rows / self.left.clamp(min=LEFT)
        self.n_rows = self.rows.sum(-1)  # (n_heads)

    def removed(self) -> Tensor:
        usable = self._targets.of("all").usable.double()
        before = 1.0 if self.name == "all" else self._found.left[0].double()
        n_rows = usable.sum()
        share = (before - self.left) @ usable / n_rows.clamp(min=1)
        return torch.stack([share, n_rows.expand_as(share)])

    def scores(self, near: Tensor) -> Tensor:
        counted = self._of.counted
        n_rows, chance = counted @ self.rows.T, self._of.chances @ self.rows.T  # (SCORES, n_heads)
        total = torch.zeros_like(chance)
        masses = torch.stack(self._masses(near) if self._targets.same_sequence else [self._first])
        places = [PLACE[name] for name in (OF_ROWS if self._targets.same_sequence else ("first",))]
        total[places] = (masses.double().mul_(self.scale) @ counted[places, :, None])[..., 0]
        for kind, name in enumerate(self._targets.known_columns, 1):  # summed over rows while the blocks were there
            by_key = self._found.by_key[:, kind, self._at]
            total[PLACE[name]] = by_key[:, self._targets.columns_of(name, self.name)].sum(-1, dtype=torch.float64)
        return torch.stack([total / n_rows.clamp(min=1), chance / n_rows.clamp(min=1), n_rows], 1)

    def _masses(self, near: Tensor) -> list[Tensor]:
        # each (n_heads, query_len), in the order of OF_ROWS
        if self.name != "all":
            near = near * self._of.near_left[: len(near), None]
        nothing = torch.zeros_like(self._first)
        at = {name: NEAR + OFFSETS[name][0] for name in ("previous", "self", "next")}
        beside = [near[place] if place < len(near) else nothing for place in at.values()]
        duplicate, induction = self._found.repeated[:, 0], self._found.repeated[:, 1]
        if self.name == "all":
            duplicate = duplicate + self._first * self._targets.first_repeats
        if self.name != "special" and self._found.repeated.shape[1] > 2:
            induction = induction + self._found.repeated[:, 2]
        return [*beside, near.sum(0), self._first, duplicate, induction]

    def entropy(self, entropy: Tensor) -> Tensor:
        entropy = entropy.double()
        if self.name != "all":
            first = self._first.double()
            entropy = entropy + first * first.clamp(min=TINY).log()
        if self.name == "special":
            entropy = entropy + self._found.special_entropy
        left = self.left.clamp(min=LEFT)
        entropy = entropy / left + left.log()
        most = self._of.visible.clamp(min=2).double().log()
        total = (entropy * self.rows) @ torch.stack([torch.ones_like(most), 1 / most], 1)  # (n_heads, 2)
        return torch.stack([*(total / self.n_rows.clamp(min=1)[:, None]).T, self.n_rows])

    def concentration(self) -> Tensor:
        by_key = self._found.by_key[:, 0, self._at].double()  # of a float64 model the collected itself
        by_key = by_key.index_fill(1, self._targets.removed[self.name], 0.0)
        share, key = by_key.max(-1)
        uniform = self._targets.uniform_by_key(self.name, self.rows).amax(-1)
        n_rows = self.n_rows.clamp(min=1)
        return torch.stack([share / n_rows, key.double(), uniform / n_rows, self.n_rows])

    def by_distance(self) -> Tensor:
        n = self._targets.mask.query_len
        sums = self._found.by_offset[:, self._at].double()
        by_distance = sums[:, :n].flip(-1)  # keys at and before the query …
        by_distance[:, 1 : 1 + sums.shape[1] - n] += sums[:, n:]  # … and after it
        if self.name == "all":
            by_distance += self._first * self.rows / self.left.clamp(min=LEFT)  # the first key is i away from row i
        return by_distance / self.n_rows.clamp(min=1)[:, None]

    def uniform_distance(self) -> Tensor:
        return self.rows @ self._of.mean_distances / self.n_rows.clamp(min=1)

    def row_share(self) -> Tensor:
        told = self.n_rows >= MIN_ROWS
        shares = self.rows[told] / self.n_rows[told, None]
        return shares.sum(0) / told.sum().clamp(min=1)
