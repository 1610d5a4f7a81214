"""Files and functions stay small enough to be read in one sitting."""

from __future__ import annotations

import ast

import pytest

from tests.contracts.repo import files_under, functions, read, tree

CODE = ("app", "models", "bench", "tests", "scripts")
MAX_LINES = {".py": 350, ".js": 200, ".css": 300}
MAX_FUNCTION_LINES = 50


def long_functions(module: ast.Module) -> list[str]:
    """Functions longer than the limit, from `def` to the last line, docstring included."""
    return [
        name
        for name, node in functions(module)
        if (node.end_lineno or node.lineno) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]


@pytest.mark.parametrize("suffix", MAX_LINES)
def test_files_are_short(suffix: str) -> None:
    lengths = {path: read(path).count("\n") for path in files_under(*CODE, "static", suffix=suffix)}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES[suffix]} == {}


@pytest.mark.parametrize("path", files_under(*CODE))
def test_functions_are_short(path: str) -> None:
    assert long_functions(tree(path)) == []


def test_a_long_function_is_seen() -> None:
    source = "def f() -> None:\n" + "    x = 1\n" * MAX_FUNCTION_LINES
    assert long_functions(ast.parse(source)) == ["f"]
