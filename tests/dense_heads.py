"""Statistics of heads from all their weights at once, in float64, as one would write them down: for comparison only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.token_facts import TokenFacts

NEAR = 4
VERSIONS = ("all", "first", "special")
SCORES = ("previous", "self", "next", "first", "special", "punctuation", "duplicate", "induction", "local")
LEFT, MIN_ROWS = 0.01, 8


@dataclass(frozen=True)
class Dense:
    """All weights of one layer; mask and targets are boolean (query_len, key_len), True = may attend, is a target."""

    weights: Tensor  # (n_heads, query_len, key_len), float64, 0 where hidden
    mask: Tensor
    facts: TokenFacts
    same_sequence: bool = True

    def removed(self, version: str) -> Tensor:
        """(key_len): the keys that a version leaves out."""
        keys = torch.arange(self.mask.shape[1])
        out = torch.zeros(len(keys), dtype=torch.bool)
        if version != "all":
            out |= keys == 0
        if version == "special":
            out |= torch.tensor(self.facts.special)
        return out

    def targets(self, name: str) -> Tensor | None:
        """Which keys a score is about."""
        n_queries, n_keys = self.mask.shape
        i, j = torch.arange(n_queries)[:, None], torch.arange(n_keys)[None]
        ids, special = torch.tensor(self.facts.ids), torch.tensor(self.facts.special)
        if name in ("special", "punctuation"):
            return torch.tensor(getattr(self.facts, name))[None].expand(n_queries, -1)
        if name == "first":
            return (j == 0).expand(n_queries, -1)
        if not self.same_sequence:
            return None
        if name == "duplicate":
            return (ids[:, None] == ids[None]) & (j < i) & ~special[:, None] & ~special[None]
        if name == "induction":  # the key after each earlier same token
            before = (ids[:, None] == ids[None]) & ~special[:, None] & ~special[None]
            return torch.cat([torch.zeros(n_queries, 1, dtype=torch.bool), before[:, :-1]], 1) & (j < i)
        near = {"previous": (1, 1), "self": (0, 0), "next": (-1, -1), "local": (-NEAR, NEAR)}[name]
        return (i - j >= near[0]) & (i - j <= near[1])

    def score(self, name: str, version: str) -> list[tuple[float, float, int]]:
        """(score, chance, rows) of each head; NaN without rows."""
        targets = self.targets(name)
        if targets is None:
            return [(torch.nan, torch.nan, 0)] * len(self.weights)
        mask, weights, counted = self._left(version)
        targets = targets & mask
        rows = (targets.sum(-1) > 0) & (targets.sum(-1) < mask.sum(-1)) & counted
        mass, chance = (weights * targets).sum(-1), targets.sum(-1) / mask.sum(-1).clamp(min=1)
        return [(float(m[r].mean()), float(chance[r].mean()), int(r.sum())) for m, r in zip(mass, rows, strict=True)]

    def entropy(self, version: str) -> list[tuple[float, float]]:
        """(mean in nats, mean of entropy / ln of visible keys) of each head."""
        mask, weights, counted = self._left(version, divided=True)
        entropy = -(weights * weights.clamp(min=1e-300).log()).sum(-1)
        most = mask.sum(-1).clamp(min=2).log()
        return [(float(e[r].mean()), float((e / most)[r].mean())) for e, r in zip(entropy, counted, strict=True)]

    def by_distance(self, version: str) -> Tensor:
        """(n_heads, query_len): mean mass at each distance."""
        _mask, weights, counted = self._left(version, divided=True)
        n = self.mask.shape[0]
        distance = (torch.arange(n)[:, None] - torch.arange(n)[None]).abs().reshape(-1)
        found = [
            torch.zeros(n, dtype=torch.float64).index_add_(0, distance, (w * r[:, None]).reshape(-1)) / r.sum()
            for w, r in zip(weights, counted, strict=True)
        ]
        return torch.stack(found)

    def uniform_distance(self, version: str) -> list[float]:
        """Mean distance of equal weights over the rows that count of each head."""
        mask, _weights, counted = self._left(version)
        n = self.mask.shape[0]
        distance = (torch.arange(n)[:, None] - torch.arange(n)[None]).abs().double()
        of_row = (distance * mask).sum(-1) / mask.sum(-1).clamp(min=1)
        return [float(of_row[r].mean()) for r in counted]

    def concentration(self, version: str) -> list[tuple[float, float]]:
        """(share of the most-read key, the same under uniform attention) of each head."""
        mask, _weights, counted = self._left(version)
        uniform = mask / mask.sum(-1, keepdim=True).clamp(min=1)
        shares = self.by_key(version).amax(-1).tolist()
        return [(share, float(uniform[r].mean(0).max())) for share, r in zip(shares, counted, strict=True)]

    def by_key(self, version: str) -> Tensor:
        """(n_heads, key_len): mean weight on each key."""
        _mask, weights, counted = self._left(version)
        return torch.stack([w[r].mean(0) for w, r in zip(weights, counted, strict=True)])

    def rows(self, version: str) -> list[int]:
        """How many rows of each head count."""
        return self._left(version)[2].sum(-1).tolist()

    def row_share(self, version: str) -> Tensor:
        """(query_len): what each row counts for, mean over the heads with enough rows."""
        counted = self._left(version)[2].double()
        told = counted[counted.sum(-1) >= MIN_ROWS]
        return (told / told.sum(-1, keepdim=True)).sum(0) / max(len(told), 1)

    def left_out(self, version: str) -> list[float]:
        """Mean mass that a version leaves out."""
        rows = self.mask.sum(-1) >= 2
        taken = 1 - self.weights.sum(-1) if version == "all" else (self.weights * self.removed(version)).sum(-1)
        return taken[:, rows].mean(-1).tolist()

    def _left(self, version: str, *, divided: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        # mask and weights without what is left out, rows sharing out what remains (in "all" what a head's own sink
        # leaves, if so asked); which rows count, for each head
        mask = self.mask & ~self.removed(version)
        weights = self.weights * mask
        left = weights.sum(-1)
        counted = (mask.sum(-1) >= 2) & (left >= LEFT)
        if version != "all" or divided:
            weights = weights / left.clamp(min=LEFT)[..., None]
        return mask, weights, counted


def assert_same(found: dict[str, Tensor], dense: Dense, tolerance: float) -> int:
    """Every figure of every version; gives the number of scores compared that are numbers."""
    seen = 0
    n = dense.mask.shape[0]
    close: dict[str, Any] = {"rtol": 0, "atol": tolerance, "equal_nan": True}
    for at, version in enumerate(VERSIONS[: len(found["removed"])]):
        torch.testing.assert_close(found["removed"][at, 0].tolist(), dense.left_out(version), **close)
        assert set(found["removed"][at, 1].tolist()) == {int((dense.mask.sum(-1) >= 2).sum())}
        for place, name in enumerate(SCORES):
            expected = torch.tensor(dense.score(name, version), dtype=torch.float64).T
            given = found["scores"][at, place].clone()
            assert torch.equal(given[2], expected[2]), f"rows of {name} of {version}"
            given, expected = (values[:, expected[2] >= MIN_ROWS] for values in (given, expected))  # what is told
            assert torch.allclose(given, expected, **close), f"{name} of {version}: {given} for {expected}"
            seen += expected.shape[1]
        some = found["entropy"][at, 2] >= MIN_ROWS
        expected = torch.tensor(dense.entropy(version), dtype=torch.float64).T[:, some]
        assert expected.isnan().sum() == 0
        torch.testing.assert_close(found["entropy"][at, 1, some], expected[1], **close)
        torch.testing.assert_close(found["entropy"][at, 0, some], expected[0], rtol=0, atol=tolerance * 10)  # nats
        shares = torch.tensor(dense.concentration(version), dtype=torch.float64).T[:, some]
        torch.testing.assert_close(found["concentration"][at, [0, 2]][:, some], shares, **close)
        # the key that is named has the largest share: of two that are as near as rounding brings them, either has
        key = found["concentration"][at, 1, some].long()[:, None]
        of_key = dense.by_key(version)[some].gather(1, key)[:, 0]
        torch.testing.assert_close(of_key, shares[0], rtol=0, atol=2 * tolerance)
        if dense.same_sequence:
            by_distance, given = dense.by_distance(version)[some], found["by_distance"][at, some].double()
            torch.testing.assert_close(given, by_distance, **close)
            steps = torch.arange(n, dtype=torch.float64)
            torch.testing.assert_close(given @ steps, by_distance @ steps, rtol=0, atol=tolerance * n)
            torch.testing.assert_close(found["row_share"][at].double(), dense.row_share(version), **close)
            # counts of keys, in float64 on both sides: only the order of the sums differs
            uniform = torch.tensor(dense.uniform_distance(version), dtype=torch.float64)[some]
            torch.testing.assert_close(found["uniform_distance"][at, some].double(), uniform, rtol=1e-12, atol=0)
    return seen
