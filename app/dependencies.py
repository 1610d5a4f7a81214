"""What handlers ask for: the services of this application, and a thread for work that may wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from app.services.ports import Models
from app.services.runs import RunService
from app.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Services:
    """Everything that lives as long as the application. `threads` are for calls that may wait for a model to load."""

    settings: Settings
    models: Models
    runs: RunService
    threads: ThreadPoolExecutor

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of a blocking call, without blocking the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)


def _services(request: Request) -> Services:
    """The services that `create_app` made."""
    services: Services = request.app.state.services
    return services


def _runs(request: Request) -> RunService:
    return _services(request).runs


Everything = Annotated[Services, Depends(_services)]
Runs = Annotated[RunService, Depends(_runs)]
