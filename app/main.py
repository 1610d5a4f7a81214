"""Puts the application together: middleware, routers, services. No logic."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import torch
from fastapi import FastAPI
from fastapi.middleware.gzip import GZipMiddleware

from app import errors
from app.dependencies import Services
from app.middleware import Gate, HeadAsGet, LastResort
from app.reading import COMPRESS_FROM_BYTES, COMPRESS_LEVEL, Readers
from app.routes import (
    attention,
    compare,
    heads,
    health,
    models,
    pages,
    references,
    runs,
    similarity,
    stages,
    units,
    weights,
)
from app.routes.parameters import ONLY_KNOWN
from app.services.catalogue import Catalogue
from app.services.comparison import Alignments
from app.services.compute import Compute
from app.services.jobs import JobQueue
from app.services.lenses import LensService
from app.services.ports import Models
from app.services.references import ReferenceService
from app.services.runs import FORMAT_VERSION, RunService
from app.services.similarity import SimilarityService
from app.services.stages import StageService
from app.services.store import RunStore
from app.settings import Settings
from models.capture import Capture

logger = logging.getLogger("everyhead")

WAITING_THREADS = 16  # calls that may wait for a model to load


def create_app(settings: Settings | None = None, *, catalogue: Models | None = None) -> FastAPI:
    """The application. Tests hand in a catalogue of fakes."""
    settings = settings or Settings()
    services = _services(settings, catalogue)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if settings.torch_threads:
            torch.set_num_threads(settings.torch_threads)
        services.runs.start()
        services.references.start()
        services.models.prepare(_first_model(services.models, settings.default_model))
        yield
        services.stages.close()
        services.references.close()
        services.runs.close()
        services.readers.close()
        services.threads.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(
        title="Everyhead",
        summary="Every attention weight of every head of a Transformer, exact, at any length.",
        version="0.1.0",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.services = services
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESS_FROM_BYTES, compresslevel=COMPRESS_LEVEL)
    app.add_middleware(Gate, allowed_hosts=settings.allowed_hosts, max_body_bytes=settings.max_body_bytes)
    app.add_middleware(HeadAsGet)
    app.add_middleware(LastResort)
    errors.install(app)
    for part in (references, models, runs, stages, heads, weights, units, similarity, compare, attention):
        app.include_router(part.router, dependencies=[ONLY_KNOWN], responses=errors.responses(422))
    app.include_router(health.router)
    pages.install(app)
    return app


def _first_model(models: Models, wanted: str) -> str:
    """The default model, or the one that is listed first where there is no such model here."""
    listed = [entry.id for entry in models.list()]
    if wanted in listed:
        return wanted
    logger.warning("there is no model %s here; %s is the default", wanted, listed[0])
    return listed[0]


def _services(settings: Settings, catalogue: Models | None) -> Services:
    """Everything that lives as long as the application; nothing is started yet."""
    catalogue = catalogue or Catalogue(
        data_dir=settings.data_dir,
        models_dir=settings.models_dir,
        hub_allow=settings.hub_allow,
        offline=settings.offline,
        default_model=settings.default_model,
    )
    store = RunStore(
        settings.data_dir / "runs",
        limit_bytes=settings.store_bytes,
        backlog_bytes=settings.backlog_bytes,
        format_version=FORMAT_VERSION,
        read_capture=Capture.from_tensors,
    )
    queue = JobQueue(settings.queue_limit, time.perf_counter, store.wait_for_room)
    compute = Compute(catalogue, settings.store_bytes)
    service = RunService(catalogue, compute, store, queue, settings.data_dir)
    threads = ThreadPoolExecutor(WAITING_THREADS, thread_name_prefix="waiting")
    stages_of = StageService(catalogue, queue, service.read)
    lenses, similarity_of, alignments = LensService(), SimilarityService(), Alignments()
    store.when_forgotten(service.forget, stages_of.forget, lenses.forget, similarity_of.forget, alignments.forget)
    references_of = ReferenceService(catalogue, compute, queue, settings.data_dir / "references")
    parts = (stages_of, lenses, similarity_of, references_of, alignments)
    return Services(settings, catalogue, service, *parts, Readers(), threads)
