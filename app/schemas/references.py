"""The reference panel: figures of a model's heads averaged over built-in texts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.schemas.heads import Role, ScoreName


class MeanScore(BaseModel):
    """Means over the texts that can show it; by_text: the corrected score on each, null where it cannot be told.

    `corrected` is that of the mean score by the mean chance: (score − chance) / (1 − chance).
    """

    score: float
    chance: float
    corrected: float
    rows: Annotated[int, Field(description="of all texts together")]
    by_text: dict[str, float | None]


class MeanEntropy(BaseModel):
    """Mean entropy in nats, and as a share of that of equal weights."""

    mean: float
    normalised: float
    rows: int


class MeanDistance(BaseModel):
    """Means of |query − key|, of the distances that hold 50 and 90 % of the mass, and of the mass by distance."""

    mean: float
    uniform: float
    within_50: float
    within_90: float
    bins: list[float]
    rows: int


class MeanConcentration(BaseModel):
    """How much of all rows the most-read key gets, and how much one key would get of equal weights."""

    share: float
    chance: float
    rows: int


class _Figures(BaseModel):
    scores: dict[ScoreName, MeanScore | None]
    entropy: MeanEntropy | None
    distance: MeanDistance | None
    concentration: MeanConcentration | None


class MeanWithout(_Figures):
    """The same with some keys left out and the rest of each row divided by what is left."""

    removed: float | None


class ReferenceHead(_Figures):
    """One head; its role is read from the means."""

    site: str
    layer: int
    head: int
    own_sink: Annotated[float | None, Field(description="mean over the texts; null where all are too short to tell")]
    without: dict[Literal["first", "special"], MeanWithout | None]
    role: Role


class ReferenceText(BaseModel):
    """One of the inputs and its length on this model."""

    name: str
    tokens: int


class ReferencePanel(BaseModel):
    """Every head's figures averaged over the texts, each text counting the same."""

    model: str
    revision: str | None
    implementation: str
    texts: list[ReferenceText]
    heads: list[ReferenceHead]


class ReferenceState(BaseModel):
    """Whether a panel is there. `absent`: nobody asked, or the work was stopped or failed. `events` tells of work."""

    status: Literal["absent", "queued", "running", "done"]
    events: str


class ReferenceStopped(BaseModel):
    """Whether work was stopped; false where none went on, or somebody else waits for it."""

    cancelled: bool
