"""The units that rows and columns of a window may count."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.dependencies import Everything
from app.errors import responses
from app.reading import ReadRoute
from app.routes.answers import NOT_MODIFIED, json_bytes, run_tag, tagged, unchanged
from app.schemas import lenses as schemas

router = APIRouter(prefix="/api/runs/{run_id}", tags=["weights"], route_class=ReadRoute)

UnitKind = Annotated[schemas.Unit, Query(description="what rows and columns count")]


@router.get("/units", response_model=schemas.Units, responses={**NOT_MODIFIED, **responses(404, 409, 410, 422)})
def read_units(
    run_id: str,
    request: Request,
    everything: Everything,
    unit: UnitKind,
    side: Annotated[schemas.Side, Query(description="the text, or what a decoder reads beside it")] = "source",
) -> Response:
    """One text of a run cut into characters, words or sentences, each a run of whole tokens."""
    record, _capture = everything.runs.read(run_id)
    tag = run_tag(request, record)
    if (answer := unchanged(request, tag)) is not None:
        return answer
    found = everything.lenses.units(record, unit, side)
    names = ("index", "text", "first", "stop", "start", "end", "special", "segment")
    listed = [{name: getattr(one, name) for name in names} for one in found]
    return tagged(json_bytes({"unit": unit, "side": side, "units": listed}), tag)
