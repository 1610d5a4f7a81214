"""Reads of finished runs beside a pass: few at a time.

However many clients read windows, a run beside them competes with a few threads only. It knows of no call and no run;
which calls are reads is said where they are declared.
"""

from __future__ import annotations

import asyncio
import gzip
import inspect
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

T = TypeVar("T")

READERS = max(2, (os.cpu_count() or 2) // 2)  # one that waits for the disk, say, must not stop all
COMPRESS_FROM_BYTES, COMPRESS_LEVEL = 1024, 6


class Readers:
    """The threads that read. Their number is the only bound: they have the priority and torch's threads of all others.

    `python -m bench.sharing` measures what they leave of a pass.
    """

    def __init__(self, number: int = READERS) -> None:
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="reading")

    def close(self) -> None:
        """Start no further read."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def read(self, work: Callable[[], T]) -> T:
        """The result of a read, once it is its turn."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class ReadRoute(APIRoute):
    """A call that reads a finished run: it is answered, and its answer compressed, in one of the readers' threads."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _in_readers(endpoint), **options)


def _in_readers(endpoint: Callable[..., Response]) -> Callable[..., Any]:
    """The same call as a coroutine that waits for a reader. It must take the request."""
    if "request" not in inspect.signature(endpoint).parameters:
        raise TypeError(f"{endpoint.__name__} takes no request, so its readers are unknown")

    @wraps(endpoint)
    async def call(**given: Any) -> Response:
        request: Request = given["request"]
        readers: Readers = request.app.state.services.readers
        return await readers.read(lambda: _compressed(endpoint(**given), request))

    return call


def _compressed(answer: Response, request: Request) -> Response:
    """The answer as it travels; the event loop would have to stop for that."""
    content = bytes(answer.body)
    if "gzip" not in request.headers.get("accept-encoding", "") or len(content) < COMPRESS_FROM_BYTES:
        return answer
    answer.body = gzip.compress(content, COMPRESS_LEVEL, mtime=0)
    answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Content-Length"] = str(len(answer.body))
    answer.headers.add_vary_header("Accept-Encoding")
    return answer
