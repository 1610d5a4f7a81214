"""Reads of finished runs beside a pass: few at a time, and after it.

However many clients read windows, a run beside them competes with a few threads only, which give way to it. It knows of
no call and no run; which calls are reads is said where they are declared.
"""

from __future__ import annotations

import asyncio
import gzip
import inspect
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

T = TypeVar("T")

READERS = max(2, (os.cpu_count() or 2) // 2)  # one that waits for the disk, say, must not stop all
READERS_GIVE_WAY = 10  # added to the niceness: about a tenth of the weight of other threads in the scheduler
COMPRESS_FROM_BYTES, COMPRESS_LEVEL = 1024, 6


class Readers:
    """The threads that read. They are few, and where threads have a priority of their own (Linux) it is a lower one.

    `python -m bench.sharing` measures what they leave of a pass.
    """

    def __init__(self, number: int = READERS) -> None:
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="reading", initializer=_give_way)

    def close(self) -> None:
        """Start no further read."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def read(self, work: Callable[[], T]) -> T:
        """The result of a read, once it is its turn."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _give_way() -> None:
    """Lower the priority of this thread, and with it of those that torch starts for it."""
    if sys.platform == "linux":  # elsewhere the number of a thread would be taken for a process's
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + READERS_GIVE_WAY)


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
