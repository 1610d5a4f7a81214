"""What a finished run shows: rows, overview, windows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from app.dependencies import Everything
from app.errors import responses
from app.reading import ReadRoute
from app.routes.answers import JSON, NOT_MODIFIED, json_bytes, run_tag, tagged, unchanged
from app.routes.parameters import (
    MAX_CELLS,
    Cells,
    Index,
    Range,
    Site,
    Which,
    chosen_site,
    chosen_span,
    within,
)
from app.routes.units import UnitKind
from app.schemas import core as schemas
from app.schemas.lenses import Lens
from app.services import windows
from app.services.run_files import Stored
from models.lens_windows import LensRequest
from models.protocol import SiteDescription

router = APIRouter(prefix="/api/runs/{run_id}", tags=["weights"], route_class=ReadRoute)

LensKind = Annotated[Lens, Query(description="what a cell shows: the weight, or another number made of it")]
NPY = "application/x-npy"
REFUSALS = {**NOT_MODIFIED, **responses(404, 409, 410, 422)}
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


async def _finished(run_id: str, services: Everything) -> Stored:
    """The run and its capture, or why there is none."""
    return await services.readers.read(lambda: services.runs.read(run_id))


Finished = Annotated[Stored, Depends(_finished)]


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
    everything: Everything,
    site: Site = None,
    rows: Range = None,
    cols: Range = None,
    max_cells: Cells = MAX_CELLS,
    pool: schemas.Pool = "max",
    lens: LensKind = "raw",
    unit: UnitKind = "token",
    form: Annotated[Literal["json", "npy", "csv"], Query(alias="format")] = "json",
) -> Response:
    """One window of one head, pooled by the smallest steps that fit; exact when both steps are 1."""
    record, _capture = run
    where = _site(run, site)
    within("layer", layer, where.n_layers, ", or mean or max")
    within("head", head, where.n_heads, ", or mean or max")
    down, across = everything.lenses.axes(record, where.site, unit)
    spans = (chosen_span("rows", rows, len(down)), chosen_span("cols", cols, len(across)))
    tag = run_tag(request, record)
    if (answer := unchanged(request, tag)) is not None:
        return answer
    found = everything.lenses.window(run, LensRequest(where.site, layer, head, lens, *spans, max_cells, pool), unit)
    window = found.window
    if form == "npy":
        about = {"Pool": pool, "Steps": f"{window.row_step},{window.col_step}", "Max": repr(found.largest)}
        return tagged(
            windows.npy(window.weights), tag, NPY, **{f"X_Everyhead_{name}": to for name, to in about.items()}
        )
    if form == "csv":
        return tagged(windows.csv(window), tag, "text/csv")
    return tagged(json_bytes({**windows.window_dict(window), **windows.lens_dict(found, lens, unit)}), tag, JSON)


def _site(run: Stored, name: str | None) -> SiteDescription:
    """The named site, or the only one."""
    sites = {one.site: one for one in run[1].sites}
    return sites[chosen_site(sites, name)]
