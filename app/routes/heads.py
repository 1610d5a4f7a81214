"""Heads and layers of a finished run: what they do, with what chance would give; heads by their weight on pairs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.dependencies import Everything, Runs
from app.errors import responses
from app.reading import ReadRoute
from app.routes.answers import NOT_MODIFIED, json_bytes, run_tag, tagged, unchanged
from app.routes.parameters import Flag, Pairs, Site, Threshold, chosen_site, pairs_of
from app.schemas import heads as schemas
from app.services.errors import InvalidRequest
from app.services.heads import bins_of, heads_of, layers_of
from app.services.pairs import asked_pairs, heads_on_pairs
from models.roles import THRESHOLD

router = APIRouter(prefix="/api/runs/{run_id}", tags=["heads"], route_class=ReadRoute)

REFUSALS = {**NOT_MODIFIED, **responses(404, 409, 410, 422)}
Figures = Annotated[Flag, Query(description="with pairs, false leaves out what does not depend on them")]
Alike = Annotated[Flag, Query(description="also warn of heads of a layer that do nearly the same, which takes longer")]


@router.get("/heads", response_model=schemas.Heads, responses=REFUSALS)
def read_heads(
    run_id: str,
    request: Request,
    runs: Runs,
    site: Site = None,
    threshold: Threshold = THRESHOLD,
    pairs: Pairs = None,
    figures: Figures = True,
) -> Response:
    """Figures and role of every head; with pairs, of one site, also its weight on each of them."""
    record, capture = runs.read(run_id)
    asked = None if pairs is None else pairs_of(pairs)
    known = [one.site for one in capture.sites]
    sites = known if site is None and asked is None else [chosen_site(known, site)]
    tag = run_tag(request, record)
    if (answer := unchanged(request, tag)) is not None:
        return answer
    heads: list[dict[str, Any]] = heads_of(capture, sites, threshold) if figures or asked is None else []
    content: dict[str, Any] = {"heads": heads, "threshold": threshold, "bins": bins_of(capture, sites)}
    if asked is not None:
        on_pairs = heads_on_pairs(capture, sites[0], asked)
        content["heads"] = [{**own, **more} for own, more in zip(heads, on_pairs, strict=True)] if heads else on_pairs
        content["pairs"] = asked_pairs(asked)
    return tagged(json_bytes(content), tag)


@router.get("/layers", response_model=schemas.Layers, responses=REFUSALS)
def read_layers(
    run_id: str, request: Request, services: Everything, site: Site = None, alike: Alike = False
) -> Response:
    """How far each layer of a site reaches, with verdicts. Attention to another text has no distances: 422."""
    run = record, capture = services.runs.read(run_id)
    where = chosen_site([one.site for one in capture.sites], site)
    if where.endswith(".cross"):
        raise InvalidRequest({"site": "attention to another text has no distances; choose a .self site"})
    tag = run_tag(request, record)
    if (answer := unchanged(request, tag)) is not None:
        return answer
    distances = services.similarity.read(run, where).distances if alike else None
    return tagged(json_bytes(layers_of(capture, where, distances)), tag)
