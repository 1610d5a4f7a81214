"""The one-call form: tokens and nested lists of weights, for small texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from app.bodies import StrictRoute
from app.dependencies import Everything, Services
from app.errors import responses
from app.routes.answers import JSON, json_bytes
from app.routes.parameters import chosen_site
from app.routes.runs import wait_for
from app.schemas import core as schemas
from app.services.errors import OutOfRange, TooManyWeights
from app.services.run_files import Stored
from app.services.runs import RunRequest
from app.services.windows import nested
from models.protocol import ShouldStop

SITES = {
    "decoder": ("decoder.self",),
    "encoder": ("encoder.self",),
    "encoder-decoder": ("encoder.self", "decoder.self", "decoder.cross"),
}

router = APIRouter(prefix="/api", tags=["runs"], route_class=StrictRoute)


@router.post("/attention", response_model=schemas.Attention, responses=responses(400, 404, 409, 413, 415, 422, 503))
async def attention(body: schemas.AttentionRequest, request: Request, services: Everything) -> Response:
    """Weights of the named layers and heads as nested lists [layer][head][query][key], up to a stated number."""
    asked = RunRequest(body.model, body.text, text_pair=body.text_pair, target_text=body.target_text)
    await services.in_thread_while_wanted(request, lambda gone: _refuse_if_large(body, asked, services, gone))
    run = await services.in_thread(lambda: services.runs.submit(asked, wanted=False))
    await wait_for(run, request, services.runs)
    if run.failure is not None:
        raise run.failure
    content = await services.in_thread(lambda: json_bytes(_answer(body, services.runs.read(run.record.id), services)))
    return Response(content, media_type=JSON, headers={"Cache-Control": "no-store"})


def _refuse_if_large(body: schemas.AttentionRequest, asked: RunRequest, services: Services, gone: ShouldStop) -> None:
    """Before the model runs: the number of weights follows from the number of tokens.

    A target that the model is still to write counts as its start token alone; what it writes is counted after the run.
    """
    tokens, _ = services.runs.tokenize(asked, stopped=gone)
    entry = services.models.entry(body.model)
    site = chosen_site(SITES[entry.kind or "decoder"], body.site)
    target = services.runs.tokenize_target(asked, stopped=gone)
    rows, cols = {
        "decoder.cross": (len(target) or 1, len(tokens)),
        "decoder.self": (len(target) or 1,) * 2 if entry.kind == "encoder-decoder" else (len(tokens),) * 2,
    }.get(site, (len(tokens),) * 2)
    n_layers = len(body.layers) if body.layers is not None else entry.n_layers or 1
    n_heads = len(body.heads) if body.heads is not None else entry.n_heads or 1
    _refuse_above(n_layers * n_heads * rows * cols, services.settings.max_weights)


def _refuse_above(weights: int, limit: int) -> None:
    if weights > limit:
        raise TooManyWeights(weights, limit)


def _answer(body: schemas.AttentionRequest, run: Stored, services: Services) -> dict[str, Any]:
    """Read every named head back through the capture."""
    record, capture = run
    sites = {one.site: one for one in capture.sites}
    site = sites[chosen_site(sites, body.site)]
    layers = _chosen("layers", body.layers, site.n_layers)
    heads = _chosen("heads", body.heads, site.n_heads)
    _refuse_above(len(layers) * len(heads) * site.query_len * site.key_len, services.settings.max_weights)

    tokens = record.as_dict()["tokens"]

    def one(layer: int, head: int) -> list[Any]:
        cells = site.query_len * site.key_len
        return nested(capture.window(site.site, layer, head, None, None, cells, "max").weights, body.decimals)

    return {
        "model": record.model["id"],
        "run": record.id,
        "site": site.site,
        "layers": layers,
        "heads": heads,
        "tokens": tokens["source"],
        "target_tokens": tokens["target"],
        "weights": [[one(layer, head) for head in heads] for layer in layers],
    }


def _chosen(name: str, given: Sequence[int] | None, count: int) -> list[int]:
    """The named layers or heads, or all."""
    for index in given or ():
        if not 0 <= index < count:
            raise OutOfRange(name, index, f"0 to {count - 1}")
    return list(range(count)) if given is None else list(given)
