"""How alike the heads of a finished run are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from app.dependencies import Everything
from app.errors import responses
from app.reading import ReadRoute
from app.routes.answers import NOT_MODIFIED, json_bytes, run_tag, tagged, unchanged
from app.routes.parameters import Site, chosen_site
from app.schemas import similarity as schemas
from app.services.similarity import similarity_dict
from app.services.windows import npy

router = APIRouter(prefix="/api/runs", tags=["weights"], route_class=ReadRoute)

NPY = "application/x-npy"
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    "/{run_id}/similarity",
    response_model=schemas.Similarity,
    responses={
        200: {"content": {NPY: BINARY}, "description": "npy: float32 distances (heads, heads)"},
        **NOT_MODIFIED,
        **responses(404, 409, 410, 422),
    },
)
def read_similarity(
    run_id: str,
    request: Request,
    services: Everything,
    site: Site = None,
    form: Annotated[Literal["json", "npy"], Query(alias="format")] = "json",
) -> Response:
    """How alike the heads of a site are: an order, a map and near-duplicates; as npy all distances."""
    run = services.runs.read(run_id)
    name = chosen_site([one.site for one in run[1].sites], site)
    tag = run_tag(request, run[0])
    if (answer := unchanged(request, tag)) is not None:
        return answer
    found = services.similarity.read(run, name)
    if form == "npy":
        return tagged(npy(found.distances), tag, NPY)
    return tagged(json_bytes(similarity_dict(name, found)), tag)
