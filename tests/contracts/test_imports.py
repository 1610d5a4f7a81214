"""Who may import whom: models nothing of ours, services models, routes services; the web framework at the edge only."""

from __future__ import annotations

import ast

import pytest

from tests.contracts.repo import files_under, tree

WEB = {"fastapi", "starlette", "uvicorn"}
# Files of app/ at the edge, where HTTP is known.
EDGE = (
    "app/main.py",
    "app/__main__.py",
    "app/assets.py",
    "app/bodies.py",
    "app/errors.py",
    "app/reading.py",
    "app/serving.py",
    "app/dependencies.py",
    "app/middleware",
    "app/routes/",
)
# Parts of app/ that services must not know.
ABOVE_SERVICES = (
    "app.main",
    "app.__main__",
    "app.bodies",
    "app.errors",
    "app.reading",
    "app.serving",
    "app.dependencies",
    "app.middleware",
    "app.routes",
    "app.schemas",
)


def imported(module: ast.Module) -> set[str]:
    """Dotted names of everything that a module imports, inside functions and TYPE_CHECKING blocks too."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that this check can read them"
            names.add(node.module or "")
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def refused(path: str, names: set[str]) -> set[str]:
    """Those of the imported names that the file at `path` must not import."""

    def within(name: str, *packages: str) -> bool:
        return any(name == package or name.startswith(f"{package}.") for package in packages)

    bad = (
        {name for name in names if within(name, "tests", "bench")}
        if not path.startswith(("tests/", "bench/"))
        else set()
    )
    if path.startswith("models/"):
        bad |= {name for name in names if within(name, "app", *WEB)}
    if path.startswith("app/") and not path.startswith(EDGE):
        bad |= {name for name in names if within(name, *WEB)}
    if path.startswith("app/services/"):
        bad |= {name for name in names if within(name, *ABOVE_SERVICES)}
    if path.startswith("app/routes/"):
        bad |= {name for name in names if within(name, "app.main", "app.__main__")}
    return bad


@pytest.mark.parametrize("path", files_under("app", "models", "bench"))
def test_imports_go_one_way(path: str) -> None:
    assert refused(path, imported(tree(path))) == set()


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("models/attention.py", "from app.settings import Settings"),
        ("models/attention.py", "import fastapi"),
        ("app/services/runs.py", "from fastapi import HTTPException"),
        ("app/services/runs.py", "from app.schemas import core"),
        ("app/settings.py", "import starlette.requests"),
        ("app/routes/runs.py", "from app.main import create_app"),
        ("app/main.py", "from tests.fakes import FakeModel"),
    ],
)
def test_a_wrong_import_is_seen(path: str, line: str) -> None:
    assert refused(path, imported(ast.parse(line)))
