"""What every request passes: an id and a log line, security headers, the Host check, JSON only, a limit on the body.

Plain ASGI. No line of a log holds a path, a query or a body: only the route's pattern, since paths carry run ids.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import BodyTooLarge, domain_error, failure, plain_error, too_large
from app.services.errors import ShuttingDown

logger = logging.getLogger("everyhead.requests")

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
# Plotly sets style attributes (its colour bar and mode bar are misplaced without) and draws heatmaps as data: images.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)
SECURITY_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class LastResort:
    """Outermost: gives each request an id and one log line; an unforeseen error becomes a 500 with that id alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        started, status = time.perf_counter(), 0

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers["X-Request-Id"] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_noting)
        except Exception as error:  # noqa: BLE001 - the last place; the error's words may quote the user's text
            where = _origin(error)
            logger.error("request %s: %s at %s", request_id, type(error).__name__, where)
            if status == 0:
                await failure(Request(scope), request_id)(scope, receive, send_noting)
        except asyncio.CancelledError:  # the server is being stopped and waits no longer
            logger.warning("request %s was cut short", request_id)
            if status == 0:
                await domain_error(ShuttingDown())(scope, receive, send_noting)
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            route = getattr(scope.get("route"), "path", "-")
            took = (time.perf_counter() - started) * 1000
            logger.info("%s %s %s %d %.0f ms", request_id, scope["method"], route, status, took)


def _origin(error: BaseException) -> str:
    """File and line where an error was raised."""
    trace, where = error.__traceback__, "unknown place"
    while trace is not None:
        where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return where


class HeadAsGet:
    """Answers HEAD as GET without the body. An event stream would have to be followed for that: there HEAD is a 405."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].endswith("/events"):
            await self.app(scope, receive, send)
            return
        as_get = {**scope, "method": "GET"}  # a copy: the server must go on to know that no body may follow

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app(as_get, receive, send_head)
        scope["route"] = as_get.get("route")


class Gate:
    """Refuses foreign hosts (DNS rebinding), bodies that are not JSON (other sites' forms), and bodies too large."""

    def __init__(self, app: ASGIApp, *, allowed_hosts: Collection[str], max_body_bytes: int) -> None:
        self.app = app
        self.hosts = LOCAL_HOSTS | {host.lower() for host in allowed_hosts}
        self.max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _limited(receive, self.max_body_bytes), send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if _host_name(headers.get("host", "")) not in self.hosts:
            return plain_error(421)
        if scope["method"] in WITH_BODY:
            kind = headers.get("content-type", "").split(";")[0].strip().lower()
            if kind != "application/json" and _is_call(scope):
                return plain_error(415)
            length = headers.get("content-length", "0")
            if not length.isdecimal() or int(length) > self.max_body_bytes:
                return too_large(self.max_body_bytes)
        return None


def _is_call(scope: Scope) -> bool:
    """Whether a handler takes this method at this address; if not, 404 or 405 says so, whatever the body is."""
    found = (route.matches(scope)[0] for route in scope["app"].routes if not isinstance(route, Mount))
    return Match.FULL in found


def _host_name(host: str) -> str:
    """The Host header without its port, in small letters."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()


def _limited(receive: Receive, limit: int) -> Receive:
    """`receive`, which refuses once more than `limit` bytes have come (a body need not state its length)."""
    seen = 0

    async def receive_counting() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise BodyTooLarge(limit)
        return message

    return receive_counting
