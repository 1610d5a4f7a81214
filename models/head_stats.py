"""Statistics of heads, taken from each block of weights while it exists: nothing of size n² is kept.

Per head and version (all keys; the first key left out; the first and all special keys left out, the rest of each row
divided by what is left): the mean weight on the targets of each score with its chance, the entropy, the mass by
distance, and how much the most-read key gets. `models/head_targets.py` says which keys and rows count.

What is collected from a block are sums over rows or over targets. The left-out columns are set to 0 first, so that
nothing large is subtracted from sums; what version "all" needs of the first key is added after the pass. This module
knows one layer; `models/head_scores.py` puts its figures into words and JSON.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.blocks import Block
from models.head_targets import NEAR, OFFSETS, PLACE, SCORES, VERSIONS, HeadTargets, Picked
from models.protocol import Span

LEFT = 0.01  # of a row: with less left over, dividing by it would show rounding, so the row does not count
TINY = 1e-37  # inside a logarithm that is multiplied by the weight itself: w ln w is 0 for w = 0


class HeadCollector:
    """Collects one layer, block by block, then sums up.

    Shapes:  in what is collected, by version: left (n_heads, query_len), what each row has left; masses (SCORES,
             n_heads, query_len), weight on the targets of a score. By version that is collected in one go: by_key
             (n_heads, sums, key_len), over all rows and over the rows that count for a score about columns; by_offset
             (n_heads, versions, 2 · query_len − 1), the place of key − query + query_len − 1
    """

    def __init__(self, targets: HeadTargets, n_heads: int, like: Tensor) -> None:
        self._targets = targets
        self._usable = {name: targets.usable_rows(name).to(like.dtype) for name in targets.versions}
        mask, apart = targets.mask, targets.versions[1:]  # what is collected with columns set to 0
        self._together = {"first": ("all", "first"), "special": ("special",)}
        rows = (n_heads, mask.query_len)
        self._left = {name: like.new_ones(rows) for name in targets.versions}
        self._lost_entropy = {name: like.new_zeros(rows) for name in apart}  # Σ w ln w over what is left out
        self._masses = {name: like.new_zeros(len(SCORES), *rows) for name in apart}
        n_sums = {name: len(self._together[name]) * (1 + len(targets.known_columns)) for name in apart}
        self._by_key = {name: like.new_zeros(n_heads, n_sums[name], mask.key_len) for name in apart}
        offsets = 2 * mask.query_len - 1 if targets.same_sequence else 0
        self._by_offset = {name: like.new_zeros(n_heads, len(self._together[name]), offsets) for name in apart}

    def add(self, weights: Tensor, scratch: Tensor, block: Block, total: Tensor | None) -> None:
        """Collect a block; its weights are spoilt, and so is `scratch`.

        Shapes:  weights, scratch (n_heads, rows, cols); total (n_heads, rows), what each row sums to, None for 1
        """
        here = slice(*block.rows)
        left = weights.new_ones(weights.shape[:2]) if total is None else total
        self._left["all"][:, here] = left
        lost = torch.zeros_like(left)
        for version in self._targets.versions[1:]:  # each leaves out more than the one before
            inside = _within(self._targets.removed[version], block.cols)
            taken = weights[..., inside]  # (n_heads, rows, left out)
            weights[..., inside] = 0.0
            left = left - taken.sum(-1)
            lost = lost + (taken * taken.clamp(min=TINY).log()).sum(-1)
            self._left[version][:, here] = left
            self._lost_entropy[version][:, here] = lost
            if self._targets.same_sequence:
                self._note_masses(weights, scratch, block, self._masses[version])
            self._note_sums(weights, block, version)

    def _note_masses(self, weights: Tensor, scratch: Tensor, block: Block, masses: Tensor) -> None:
        here = slice(*block.rows)
        near = _diagonals(weights, block.rows[0] - block.cols[0])  # (n_heads, rows, 2 · NEAR + 1)
        masses[PLACE["local"], :, here] = near.sum(-1)
        for name in ("previous", "self", "next"):
            masses[PLACE[name], :, here] = near[..., NEAR + OFFSETS[name][0]]
        for name, picked in self._targets.picked(block.rows, block.cols).items():
            masses[PLACE[name], :, here] = _row_sums(weights, picked, scratch)

    def _note_sums(self, weights: Tensor, block: Block, version: str) -> None:
        # each row counts for 1 in "all", and for 1 / (what it has left) in the others
        mask, here, together = self._targets.mask, slice(*block.rows), self._together[version]
        factors = torch.stack([self._factors(name, here) for name in together], 1)
        counted = torch.stack([self._targets.counted(name)[:, here] for name in together], 1)
        of_columns = [factors * counted[PLACE[name]] for name in self._targets.known_columns]
        sums = torch.bmm(torch.cat([factors, *of_columns], 1), weights)  # (n_heads, sums, cols)
        stop = min(block.cols[1], mask.key_len)
        self._by_key[version][..., block.cols[0] : stop] += sums[..., : stop - block.cols[0]]
        if self._targets.same_sequence:
            offset, sums = _by_offset(weights, factors, block, looks_back=mask.looks_back)
            first = offset + mask.query_len - 1
            stop = min(first + sums.shape[2], 2 * mask.query_len - 1)  # beyond are padded keys, whose weights are 0
            self._by_offset[version][..., first:stop] += sums[..., : stop - first]

    def _factors(self, version: str, here: slice) -> Tensor:
        # what a row counts for: (n_heads, rows)
        usable, left = self._usable[version][here], self._left[version][:, here]
        if version == "all":
            return usable.expand_as(left)
        return usable * (left >= LEFT) / left.clamp(min=LEFT)

    # ------------------------------------------------------------------------------------------------------- summing up

    def figures(self, entropy: Tensor, first: Tensor) -> dict[str, Tensor]:
        """Sum up the layer, after its last block.

        Shapes:  entropy (nats), first (n_heads, query_len) -> float64: removed (versions, n_heads); scores (versions,
                 SCORES, 3, n_heads), entropy (versions, 3, n_heads), concentration (versions, 4, n_heads), and where
                 there are distances float32 by_distance (versions, n_heads, query_len), uniform_distance (versions,
                 n_heads)
        Values:  removed: mean mass that the version leaves out; scores: score, chance, rows; entropy: mean, mean of
                 entropy / ln(visible keys), rows; concentration: share of the most-read key, its index, chance, rows;
                 by_distance: mean mass at each |query − key|; uniform_distance: mean |query − key| of equal weights
                 over the same rows; both 0 without rows
        """
        versions = self._targets.versions
        found = {
            "removed": torch.stack([self._removed(name) for name in versions]),
            "scores": torch.stack([self._scores(name, first.double()) for name in versions]),
            "entropy": torch.stack([self._entropies(name, entropy.double()) for name in versions]),
            "concentration": torch.stack([self._concentration(name, first) for name in versions]),
        }
        if self._targets.same_sequence:
            found["by_distance"] = torch.stack([self._by_distance(name, first) for name in versions]).float()
            found["uniform_distance"] = torch.stack([self._uniform_distance(name) for name in versions])
        return found

    def _sums(self, version: str) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        # by offset and by key over all rows that count, and by key over those that count for a score about columns
        name = "special" if version == "special" else "first"
        at, n = self._together[name].index(version), len(self._together[name])
        by_key = self._by_key[name].double()
        of_columns = {score: by_key[:, place * n + at] for place, score in enumerate(self._targets.known_columns, 1)}
        return self._by_offset[name][:, at].double(), by_key[:, at], of_columns

    def _rows(self, version: str) -> Tensor:
        # (n_heads or 1, query_len), boolean: rows that count
        usable = self._usable[version][None] > 0
        return usable if version == "all" else usable & (self._left[version] >= LEFT)

    def _removed(self, version: str) -> Tensor:
        usable = self._usable["all"].double()
        taken = (self._left["all"] - self._left[version]).double()
        return taken @ usable / usable.sum().clamp(min=1)

    def _scores(self, version: str, first: Tensor) -> Tensor:
        targets, n_heads = self._targets, first.shape[0]
        masses = self._masses["first" if version == "all" else version].double()
        if version == "all":  # and the first key's weight where it is a target
            masses = masses + first * targets.first_is_target[:, None]
        else:
            masses = masses / self._left[version].double().clamp(min=LEFT)
        rows = self._rows(version) & targets.counted(version)[:, None]  # (SCORES, n_heads or 1, query_len)
        n_rows = rows.sum(-1)
        score = (masses * rows).sum(-1)
        for name, by_key in self._sums(version)[2].items():  # summed over their rows while the blocks were there
            score[PLACE[name]] = by_key[:, targets.columns[name]].sum(-1)
            if version == "all":
                score[PLACE[name]] += (first * rows[PLACE[name]] * targets.first_is_target[PLACE[name]]).sum(-1)
        chance = (rows.double() @ targets.chances(version)[:, :, None])[..., 0]
        means = [total.expand(-1, n_heads) / n_rows.clamp(min=1) for total in (score, chance)]
        return torch.stack([*means, n_rows.expand(-1, n_heads).double()], 1)

    def _entropies(self, version: str, entropy: Tensor) -> Tensor:
        if version != "all":
            left = self._left[version].double().clamp(min=LEFT)
            entropy = (entropy + self._lost_entropy[version].double()) / left + left.log()
        most = self._targets.visible_in(version).clamp(min=2).double().log()
        rows = self._rows(version).expand_as(entropy)
        n_rows = rows.sum(-1)
        means = [(values * rows).sum(-1) / n_rows.clamp(min=1) for values in (entropy, entropy / most)]
        return torch.stack([*means, n_rows.double()])

    def _concentration(self, version: str, first: Tensor) -> Tensor:
        rows, by_key = self._rows(version), self._sums(version)[1]
        if version == "all":
            of_first = (first * self._usable["all"]).sum(-1, keepdim=True).double()
            by_key = by_key.index_add(1, self._targets.removed["first"], of_first)
        n_rows = rows.sum(-1).expand(len(by_key))
        share, key = (by_key / n_rows.clamp(min=1)[:, None]).max(-1)
        uniform = self._targets.uniform_by_key(version, rows).amax(-1) / n_rows.clamp(min=1)
        return torch.stack([share, key.double(), uniform, n_rows.double()])

    def _by_distance(self, version: str, first: Tensor) -> Tensor:
        n = self._targets.mask.query_len
        sums = self._sums(version)[0]
        by_distance = sums[:, :n].flip(-1)  # keys at and before the query …
        by_distance[:, 1:] += sums[:, n:]  # … and after it
        if version == "all":
            by_distance += first * self._usable["all"]  # the first key is i away from row i
        return by_distance / self._rows(version).sum(-1).clamp(min=1)[:, None]

    def _uniform_distance(self, version: str) -> Tensor:
        rows = self._rows(version).double()
        n_heads = self._left["all"].shape[0]
        return (rows @ self._targets.mean_distances(version) / rows.sum(-1).clamp(min=1)).expand(n_heads)


def figures_size(query_len: int, *, same_sequence: bool) -> int:
    """How many float32 numbers the figures of one head take at most: those of all three versions."""
    in_float64 = 3 * len(SCORES) + 3 + 4 + 1 + 1  # scores, entropy, concentration, removed, uniform distance
    return len(VERSIONS) * (2 * in_float64 + (query_len if same_sequence else 0))


def _diagonals(weights: Tensor, own: int) -> Tensor:
    """The weights on the keys around each row's own; `own` is the first row's own column.

    Shapes:  weights (n_heads, rows, cols) -> (n_heads, rows, 2 · NEAR + 1), 0 where there is no such column
    """
    n_heads, n_rows, n_cols = weights.shape
    before, after = max(0, NEAR - own), max(0, own + n_rows + NEAR - n_cols)
    if before or after:
        first, stop = max(0, own - NEAR), min(n_cols, own + n_rows + NEAR)
        weights, own = pad(weights[..., first:stop], (before, after)).contiguous(), NEAR
        n_cols = weights.shape[2]
    return weights.as_strided((n_heads, n_rows, 2 * NEAR + 1), (n_rows * n_cols, n_cols + 1, 1), own - NEAR)


def _row_sums(weights: Tensor, picked: Picked, scratch: Tensor) -> Tensor:
    # (n_heads, rows): the weights on the picked places of each row
    if picked.dense is not None:
        return torch.mul(weights, picked.dense, out=scratch).sum(-1)
    values = weights.view(weights.shape[0], -1).index_select(1, picked.flat)
    return weights.new_zeros(weights.shape[:2]).index_add_(1, picked.rows, values)


def _by_offset(weights: Tensor, factors: Tensor, block: Block, *, looks_back: bool) -> tuple[int, Tensor]:
    """Sum a block along its diagonals: read with rows one longer than they are, its columns are offsets key − query.

    Shapes:  factors (n_heads, n, rows) -> (first offset, sums (n_heads, n, offsets)), offsets ascending
    """
    n_heads, n_rows, n_cols = weights.shape
    own = block.rows[0] - block.cols[0]  # column of the first row's own position
    sheared = (n_rows * n_cols, n_cols + 1, 1)
    if not looks_back:
        around = pad(weights, (n_rows - 1, n_rows - 1)).contiguous()
        step = (n_rows * around.shape[2], around.shape[2] + 1, 1)
        return 1 - n_rows - own, torch.bmm(factors, around.as_strided((n_heads, n_rows, n_cols + n_rows - 1), step))
    # Where a row would begin left of the block, this view shows the end of the row before: keys after that row's own,
    # which are hidden, so their weights are 0. Only the first row has none before it; it is added by itself.
    first_row = factors[..., :1] * weights[:, None, 0, : own + 1]  # (n_heads, n, own + 1)
    if n_rows == 1:
        return -own, first_row
    view = weights.as_strided((n_heads, n_rows - 1, own + n_rows), sheared, n_cols + 2 - n_rows)
    sums = torch.bmm(factors[..., 1:], view)
    sums[..., n_rows - 1 :] += first_row
    return 1 - n_rows - own, sums


def _within(columns: Tensor, cols: Span) -> Tensor:
    # those of the columns that a block has, counted from its first
    return columns[(columns >= cols[0]) & (columns < cols[1])] - cols[0]
