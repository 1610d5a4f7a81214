"""The catalogue, downloads, and tokens without a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from app.bodies import StrictRoute
from app.dependencies import Everything
from app.errors import responses, stream_responses
from app.routes.answers import JSON, tokens_json
from app.routes.parameters import NO_FIELDS
from app.schemas import core as schemas
from app.services.records import Options
from app.services.runs import RunRequest
from models.protocol import ShouldStop

router = APIRouter(prefix="/api", tags=["models"], route_class=StrictRoute)


@router.get("/models", responses=responses())
def list_models(services: Everything) -> schemas.ModelList:
    """Every model and its state, the default one first."""
    return schemas.ModelList(models=[schemas.ModelInfo.model_validate(entry) for entry in services.models.list()])


@router.post(
    "/models/{model_id:path}/download",
    status_code=202,
    responses=responses(400, 404, 409, 415, 422),
    dependencies=[NO_FIELDS],
)
def start_download(model_id: str, services: Everything) -> schemas.DownloadState:
    """Fetch the weights of a model of the allow-list; progress is at its events."""
    services.models.start_download(model_id)
    return schemas.DownloadState(events=f"/api/models/{model_id}/events")


async def _download(model_id: str, services: Everything) -> Iterator[Mapping[str, Any]]:
    """The events of a download; refuses before any is sent."""
    await services.in_thread(lambda: services.models.entry(model_id))
    return iter(await services.in_thread(lambda: services.models.download_events(model_id)))


@router.get(
    "/models/{model_id:path}/events", response_class=EventSourceResponse, responses=stream_responses(404, 409, 422)
)
async def follow_download(
    services: Everything, events: Annotated[Iterator[Mapping[str, Any]], Depends(_download)]
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent progress of a download, to its end."""
    while (event := await services.in_thread(lambda: next(events, None))) is not None:
        yield ServerSentEvent(event=str(event.get("status", "progress")), data=dict(event))
        await asyncio.sleep(0)


@router.post("/tokenize", response_model=schemas.Tokens, responses=responses(400, 404, 409, 413, 415, 422))
async def tokenize(body: schemas.TokenizeRequest, request: Request, services: Everything) -> Response:
    """Tokens of a text and their count against the model's limit, without running the model."""
    options = Options(add_special_tokens=body.add_special_tokens)
    asked = RunRequest(body.model, body.text, options, text_pair=body.text_pair)

    def answer(gone: ShouldStop) -> bytes:
        tokens, limit = services.runs.tokenize(asked, stopped=gone)
        return tokens_json(body.model, tokens, limit, gone)

    content = await services.in_thread_while_wanted(request, answer)
    return Response(content, media_type=JSON)
