"""Figures of heads and layers, each with what equal weights would give. What cannot be told on a text is null."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.schemas.pairs import AskedPair, PairFigures
from models.head_targets import NEAR

ScoreName = Literal["previous", "self", "next", "first", "special", "punctuation", "duplicate", "induction", "local"]
Version = Literal["all", "first", "special"]


class Score(BaseModel):
    """Weight on the target keys of a score, averaged over the rows that see a target and also a key that is none.

    score = mean over these rows of Σ A(i, j) over targets j; chance = mean over them of targets / visible keys;
    corrected = (score − chance) / (1 − chance).
    """

    score: float
    chance: float
    corrected: float
    rows: int


class Entropy(BaseModel):
    """mean = mean over rows of −Σ A(i, j) ln A(i, j), in nats; normalised = mean of it / ln(visible keys)."""

    mean: float
    normalised: float
    rows: int


class Distance(BaseModel):
    """|query − key| in tokens. mass(d) = mean over rows of Σ A(i, j) over |i − j| = d.

    mean = Σ d · mass(d); uniform: that of equal weights over the same rows; within_50, within_90: the smallest D with
    Σ mass(d) over d ≤ D of at least 50, 90 % of all mass.
    """

    mean: float
    uniform: float
    within_50: int
    within_90: int
    bins: Annotated[list[float], Field(description="mass by distance, in the ranges given beside the heads")]
    rows: int


class Concentration(BaseModel):
    """share = the largest, over keys j, of the mean over rows of A(i, j), at key; chance: that of equal weights."""

    share: float
    key: int
    chance: float
    rows: int


TARGETS = (
    "by name, null where this text cannot tell. Targets of row i: previous, self, next: i − 1, i, i + 1 (Clark et al. "
    "2019; Voita et al. 2019); first: key 0 (Xiao et al. 2023); special: special tokens (Clark et al. 2019); "
    "punctuation: tokens that are all punctuation; duplicate: j < i with the same token (Wang et al. 2022); induction: "
    f"j < i right after the same token (Olsson et al. 2022); local: at most {NEAR} away"
)


class _Figures(BaseModel):
    scores: Annotated[dict[ScoreName, Score | None], Field(description=TARGETS)]
    entropy: Entropy | None
    distance: Distance | None
    concentration: Concentration | None


class WithoutKeys(_Figures):
    """The same with some keys left out and the rest of each row divided by what is left."""

    removed: Annotated[float | None, Field(description="mean mass of what is left out")]


class Candidate(BaseModel):
    """A score that may name a role, and its corrected value."""

    name: str
    corrected: float


class Role(BaseModel):
    """What a head mostly does: best if corrected reaches the threshold, else otherwise.

    best: the score that made the role; below the threshold the highest; corrected: its own, of the version `of`;
    candidates: the narrowest first; at any threshold the role is the first of them that reaches it;
    sinks: where at least half of the mass rests (own: a sink that the head itself has); taken: how much of it, each of
    what those before it leave; of: the version that the role was read from; untested: roles that this text cannot show
    """

    name: str | None
    best: str | None
    corrected: float | None
    candidates: list[Candidate]
    otherwise: str | None
    sinks: list[Literal["own", "first", "special"]]
    taken: dict[Literal["own", "first", "special"], float]
    of: Version
    untested: list[str]


class Head(_Figures):
    """One head."""

    site: str
    layer: int
    head: int
    own_sink: Annotated[
        float | None,
        Field(description="mean mass that the head's own sink takes; 0 without one; null where the text is too short"),
    ]
    without: dict[Literal["first", "special"], WithoutKeys | None]
    role: Role
    pairs: PairFigures | None = None


class HeadOnPairs(BaseModel):
    """One head with nothing but its weight on the pairs: figures=false."""

    site: str
    layer: int
    head: int
    pairs: PairFigures


class Heads(BaseModel):
    """Every head, by site, layer and head; bins: half-open ranges of distances, by site."""

    heads: list[Head] | list[HeadOnPairs]
    threshold: float
    bins: dict[str, list[tuple[int, int]]]
    pairs: list[AskedPair] | None = None


class LayerDistance(BaseModel):
    """Mean |query − key| over the heads of a layer, how much they differ, and that of equal weights."""

    mean: float
    spread: float
    low: float
    high: float
    uniform: float


class LayerWindow(BaseModel):
    """The distances that hold 50 and 90 % of the mass, and of equal weights."""

    within_50: int
    within_90: int
    uniform_50: int
    uniform_90: int


class LayerNear(BaseModel):
    """The mass within a few tokens, and that of equal weights."""

    share: float
    chance: float


class LayerReach(BaseModel):
    """How far a layer reaches; curves are mass by distance, in the ranges of `bins`; heads: how many have figures."""

    distance: LayerDistance
    window: LayerWindow
    near: LayerNear
    curve: list[float]
    uniform_curve: list[float]
    heads: int
    kind: Literal["near", "far", "even", "between"]


class Layer(BaseModel):
    """One layer, over all keys and without the first.

    sink: mean weight on the first key; of: the version that verdicts and warnings under `all` are of, `first` where
    the sink is large
    """

    layer: int
    sink: float | None
    of: Literal["all", "first"]
    all: LayerReach | None
    first: LayerReach | None


class Reached(BaseModel):
    """Means over some layers: the weight near by and how far away the weight is, each with that of equal weights."""

    share: float
    chance: float
    mean: float
    uniform: float


class Verdict(Reached):
    """Layers from the first to the last, both included, of one kind, with their means.

    of: the version that is told; under `all`, `first` where a sink is large: then sink is its mean weight and whole has
    the means with it. Code `sink`: it leaves next to nothing, so the means are those with it.
    """

    code: Literal["near", "far", "even", "between", "sink"]
    layers: tuple[int, int]
    of: Literal["all", "first"]
    sink: float | None
    whole: Reached | None


class HighLayersLocal(BaseModel):
    """The highest layers, where all of them are local, with their means."""

    code: Literal["high_layers_local"]
    layers: tuple[int, int]
    share: float
    chance: float


class HeadsAlike(BaseModel):
    """Heads of a layer that do nearly the same: [head, head, distance] as /similarity gives it, nearest first."""

    code: Literal["heads_alike"]
    layer: int
    pairs: list[tuple[int, int, float]]


Warned = Annotated[HighLayersLocal | HeadsAlike, Field(discriminator="code")]


class Layers(BaseModel):
    """Every layer of a site. warnings: what wastes capacity; alike heads only under `all`, and if asked for."""

    site: str
    bins: list[tuple[int, int]]
    near: Annotated[int, Field(description="distance up to which mass counts as near")]
    layers: list[Layer]
    verdicts: dict[Literal["all", "first"], list[Verdict]]
    warnings: dict[Literal["all", "first"], list[Warned]]
