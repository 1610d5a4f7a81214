"""Stage by stage: a run of a GPT-2 through our Transformer and through transformers'."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.bodies import StrictRoute
from app.dependencies import Everything
from app.errors import responses
from app.routes.answers import json_bytes
from app.routes.parameters import NO_FIELDS
from app.routes.runs import wait_for
from app.schemas import core as schemas

router = APIRouter(prefix="/api/runs", tags=["runs"], route_class=StrictRoute)


@router.post(
    "/{run_id}/stages",
    response_model=schemas.Stages,
    responses=responses(400, 404, 409, 410, 413, 415, 422, 503),
    dependencies=[NO_FIELDS],
)
async def compare_stages(run_id: str, request: Request, services: Everything) -> Response:
    """Run the tokens through both implementations of the model and compare what they compute on the way."""
    work = await services.in_thread(lambda: services.stages.submit(run_id))
    await wait_for(work, request, services.stages)
    if work.failure is not None:
        raise work.failure
    found = work.found
    assert found is not None  # the work is over and did not fail
    first = found.first_over
    content = {
        "dtype": found.dtype,
        "tolerance": found.tolerance,
        "first_over": None if first is None else first.name,
        "stages": [{**vars(stage), "name": stage.name} for stage in found.stages],
    }
    return Response(json_bytes(content), media_type="application/json", headers={"Cache-Control": "no-store"})
