"""`python -m app`: serve with the settings of the environment."""

from __future__ import annotations

import gc
import logging

import uvicorn

from app.main import create_app
from app.settings import Settings

GRACE_S = 5  # open event streams are cut after so many seconds


def main() -> None:
    """Serve until stopped. uvicorn's own access log stays off: its lines hold paths, and paths hold run ids."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = Settings()
    app = create_app(settings)
    gc.freeze()  # what was imported stays: looking through it for garbage stopped everything for a quarter of a second
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )


if __name__ == "__main__":
    main()
