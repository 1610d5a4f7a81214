"""`python -m app`: serve with the settings of the environment."""

from __future__ import annotations

import gc
import logging

from pydantic import ValidationError

from app.main import create_app
from app.services.identity import DataFolderUnusable, load_key
from app.serving import server_of
from app.settings import Settings, variable


def main() -> None:
    """Serve until stopped; what cannot be started ends with one sentence and status 1."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        settings = Settings()
        load_key(settings.data_dir)
    except ValidationError as error:
        raise SystemExit("; ".join(f"{variable(one['loc'])}: {one['msg']}" for one in error.errors())) from None
    except DataFolderUnusable as error:
        raise SystemExit(str(error)) from None
    app = create_app(settings)
    gc.freeze()  # what was imported stays: looking through it for garbage stopped everything for a quarter of a second
    server_of(app, app.state.services.stop, host=settings.host, port=settings.port).run()


if __name__ == "__main__":
    main()
