"""Runs: make, follow, read, check, forget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from app.bodies import StrictRoute
from app.dependencies import Everything, Runs, client_gone
from app.errors import responses, stream_responses
from app.routes.answers import NOT_MODIFIED, content_tag, json_bytes, tagged, unchanged
from app.routes.parameters import NO_FIELDS
from app.schemas import core as schemas
from app.services.live import LiveRun, Owner
from app.services.records import Options, RunRecord
from app.services.runs import RunRequest

router = APIRouter(prefix="/api/runs", tags=["runs"], route_class=StrictRoute)


@router.post(
    "",
    status_code=201,
    response_model=schemas.RunSummary,
    responses={
        202: {"model": schemas.RunSummary, "description": "Queued; with Prefer: respond-async."},
        **responses(400, 404, 409, 413, 415, 422, 503),
    },
)
async def create_run(
    body: schemas.RunRequest, request: Request, services: Everything, prefer: Annotated[str, Header()] = ""
) -> Response:
    """Make a run; answer once it is done, or at once with `Prefer: respond-async`. The same request is the same run."""
    respond_async = "respond-async" in prefer.lower()
    options = Options(body.truncate, body.add_special_tokens)
    asked = RunRequest(body.model, body.text, options, body.implementation, body.text_pair, body.target_text)
    run = await services.in_thread(lambda: services.runs.submit(asked, wanted=respond_async))
    if not respond_async:
        await wait_for(run, request, services.runs)
        if run.failure is not None:
            raise run.failure
    content = json_bytes(summary(run.record))
    headers = {"Location": f"/api/runs/{run.record.id}", "Cache-Control": "no-store"}
    if respond_async and not run.over:
        return Response(content, 202, {**headers, "Preference-Applied": "respond-async"}, "application/json")
    return Response(content, 201, headers, "application/json")


@router.get("/{run_id}", response_model=schemas.RunSummary, responses={**NOT_MODIFIED, **responses(404, 410, 422)})
def read_run(run_id: str, request: Request, runs: Runs) -> Response:
    """Everything about a run but its weights."""
    run = runs.find(run_id)
    content = json_bytes(summary(run.record))
    if not run.over or run.record.status != "done":
        return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})
    tag = content_tag(content)
    return unchanged(request, tag) or tagged(content, tag)


@router.delete("/{run_id}", responses=responses(404, 422, 503))
def delete_run(run_id: str, runs: Runs) -> schemas.Deleted:
    """Cancel an unfinished run unless somebody else waits for it; forget any other."""
    return schemas.Deleted.model_validate({"id": run_id, "outcome": runs.delete(run_id)})


@router.post(
    "/{run_id}/check",
    response_model=schemas.RunSummary,
    responses=responses(400, 404, 409, 410, 415, 422, 503),
    dependencies=[NO_FIELDS],
)
async def check_run(run_id: str, request: Request, services: Everything) -> Response:
    """Compare the whole pass with the model's own default kernel; the card then holds the result."""
    check = await services.in_thread(lambda: services.runs.check(run_id))
    await wait_for(check, request, services.runs)
    if check.failure is not None:
        raise check.failure
    return Response(
        json_bytes(summary(check.record)), media_type="application/json", headers={"Cache-Control": "no-store"}
    )


def _existing(run_id: str, runs: Runs) -> LiveRun:
    """The run, looked up before the first event so that a refusal has its status."""
    return runs.find(run_id)


@router.get("/{run_id}/events", response_class=EventSourceResponse, responses=stream_responses(404, 410, 422))
async def follow_run(run: Annotated[LiveRun, Depends(_existing)]) -> AsyncIterator[ServerSentEvent]:
    """Server-sent `progress`, at once and at changes, then `done`, `failed` or `cancelled`. Closing cancels nothing."""
    async for record in run.changes():
        if not run.over or not record.finished:
            yield ServerSentEvent(event="progress", data={"status": record.status, "progress": asdict(record.progress)})
        else:
            error = None if record.error is None else asdict(record.error)
            yield ServerSentEvent(event=record.status, data={"status": record.status, "error": error})


def summary(record: RunRecord) -> dict[str, Any]:
    """The JSON form of a run, with where to go on."""
    here = f"/api/runs/{record.id}"
    parts = ("events", "heads", "overview", "weights", "check")
    return {**record.as_dict(), "links": {"self": here, **{part: f"{here}/{part}" for part in parts}}}


async def wait_for(work: LiveRun, request: Request, owner: Owner) -> None:
    """Wait until the work is over or the client has gone, then stop counting as somebody who waits."""
    over, gone = asyncio.create_task(work.wait()), asyncio.create_task(client_gone(request))
    try:
        await asyncio.wait({over, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
        gone.cancel()
        owner.release(work)
