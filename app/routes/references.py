"""The reference panel of a model: compute it once, follow that, read it, stop it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from app.bodies import StrictRoute
from app.dependencies import Everything
from app.errors import responses, stream_responses
from app.routes.answers import JSON, NOT_MODIFIED, content_tag, json_bytes, tagged, unchanged
from app.routes.parameters import NO_FIELDS
from app.routes.runs import wait_for
from app.schemas import references as schemas
from app.services.references import ReferenceWork

router = APIRouter(prefix="/api/models/{model_id:path}/reference", tags=["models"], route_class=StrictRoute)

Implementation = Annotated[
    Literal["own", "transformers"] | None, Query(description="one of the model's; its first if left out")
]


@router.post(
    "",
    response_model=schemas.ReferencePanel,
    responses={
        202: {"model": schemas.ReferenceState, "description": "Queued; with Prefer: respond-async."},
        **responses(400, 404, 409, 415, 422, 503),
    },
    dependencies=[NO_FIELDS],
)
async def compute_panel(
    model_id: str,
    request: Request,
    services: Everything,
    implementation: Implementation = None,
    prefer: Annotated[str, Header()] = "",
) -> Response:
    """Run the reference texts on a model, once; answer when done, or at once with `Prefer: respond-async`."""
    respond_async = "respond-async" in prefer.lower()
    submit = services.references.submit
    work = await services.in_thread(lambda: submit(model_id, implementation, wanted=respond_async))
    if not respond_async:
        await wait_for(work, request, services.references)
    elif not work.over:
        state = {"status": work.record.status, "events": _events(model_id, implementation)}
        headers = {"Cache-Control": "no-store", "Preference-Applied": "respond-async"}
        return Response(json_bytes(state), 202, headers, JSON)
    if work.failure is not None:
        raise work.failure
    return Response(json_bytes(work.found), media_type=JSON, headers={"Cache-Control": "no-store"})


@router.get("", response_model=schemas.ReferencePanel, responses={**NOT_MODIFIED, **responses(404, 422)})
def read_panel(
    model_id: str, request: Request, services: Everything, implementation: Implementation = None
) -> Response:
    """Figures of every head averaged over the reference texts, once they were computed for these weights."""
    content = json_bytes(services.references.read(model_id, implementation))
    tag = content_tag(content)
    return unchanged(request, tag) or tagged(content, tag)


@router.get("/state", responses=responses(404, 422))
def read_state(
    model_id: str, response: Response, services: Everything, implementation: Implementation = None
) -> schemas.ReferenceState:
    """Whether the figures over the reference texts are there: always answered, also before they were asked for."""
    response.headers["Cache-Control"] = "no-store"
    status = services.references.status(model_id, implementation)
    return schemas.ReferenceState(status=status, events=_events(model_id, implementation))


@router.delete("", responses=responses(404, 422))
def stop_panel(model_id: str, services: Everything, implementation: Implementation = None) -> schemas.ReferenceStopped:
    """Stop computing unless somebody else waits for it. What was computed stays."""
    return schemas.ReferenceStopped(cancelled=services.references.cancel(model_id, implementation))


def _events(model_id: str, implementation: str | None) -> str:
    """Where the work is followed."""
    query = f"?implementation={implementation}" if implementation else ""
    return f"/api/models/{quote(model_id)}/reference/events{query}"


def _work(model_id: str, services: Everything, implementation: Implementation = None) -> ReferenceWork:
    """The work, looked up before the first event so that a refusal has its status."""
    return services.references.find(model_id, implementation)


@router.get("/events", response_class=EventSourceResponse, responses=stream_responses(404, 422))
async def follow_panel(work: Annotated[ReferenceWork, Depends(_work)]) -> AsyncIterator[ServerSentEvent]:
    """Server-sent `progress`, at once and at changes, then `done`, `failed` or `cancelled`. Closing cancels nothing."""
    async for record in work.changes():
        if not work.over or not record.finished:
            yield ServerSentEvent(event="progress", data={"status": record.status, "progress": asdict(record.progress)})
        else:
            error = None if record.error is None else asdict(record.error)
            yield ServerSentEvent(event=record.status, data={"status": record.status, "error": error})
