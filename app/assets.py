"""Static files and the addresses under which they may be kept for ever. Knows nothing of pages.

A style, picture or bundle carries its own hash. Modules import each other by relative paths, so they carry the hash of
all of them as a folder: /static/modules-<hash>/js/main.js imports /static/modules-<hash>/js/api.js.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import time
from functools import lru_cache
from pathlib import Path

from fastapi import Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "static"
PLOTLY = "vendor/plotly.min.js"  # served from the installed package, never copied
FOR_EVER = "public, max-age=31536000, immutable"
MODULES = re.compile(r"modules-([0-9a-f]{12})/(js/.*)")


def plotly_bundle() -> Path:
    """plotly.min.js of the installed package, found without importing it."""
    found = importlib.util.find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("the plotly package is not installed")
    return Path(found.submodule_search_locations[0]) / "package_data" / "plotly.min.js"


def asset(path: str) -> str:
    """The address of a static file, with a hash of its content, so that it may be kept for ever."""
    if path.startswith("js/"):
        return f"/static/modules-{_hash_of_modules()}/{path}"
    file = plotly_bundle() if path == PLOTLY else STATIC / path
    return f"/static/{path}?v={_hash((file,), file.stat().st_mtime_ns)}"


class Assets(StaticFiles):
    """Static files; those asked for with their hash never change, the others must be asked about."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or 404."""
        hashed = b"v=" in scope["query_string"]
        if (module := MODULES.fullmatch(path)) is not None:
            hashed, path = module[1] == _hash_of_modules(), module[2]  # a page from before an update gets what is here
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = FOR_EVER if hashed else "no-cache"
        return response


def _hash_of_modules() -> str:
    return _hash_of_modules_at(int(time.monotonic()))


@lru_cache(maxsize=1)
def _hash_of_modules_at(_second: int) -> str:
    # a first visit asks for a hundred modules at once: their folder is looked through once a second
    files = tuple(sorted((STATIC / "js").rglob("*.js")))
    return _hash(files, max(file.stat().st_mtime_ns for file in files))


@lru_cache(maxsize=512)
def _hash(files: tuple[Path, ...], _changed: int) -> str:
    content = b"".join(file.read_bytes() for file in files)
    return hashlib.blake2b(content, digest_size=6).hexdigest()
