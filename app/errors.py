"""Domain errors to status codes, and the one form of every error: JSON, or a page for a browser outside /api.

No answer holds the user's text or an exception's words; a 500 gives the request's id.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from jinja2 import TemplateError
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from app import problems
from app.services import errors as domain
from models.errors import Cancelled, RangeError

logger = logging.getLogger("everyhead.errors")


class ErrorBody(BaseModel):
    """Why a request was refused and what to do."""

    code: str
    message: str
    details: dict[str, Any]


class ErrorAnswer(BaseModel):
    """The one form of every error."""

    error: ErrorBody


class BodyTooLarge(HTTPException):
    """More bytes have come than a body may have. Raised while the body is read, where only HTTP's own errors pass."""

    def __init__(self, limit: int) -> None:
        super().__init__(413)
        self.limit = limit


class Malformed(HTTPException):
    """A body that is not JSON, in words. Raised while the body is read, where only HTTP's own errors pass."""

    def __init__(self, words: str, **details: Any) -> None:
        super().__init__(400)
        self.words, self.details = words, details


class UnusableFields(HTTPException):
    """Well-formed JSON that cannot be meant, as problems by place. Raised where only HTTP's own errors pass."""

    def __init__(self, found: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(422)
        self.found = found


STATUS: dict[type[domain.DomainError], int] = {
    domain.NotFound: 404,
    domain.UnknownModel: 404,
    domain.RunGone: 404,
    domain.NotComputed: 404,
    domain.RunDamaged: 410,
    domain.ModelUnavailable: 409,
    domain.ModelNeedsDownload: 409,
    domain.RunNotFinished: 409,
    domain.RunFailed: 409,
    domain.RunCancelled: 409,
    domain.NoCounterpart: 409,
    domain.WeightsChanged: 409,
    domain.ComparisonTooLarge: 413,
    domain.RunTooLarge: 413,
    domain.StagesTooLong: 413,
    domain.TooManyWeights: 413,
    domain.TextEmpty: 422,
    domain.TextDropped: 422,
    domain.CharacterRefused: 422,
    domain.TextTooLong: 422,
    domain.OutOfRange: 422,
    domain.InvalidRequest: 422,
    domain.LensRefused: 422,
    domain.QueueFull: 503,
    domain.NotWritable: 503,
    domain.ShuttingDown: 503,
}
CLIENT_GONE = 499  # for the log alone: nobody reads the answer
HTTP_CODES = {
    400: ("malformed_json", "The body must be JSON in UTF-8."),
    404: ("not_found", "Nothing is here. GET /openapi.json lists every call."),
    405: ("method_not_allowed", "This address does not take this method; the Allow header names those that it takes."),
    408: ("request_too_slow", "The request did not come whole in time: its headers within 10 s, its body within 30 s."),
    413: ("body_too_large", "The body is larger than this server takes. Send a shorter text."),
    415: ("unsupported_media_type", "Send JSON with the header Content-Type: application/json."),
    421: ("foreign_host", "This server does not answer to this Host. Use localhost, or set EVERYHEAD_ALLOWED_HOSTS."),
    500: ("internal", "Something went wrong here. The log has a line with this request id."),
}
# Codes that a stream tells in its `failed` event: the answer was 200 already.
EVENT_CODES = {"download_failed": "The download did not end well, or none was started; the message says which."}
DESCRIPTIONS = {
    **{status: message for status, (_, message) in HTTP_CODES.items()},
    409: "The model or the run is not in a state for this; the code says which.",
    410: "What is stored of the run is damaged. POST the same text again to compute it again.",
    422: "The text or a parameter cannot be used; details name the field or the valid range.",
    503: "As many runs wait as the queue may hold, or the server is being stopped; see Retry-After.",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documented refusals of one call, for the OpenAPI document."""
    return {status: {"model": ErrorAnswer, "description": DESCRIPTIONS[status]} for status in (*statuses, 421)}


def stream_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The same for an event stream, whose refusals are JSON all the same."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorAnswer.__name__}"}}}
    return {status: {"content": content, "description": DESCRIPTIONS[status]} for status in (*statuses, 421)}


def error_response(
    status: int, code: str, message: str, details: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The JSON form."""
    body = {"error": {"code": code, "message": message, "details": dict(details)}}
    return JSONResponse(body, status, headers={"Cache-Control": "no-store", **(headers or {})})


def plain_error(status: int, details: Mapping[str, Any] | None = None) -> JSONResponse:
    """The JSON form of a refusal that comes from HTTP itself."""
    code, message = HTTP_CODES[status]
    return error_response(status, code, message, details or {})


def failure(request: Request, request_id: str) -> Response:
    """A 500: the request's id, and nothing of what went wrong."""
    if _wants_page(request):
        try:
            page: Response = request.app.state.pages.error(request, 500, request_id)
        except (TemplateError, KeyError) as error:  # the page itself may be what is broken
            logger.error("request %s: no error page: %s", request_id, type(error).__name__)
        else:
            return page
    return plain_error(500, {"request_id": request_id})


def install(app: FastAPI) -> None:
    """Have every error of the application answered in the one form."""
    app.add_exception_handler(domain.DomainError, _on_domain_error)
    app.add_exception_handler(RangeError, _on_range_error)
    app.add_exception_handler(Cancelled, _on_client_gone)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


def _wants_page(request: Request) -> bool:
    """A browser that opened an address outside the API."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api")


def _on_domain_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, domain.DomainError)
    return domain_error(error)


def domain_error(error: domain.DomainError) -> JSONResponse:
    """The JSON form of a refusal of the service."""
    later = error.retry_after_s if isinstance(error, domain.QueueFull | domain.ShuttingDown) else None
    headers = None if later is None else {"Retry-After": str(later)}
    return error_response(STATUS[type(error)], error.code, error.message, error.details, headers)


def _on_range_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RangeError)
    return _on_domain_error(request, domain.OutOfRange(error.name, error.given, error.valid))


def _on_client_gone(_request: Request, _error: Exception) -> Response:
    """Work for a request stops early only when its client has gone."""
    return Response(status_code=CLIENT_GONE)


def _on_invalid(request: Request, error: Exception) -> Response:
    """Name the fields, never what was in them."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    for problem in found:
        if problem["type"] == "json_invalid":
            return _malformed("character", problem["loc"][-1])
    return _on_domain_error(request, domain.InvalidRequest(problems.fields(found)))


def _malformed(unit: str, position: int) -> Response:
    """A body that is no JSON, with the first place that shows it, counted from 0."""
    return _not_json(f"It cannot be read at {unit} {position}.", {"position": position})


def _not_json(words: str, details: Mapping[str, Any]) -> Response:
    code, message = HTTP_CODES[400]
    return error_response(400, code, f"{message} {words}", details)


def too_large(limit: int) -> JSONResponse:
    """A body over the limit."""
    message = f"The body is larger than {limit} bytes, the most that this server takes. Send a shorter text."
    return error_response(413, HTTP_CODES[413][0], message, {"limit": limit})


def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    if isinstance(error, BodyTooLarge):
        return too_large(error.limit)
    if isinstance(error, UnusableFields):
        return _on_domain_error(request, domain.InvalidRequest(problems.fields(error.found)))
    if isinstance(error, Malformed):
        return _not_json(error.words, error.details)
    if status == 400 and isinstance(error.__cause__, UnicodeDecodeError):
        return _malformed("byte", error.__cause__.start)
    code, message = HTTP_CODES.get(status, (HTTPStatus(status).name.lower(), HTTPStatus(status).description))
    if _wants_page(request):
        page: Response = request.app.state.pages.error(request, status)
        return page
    return error_response(status, code, message, {}, error.headers)
