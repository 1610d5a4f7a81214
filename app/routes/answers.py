"""Answers about finished runs: ETag, 304, and cache headers. Bodies come ready-made."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response
from pydantic_core import to_json

from app.services.records import RunRecord
from models.errors import Cancelled
from models.protocol import ShouldStop
from models.tokens import Token

JSON = "application/json"
AT_ONCE = 1000  # tokens
RULES = secrets.token_hex(4)  # of this process: after a restart roles, words and digits of the same run may be others
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The copy named by If-None-Match is still right."}
}


def run_tag(request: Request, *records: RunRecord) -> str:
    """The ETag of an answer that depends on finished runs, the query and the code alone."""
    made = " ".join(f"{record.id} {record.created}" for record in records)
    return content_tag(f"{RULES} {made} {request.url.path} {request.url.query}".encode())


def content_tag(content: bytes) -> str:
    """The ETag of these bytes; weak, since compression changes what is sent."""
    return f'W/"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def unchanged(request: Request, tag: str) -> Response | None:
    """304 if the client has this already."""
    held = [part.strip() for part in request.headers.get("if-none-match", "").split(",")]
    return Response(status_code=304, headers=_headers(tag)) if tag in held or "*" in held else None


def tagged(content: bytes, tag: str, media_type: str = JSON, **headers: str) -> Response:
    """A finished answer that the client may keep but must ask about (a run can be deleted)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(content, media_type=media_type, headers={**_headers(tag), **named})


def json_bytes(value: object) -> bytes:
    """JSON in UTF-8; NaN and infinities become null."""
    return to_json(value, inf_nan_mode="null")


def tokens_json(model: str, tokens: Sequence[Token], limit: int, should_stop: ShouldStop) -> bytes:
    """The answer about a text's tokens, written a part at a time: a call into the serialiser stops all other threads.

    Raises Cancelled.
    """
    facts = {"model": model, "count": len(tokens), "limit": limit, "over_limit": len(tokens) > limit, "tokens": []}
    parts: list[bytes] = []
    for first in range(0, len(tokens), AT_ONCE):
        if should_stop():
            raise Cancelled("stopped while an answer was written")
        parts.append(json_bytes(tokens[first : first + AT_ONCE])[1:-1])
    return json_bytes(facts)[:-2] + b",".join(parts) + b"]}"


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": "private, no-cache"}
