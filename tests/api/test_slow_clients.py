"""Clients that send half a request and wait: refused in time, however slowly bytes go on to come."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from app.serving import BODY_S, HEADERS_S, HastyProtocol
from tests.api.conftest import MODEL, make_app, serving, small_model

HEADERS, BODY = 0.6, 1.2  # of this server, in seconds
Connect = Callable[[], socket.socket]
LATE = 3.0  # on top of a limit, on a machine under load
HEAD = b"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Short(HastyProtocol):
    """The same with limits that a test can wait for."""

    headers_s, body_s = HEADERS, BODY


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server with short limits."""
    with serving(make_app(tmp_path, small_model()), http=Short, timeout_keep_alive=60) as address:
        yield address


@pytest.fixture
def connect(address: str) -> Iterator[Connect]:
    """Make connections on which nothing was sent yet."""
    parts = urlsplit(address)
    with ExitStack() as stack:

        def connected() -> socket.socket:
            connection = stack.enter_context(socket.create_connection((parts.hostname, parts.port)))
            connection.settimeout(0.05)
            return connection

        yield connected


def trickle(connection: socket.socket, content: bytes, pause: float = 0.1) -> tuple[bytes, float]:
    """Send a byte at a time until the server has closed: what it answered, and seconds until then."""
    started, answer = time.monotonic(), b""
    while time.monotonic() - started < 20:
        if content:
            try:
                connection.sendall(content[:1])
            except OSError:
                content = b""
            content = content[1:]
        try:
            part = connection.recv(65536)
        except TimeoutError:
            time.sleep(pause)
            continue
        except OSError:
            return answer, time.monotonic() - started
        if not part:
            return answer, time.monotonic() - started
        answer += part
    raise AssertionError("it was never closed")


def code_of(answer: bytes) -> str:
    """The error's code in an answer with status 408."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"content-type: application/json" in head
    assert b"connection: close" in head.lower()
    code: str = json.loads(body)["error"]["code"]
    return code


def test_the_limits_are_those_that_are_promised() -> None:
    assert (HastyProtocol.headers_s, HastyProtocol.body_s) == (HEADERS_S, BODY_S) == (10.0, 30.0)


def test_headers_at_a_byte_at_a_time(connect: Connect) -> None:
    answer, seconds = trickle(connect(), HEAD % 4000 + b"x" * 4000)
    assert code_of(answer) == "request_too_slow"
    assert HEADERS * 0.9 < seconds < HEADERS + LATE


def test_half_of_the_headers(connect: Connect) -> None:
    connection = connect()
    connection.sendall(HEAD[:40])
    answer, seconds = trickle(connection, b"")
    assert code_of(answer) == "request_too_slow"
    assert HEADERS * 0.9 < seconds < HEADERS + LATE


def test_a_connection_on_which_nothing_comes(connect: Connect) -> None:
    answer, seconds = trickle(connect(), b"")
    assert answer == b"", "nobody asked anything"
    assert HEADERS * 0.9 < seconds < HEADERS + LATE


@pytest.mark.parametrize("form", ["length", "chunked"])
def test_a_body_at_a_byte_at_a_time(connect: Connect, form: str) -> None:
    connection = connect()
    body = json.dumps({"model": MODEL, "text": "x" * 4000}).encode()
    if form == "length":
        connection.sendall(HEAD % len(body))
    else:
        connection.sendall((HEAD % 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
        body = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    answer, seconds = trickle(connection, body)
    assert code_of(answer) == "request_too_slow"
    assert BODY * 0.9 < seconds < BODY + LATE


def test_a_body_that_nobody_reads(connect: Connect) -> None:
    """The answer comes without it; the connection does not stay for it."""
    connection = connect()
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
    answer, seconds = trickle(connection, b"x" * 1000)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert BODY * 0.9 < seconds < BODY + LATE


def test_the_second_request_of_a_connection_has_the_same_time(connect: Connect) -> None:
    connection = connect()
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    time.sleep(HEADERS * 1.5)  # idle for longer than headers may take: that is allowed between requests
    answer, seconds = trickle(connection, HEAD % 4000 + b"x" * 4000)
    first, _, second = answer.partition(b"HTTP/1.1 408 ")
    assert first.startswith(b"HTTP/1.1 200 ")
    assert code_of(b"HTTP/1.1 408 " + second) == "request_too_slow"
    assert HEADERS * 0.9 < seconds < HEADERS + LATE


def test_who_is_slow_but_in_time_is_served(connect: Connect) -> None:
    body = json.dumps({"model": MODEL, "text": "the cat saw the cat"}).encode()
    connection = connect()
    for part in ((HEAD % len(body))[:30], (HEAD % len(body))[30:], body[:20], body[20:]):
        connection.sendall(part)
        time.sleep(HEADERS / 3)
    connection.settimeout(20)
    assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")


def test_an_answer_may_take_longer_than_a_request(tmp_path: Path) -> None:
    with (
        serving(make_app(tmp_path, small_model(delay_s=0.5)), http=Short, timeout_keep_alive=60) as address,
        httpx2.Client(base_url=address, timeout=30, trust_env=False) as client,
    ):
        for text in ("one", "two"):  # on one connection
            started = time.monotonic()
            assert client.post("/api/runs", json={"model": MODEL, "text": text}).status_code == 201
            assert time.monotonic() - started > BODY


def test_slow_clients_leave_nothing_behind(address: str, connect: Connect) -> None:
    slow = [connect() for _ in range(50)]
    for number, connection in enumerate(slow):
        connection.sendall(HEAD[: 10 + number] if number % 2 else HEAD % 100 + b"x")
    time.sleep(BODY + 0.5)
    with httpx2.Client(base_url=address, timeout=20, trust_env=False) as client:
        assert client.post("/api/runs", json={"model": MODEL, "text": "cat"}).status_code == 201
    for connection in slow:
        connection.settimeout(LATE)
        assert connection.recv(65536).startswith(b"HTTP/1.1 408 ")
        assert connection.recv(65536) == b""
