"""`python -m tests.fake_server --port N`: the real application over the fake model, for the page and for tests."""

from __future__ import annotations

import argparse
import logging
import tempfile
from pathlib import Path

from app.main import create_app
from app.serving import server_of
from app.settings import Settings
from tests.fakes import FakeModel, FakeModels


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--delay", type=float, default=0.01, help="seconds per layer")
    parser.add_argument("--load", type=float, default=0.0, help="seconds that loading the model takes")
    parser.add_argument("--fail-at", type=int, default=None, help="layer whose pass fails")
    parser.add_argument("--max-tokens", type=int, default=8192)
    parser.add_argument("--layers", type=int, default=30, help="of the first model")
    parser.add_argument("--heads", type=int, default=9, help="of each layer of the first model")
    parser.add_argument("--data-dir", type=Path, default=None, help="a new temporary folder if left out")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    data_dir = given.data_dir or Path(tempfile.mkdtemp(prefix="everyhead-fake-"))
    model = FakeModel(
        given.layers, given.heads, delay_s=given.delay, fail_at=given.fail_at, max_tokens=given.max_tokens
    )
    app = create_app(
        Settings(data_dir=data_dir, default_model="fake-30x9"),
        catalogue=FakeModels(model, load_s=given.load),
    )
    server_of(app, app.state.services.stop, host="127.0.0.1", port=given.port, timeout_graceful_shutdown=4).run()


if __name__ == "__main__":
    main()
