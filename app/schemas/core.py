"""Models, texts, runs, weights: what is asked and answered of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.errors import ErrorBody
from app.schemas.lenses import LensAnswer
from app.services.records import Kept, Stage, Status, Target, Truncate

Kind = Literal["decoder", "encoder", "encoder-decoder"]
Pool = Literal["max", "mean"]
Implementation = Literal["own", "transformers"]


def _is_unicode(value: str) -> str:
    """JSON can spell half a surrogate pair, which is no character."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} is half of a surrogate pair; remove it") from None
    return value


Text = Annotated[str, AfterValidator(_is_unicode)]


TextPair = Annotated[Text | None, Field(description="a second text, for models that take a pair")]
TargetText = Annotated[
    Text | None, Field(description="what the decoder of an encoder-decoder reads; the model writes it if left out")
]


class _Request(BaseModel):
    """A body about a text; a field that it does not know it refuses, and a value of another type than is named."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Annotated[Text, Field(max_length=200, description="id from GET /api/models", examples=["smollm2-135m"])]
    text: Annotated[Text, Field(description="what to look at", examples=["The cat saw the cat."])]


class NoFields(BaseModel):
    """The body of a call that takes no fields: nothing, or {}; a field it refuses."""

    model_config = ConfigDict(extra="forbid")


class _Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class TokenizeRequest(_Request):
    """Which text to cut into tokens."""

    text_pair: TextPair = None
    add_special_tokens: bool = True


class RunRequest(_Request):
    """One model applied to one text."""

    text_pair: TextPair = None
    target_text: TargetText = None
    truncate: Truncate = "error"
    add_special_tokens: bool = True
    implementation: Annotated[
        Implementation | None, Field(description="one of the model's implementations; its first if left out")
    ] = None


class AttentionRequest(_Request):
    """The one-call form: everything, or the named layers and heads."""

    text_pair: TextPair = None
    target_text: TargetText = None
    site: Annotated[Text | None, Field(max_length=40, description="needed where the model has more than one")] = None
    layers: Annotated[list[int] | None, Field(min_length=1, max_length=1000)] = None
    heads: Annotated[list[int] | None, Field(min_length=1, max_length=1000)] = None
    decimals: Annotated[int | None, Field(ge=0, le=17, description="round to so many decimals")] = None


class _ModelFacts(_Answer):
    """What is unknown before a download is null."""

    id: str
    name: str
    family: str | None
    kind: Kind | None
    n_layers: int | None
    n_heads: int | None
    n_kv_heads: int | None
    max_tokens: int | None
    revision: str | None
    weight_precision: str | None
    note: str | None


class ModelInfo(_ModelFacts):
    """One model of the catalogue."""

    state: Literal["ready", "preparing", "needs_download", "unavailable"]
    reason: str | None
    progress: float | None
    source: str | None
    licence: str | None
    takes_pair: bool | None
    implementations: list[Implementation]


class ModelList(_Answer):
    """Every model, the default one first."""

    models: list[ModelInfo]


class DownloadState(_Answer):
    """Where the progress of a download is."""

    events: str


class Token(_Answer):
    """One token; text is cut from the user's text (the second one for segment 1) by the offsets [start, end)."""

    index: int
    id: int
    piece: str
    text: str
    start: int
    end: int
    special: bool
    word: int | None
    part: int
    parts: int
    bytes: str | None
    segment: int


class Tokens(_Answer):
    """Tokens of a text against the model's limit."""

    model: str
    count: int
    limit: int
    over_limit: bool
    tokens: list[Token]


class RunModel(_ModelFacts):
    """The model of a run, with the arithmetic and the code that ran it."""

    dtype: str | None
    implementation: str | None


class RunOptions(_Answer):
    """What else decides the result."""

    truncate: Truncate
    add_special_tokens: bool
    target: Target | None
    pair: bool


class RunText(_Answer):
    """Which characters [start, end) of the text the run is about."""

    characters: int
    kept: tuple[int, int]
    cut: Literal["cut_head", "cut_tail"] | None
    tokens_before_cut: int | None


class RunProgress(_Answer):
    """done of total within the stage; the place in the line while queued."""

    stage: Stage
    done: int
    total: int
    queue_position: int | None


class RunTokens(_Answer):
    """Tokens of the one input, or the encoder's; target: what the decoder of an encoder-decoder reads."""

    source: list[Token]
    target: list[Token]


class Mask(_Answer):
    """One layer's mask in words."""

    kind: str
    window: int | None


class Site(_Answer):
    """One site: its shape, the steps of its overview, and each layer's mask."""

    site: str
    n_layers: int
    n_heads: int
    n_kv_heads: int
    query_len: int
    key_len: int
    row_step: int
    col_step: int
    sums_to_one: bool
    masks: list[Mask]


class CheckLine(_Answer):
    """One check with its figure and bound."""

    id: str
    status: Literal["pass", "fail", "not_compared", "info"]
    value: float | int | str | None
    bound: float | int | str | None
    detail: dict[str, Any]


class CorrectnessCard(_Answer):
    """How far the picture can be trusted."""

    verdict: Literal["pass", "fail", "partial"]  # partial: nothing failed, but not everything was compared
    checks: list[CheckLine]


class RunTimings(_Answer):
    """Milliseconds by stage."""

    tokenize_ms: float | None
    wait_ms: float | None
    prepare_ms: float | None
    forward_ms: float | None
    check_ms: float | None
    total_ms: float | None


class RunLinks(_Answer):
    """Where the rest of the run is."""

    self: str
    events: str
    heads: str
    overview: str
    weights: str
    check: str


class RunSummary(_Answer):
    """A run without its weights. The text itself is not in it; its tokens are."""

    id: str
    status: Status
    created: str
    model: RunModel
    options: RunOptions
    text: RunText
    progress: RunProgress
    tokens: RunTokens
    sites: list[Site]
    card: CorrectnessCard | None
    timings: RunTimings
    bytes: int
    stored: bool
    kept: Annotated[
        Kept | None,
        Field(description="of a run that is done: whether the disk has it (`pending`: not yet); else it is lost early"),
    ]
    error: ErrorBody | None
    links: RunLinks


class Deleted(_Answer):
    """What became of the run: cancelled, forgotten, or kept because somebody else waits for it."""

    id: str
    outcome: Literal["cancelled", "forgotten", "kept"]


class Rows(_Answer):
    """Per-row statistics of one head; null where one has no meaning."""

    entropy: list[float | None]
    distance: list[float | None]
    self: list[float | None]
    previous: list[float | None]
    first: list[float | None]
    top_key: list[int | None]
    row_max: list[float | None]
    row_sum: list[float | None]


class Weights(LensAnswer, _Answer):
    """A window of one head; a masked cell is null. Exact when both steps are 1."""

    rows: tuple[int, int]
    cols: tuple[int, int]
    row_step: int
    col_step: int
    pool: Pool
    weights: list[list[float | None]]


class Attention(_Answer):
    """weights[layer][head][query][key]; a masked one is null. For decoder sites queries are those of target_tokens."""

    model: str
    run: str
    site: str
    layers: list[int]
    heads: list[int]
    tokens: list[Token]
    target_tokens: list[Token]
    weights: list[list[list[list[float | None]]]]


class Health(_Answer):
    """Whether the service can be used, and why not."""

    status: Literal["ok", "ready", "not_ready"]
    reasons: list[str]


class StageDifference(_Answer):
    """One place that both implementations go through; a difference that is no number is null.

    name: the only stage of this name, as layers.3.query; relative: absolute / largest value of transformers' side
    """

    stage: str
    layer: int | None
    name: str
    absolute: float | None
    relative: float | None
    over: bool


class Stages(_Answer):
    """All stages in the order of the pass; later ones than `first_over` are fed with what is wrong there."""

    dtype: str
    tolerance: float
    first_over: str | None
    stages: list[StageDifference]
