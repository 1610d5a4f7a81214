"""The server around the application: clients that send too slowly are refused, and being stopped is an orderly end.

The only module that knows uvicorn. What is to be done with unfinished work is the application's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.errors import plain_error

logger = logging.getLogger("everyhead.serving")

HEADERS_S, BODY_S = 10.0, 30.0  # uvicorn has no such limits: half a request holds its connection for ever
GRACE_S = 5  # whatever is open then is cut

Stop = Callable[[], Coroutine[Any, Any, None]]


class HastyProtocol(H11Protocol):
    """HTTP/1.1 with a time within which a request's headers, and then its body, must have come."""

    headers_s, body_s = HEADERS_S, BODY_S

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._awaited: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """The headers are awaited from now on, also if nothing at all is sent."""
        super().connection_made(transport)
        self._await()

    def data_received(self, data: bytes) -> None:
        """Some of a request has come."""
        super().data_received(data)
        self._await()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._stop_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Before the next request uvicorn's own limit for idle connections holds, until something comes."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE:
            self._stop_timer()
        else:
            self._await()

    def _await(self) -> None:
        """Start the clock once for the headers and once for the body of each request; single bytes don't move it."""
        state = self.conn.their_state
        if state not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing():
            self._stop_timer()
            return
        awaited = (state, self.cycle if state is h11.SEND_BODY else None)
        if self._timer is not None and awaited == self._awaited:
            return
        self._stop_timer()
        self._awaited = awaited
        limit = self.headers_s if state is h11.IDLE else self.body_s
        self._timer = self.loop.call_later(limit, self._too_slow, limit)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self, limit: float) -> None:
        """Refuse in the one form of errors if nothing was answered yet, and close."""
        self._timer = None
        if self.transport.is_closing():
            return
        silent = self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        if not silent and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            logger.info("refused a request that did not come whole within %g s", limit)
            self._refuse()
        self.transport.close()

    def _awaited_body(self) -> bool:
        """Whether a handler has the request already: before the first one there is no cycle at all."""
        return self.conn.their_state is h11.SEND_BODY

    def _refuse(self) -> None:
        answer = plain_error(408)
        headers = [*answer.raw_headers, (b"connection", b"close")]
        parts = (h11.Response(status_code=408, headers=headers), h11.Data(data=bytes(answer.body)), h11.EndOfMessage())
        if self._awaited_body() and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the handler that waits for the body learns that none will come
            self.cycle.message_event.set()
        for part in parts:
            self.transport.write(self.conn.send(part) or b"")


class Server(uvicorn.Server):
    """uvicorn's, which has the application end its work before it cuts what is still open."""

    def __init__(self, config: uvicorn.Config, stop: Stop) -> None:
        super().__init__(config)
        self._stop = stop

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped; an interrupt from the keyboard is raised again at the end, and is no error."""
        with contextlib.suppress(KeyboardInterrupt):
            super().run(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """One signal is enough: a second one would cut whoever waits, and what is being written."""
        if not self.should_exit:
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new work and end what runs, while those who wait for it can still be answered."""
        stopping = asyncio.create_task(self._stop())
        await super().shutdown(sockets)
        await stopping


def _without_offer(record: logging.LogRecord) -> bool:
    """Pass each line of uvicorn's, without the offer of a second Ctrl+C, which does nothing here."""
    record.msg = str(record.msg).replace(" (CTRL+C to force quit)", "")
    return True


def server_of(app: FastAPI, stop: Stop, **config: Any) -> Server:
    """A server of the application. uvicorn's own access log stays off: its lines hold paths, and paths hold run ids."""
    settings: dict[str, Any] = {"http": HastyProtocol, "timeout_graceful_shutdown": GRACE_S, **config}
    server = Server(uvicorn.Config(app, access_log=False, server_header=False, **settings), stop)
    logging.getLogger("uvicorn.error").addFilter(_without_offer)
    return server
