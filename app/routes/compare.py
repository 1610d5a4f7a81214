"""Two heads compared: of two runs, or of one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.dependencies import Everything
from app.errors import responses
from app.reading import ReadRoute
from app.routes.answers import NOT_MODIFIED, json_bytes, run_tag, tagged, unchanged
from app.routes.parameters import MAX_CELLS, Cells, Range, Site, Which, chosen_site, chosen_span, within
from app.schemas import compare as schemas
from app.services import comparison
from app.services.comparison import Side
from app.services.errors import DomainError
from app.services.runs import RunService
from models.protocol import Index

router = APIRouter(prefix="/api", tags=["compare"], route_class=ReadRoute)

RunId = Annotated[str, Query(max_length=64, description="a finished run")]


@router.get(
    "/compare", response_model=schemas.Comparison, responses={**NOT_MODIFIED, **responses(404, 409, 410, 413, 422)}
)
def compare(
    request: Request,
    services: Everything,
    a: RunId,
    b: RunId,
    layer_a: Which,
    head_a: Which,
    layer_b: Which,
    head_b: Which,
    site_a: Site = None,
    site_b: Site = None,
    rows: Range = None,
    cols: Range = None,
    max_cells: Cells = MAX_CELLS,
) -> Response:
    """The weights of one head less those of another, on the tokens that both runs share, with the largest changes."""
    ours = _side(services.runs, "a", a, site_a, layer_a, head_a)
    theirs = _side(services.runs, "b", b, site_b, layer_b, head_b)
    tag = run_tag(request, ours.run[0], theirs.run[0])
    if (answer := unchanged(request, tag)) is not None:
        return answer
    pair = services.alignments.pair_up(ours, theirs)
    asked = (rows, cols) if pair.reason is None else (None, None)  # without shared axes there is no range either
    down, across = chosen_span("rows", asked[0], pair.shape[0]), chosen_span("cols", asked[1], pair.shape[1])
    return tagged(json_bytes(comparison.compare(pair, down, across, max_cells)), tag)


def _side(runs: RunService, name: str, run_id: str, site: str | None, layer: Index, head: Index) -> Side:
    """One head of one run, or why there is none; parameters are named as the client named them."""
    try:
        run = runs.read(run_id)
    except DomainError as error:
        error.details["parameter"] = name  # which of the two it was
        raise
    sites = {one.site: one for one in run[1].sites}
    where = sites[chosen_site(sites, site, f"site_{name}")]
    within(f"layer_{name}", layer, where.n_layers, ", or mean or max")
    within(f"head_{name}", head, where.n_heads, ", or mean or max")
    return Side(run, where, layer, head)
