"""What handlers ask for: the services of this application, and a thread for work that may wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from app.reading import Readers
from app.services.comparison import Alignments
from app.services.lenses import LensService
from app.services.ports import Models
from app.services.references import ReferenceService
from app.services.runs import RunService
from app.services.similarity import SimilarityService
from app.services.stages import StageService
from app.settings import Settings

T = TypeVar("T")

FINISH_S = 2.0  # that what runs may take when the server is being stopped


@dataclass(frozen=True)
class Services:
    """Everything that lives as long as the application. `threads` are for calls that may wait for a model to load."""

    settings: Settings
    models: Models
    runs: RunService
    stages: StageService
    lenses: LensService
    similarity: SimilarityService
    references: ReferenceService
    alignments: Alignments
    readers: Readers
    threads: ThreadPoolExecutor

    async def stop(self) -> None:
        """End all work: what is nearly done may finish, the rest is refused while its clients can still be answered."""
        self.runs.refuse()
        if running := [asyncio.create_task(run.wait()) for run in self.runs.unfinished()]:
            _, late = await asyncio.wait(running, timeout=FINISH_S)
            for one in late:
                one.cancel()
        for part in (self.stages, self.references):
            part.close()
        self.runs.stop()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of a blocking call, without blocking the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def in_thread_while_wanted(self, request: Request, work: Callable[[Callable[[], bool]], T]) -> T:
        """The same; `work` is handed a function that says whether the client has gone. Threads are few."""
        stop = threading.Event()
        watching = asyncio.create_task(client_gone(request))
        watching.add_done_callback(lambda _: stop.set())
        try:
            return await self.in_thread(lambda: work(stop.is_set))
        finally:
            watching.cancel()


async def client_gone(request: Request) -> None:
    """Return once the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _services(request: Request) -> Services:
    """The services that `create_app` made."""
    services: Services = request.app.state.services
    return services


def _runs(request: Request) -> RunService:
    return _services(request).runs


Everything = Annotated[Services, Depends(_services)]
Runs = Annotated[RunService, Depends(_runs)]
