"""How alike the heads of a run are."""

from __future__ import annotations

from pydantic import BaseModel


class Similarity(BaseModel):
    """Heads of one site by flat index = layer · n_heads + head.

    rows: the query rows compared; order: like beside like, the leaves of an average-linkage clustering; positions: a
    plane in which alike heads are near (classical scaling); duplicates: [one, other, distance] under 0.1, nearest
    first, at most 200 of `duplicates_in_all`. distance = sqrt(1 − mean over the rows of Σ_j √(p_ij · q_ij)).
    """

    site: str
    rows: list[int]
    order: list[int]
    positions: list[list[float]]
    duplicates: list[list[float]]
    duplicates_in_all: int
