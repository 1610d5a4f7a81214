"""What a finished run shows: heads, rows, overview, windows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from app.dependencies import Runs
from app.errors import responses
from app.routes.answers import JSON, NOT_MODIFIED, json_bytes, run_tag, tagged, unchanged
from app.routes.parameters import (
    MAX_CELLS,
    Cells,
    Index,
    Pairs,
    Range,
    Site,
    Which,
    chosen_site,
    chosen_span,
    pairs_of,
    within,
)
from app.schemas import core as schemas
from app.services import windows
from app.services.pairs import asked_pairs, heads_on_pairs
from app.services.store import Stored
from models.pairs import Pair
from models.protocol import SiteDescription

router = APIRouter(prefix="/api/runs/{run_id}", tags=["weights"])

Figures = Annotated[bool, Query(description="with pairs, false leaves out what does not depend on them")]
NPY = "application/x-npy"
REFUSALS = {**NOT_MODIFIED, **responses(404, 409, 422)}
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


def _finished(run_id: str, runs: Runs) -> Stored:
    """The run and its capture, or why there is none."""
    return runs.read(run_id)


Finished = Annotated[Stored, Depends(_finished)]


@router.get("/heads", response_model=schemas.Heads, responses=REFUSALS)
def read_heads(
    run: Finished, request: Request, site: Site = None, pairs: Pairs = None, figures: Figures = True
) -> Response:
    """Figures of every head: weight on the previous token, itself and the first one, and how widely it looks."""
    if pairs is not None:
        return _heads_on_pairs(run, request, site, pairs_of(pairs), figures)
    record, capture = run
    sites = [one.site for one in capture.sites] if site is None else [_site(run, site).site]
    tag = run_tag(request, record)
    if (answer := unchanged(request, tag)) is not None:
        return answer
    return tagged(json_bytes({"heads": [head for name in sites for head in capture.head_scores(name)]}), tag)


def _heads_on_pairs(run: Stored, request: Request, site: str | None, pairs: list[Pair], figures: bool) -> Response:
    """Every head of one site with its weight on the pairs, beside its other figures or alone."""
    record, capture = run
    where = _site(run, site)
    tag = run_tag(request, record)
    if (answer := unchanged(request, tag)) is not None:
        return answer
    heads = heads_on_pairs(capture, where.site, pairs)
    if figures:
        heads = [{**own, **head} for own, head in zip(capture.head_scores(where.site), heads, strict=True)]
    return tagged(json_bytes({"heads": heads, "pairs": asked_pairs(pairs)}), tag)


@router.get("/rows", response_model=schemas.Rows, responses=REFUSALS)
def read_rows(run: Finished, request: Request, layer: Index, head: Index, site: Site = None) -> Response:
    """Per-row statistics of one head."""
    record, capture = run
    where = _site(run, site)
    within("layer", layer, where.n_layers)
    within("head", head, where.n_heads)
    tag = run_tag(request, record)
    return unchanged(request, tag) or tagged(json_bytes(windows.head_rows(capture, where.site, layer, head)), tag)


@router.get(
    "/overview",
    response_class=Response,
    responses={200: {"content": {NPY: BINARY}, "description": "uint8 .npy; weight = (byte / 255)²"}, **REFUSALS},
)
def read_overview(
    run: Finished,
    request: Request,
    site: Site = None,
    pool: schemas.Pool = "max",
    _form: Annotated[Literal["npy"], Query(alias="format")] = "npy",
) -> Response:
    """One small pooled picture of every head: (n_layers, n_heads, rows, columns)."""
    record, capture = run
    where = _site(run, site)
    tag = run_tag(request, record)
    if (answer := unchanged(request, tag)) is not None:
        return answer
    content = windows.overview_bytes(capture.overview(where.site, pool))
    return tagged(content, tag, NPY, X_Everyhead_Pool=pool)


@router.get(
    "/weights",
    response_model=schemas.Weights,
    responses={200: {"content": {NPY: BINARY, "text/csv": {"schema": {"type": "string"}}}}, **REFUSALS},
)
def read_weights(
    run: Finished,
    request: Request,
    layer: Which,
    head: Which,
    site: Site = None,
    rows: Range = None,
    cols: Range = None,
    max_cells: Cells = MAX_CELLS,
    pool: schemas.Pool = "max",
    form: Annotated[Literal["json", "npy", "csv"], Query(alias="format")] = "json",
) -> Response:
    """One window of one head, pooled by the smallest steps that fit; exact when both steps are 1."""
    record, capture = run
    where = _site(run, site)
    within("layer", layer, where.n_layers, ", or mean or max")
    within("head", head, where.n_heads, ", or mean or max")
    spans = (chosen_span("rows", rows, where.query_len), chosen_span("cols", cols, where.key_len))
    tag = run_tag(request, record)
    if (answer := unchanged(request, tag)) is not None:
        return answer
    window = capture.window(where.site, layer, head, *spans, max_cells, pool)
    if form == "npy":
        steps = f"{window.row_step},{window.col_step}"
        return tagged(windows.npy(window.weights), tag, NPY, X_Everyhead_Pool=pool, X_Everyhead_Steps=steps)
    if form == "csv":
        return tagged(windows.csv(window), tag, "text/csv")
    return tagged(json_bytes(windows.window_dict(window)), tag, JSON)


def _site(run: Stored, name: str | None) -> SiteDescription:
    """The named site, or the only one."""
    sites = {one.site: one for one in run[1].sites}
    return sites[chosen_site(sites, name)]
