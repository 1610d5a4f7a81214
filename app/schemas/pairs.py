"""Query → key pairs: what was asked, and what each head puts on them."""

from __future__ import annotations

from pydantic import BaseModel


class AskedPair(BaseModel):
    """One pair as it was asked for: token indices, both ends included."""

    query: tuple[int, int]
    key: tuple[int, int]


class PairFigures(BaseModel):
    """One head's weight on the pairs, in their order; null where its layer's mask hides a pair.

    weight = mean over the queries of a pair of the sum of their weights on its keys; chance = mean over the same
    queries of keys of the pair that they see / keys that they see. mean and chance are over all pairs, hidden ones as
    0; corrected = (mean − chance) / (1 − chance), null where chance is 1.
    """

    weights: list[float | None]
    chances: list[float | None]
    mean: float | None
    chance: float | None
    corrected: float | None
