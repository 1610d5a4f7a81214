"""Whether the process lives and whether runs can be made."""

from __future__ import annotations

from fastapi import APIRouter, Response

from app.dependencies import Everything
from app.errors import responses
from app.schemas import core as schemas

router = APIRouter(tags=["health"])


@router.get("/healthz", responses=responses())
async def live() -> schemas.Health:
    """The process answers."""
    return schemas.Health(status="ok", reasons=[])


@router.get(
    "/readyz", responses={503: {"model": schemas.Health, "description": "Not ready; reasons say why."}, **responses()}
)
def ready(response: Response, services: Everything) -> schemas.Health:
    """Runs can be made; else 503 with the reasons."""
    reasons = services.runs.problems()
    if reasons:
        response.status_code = 503
    return schemas.Health(status="not_ready" if reasons else "ready", reasons=reasons)
