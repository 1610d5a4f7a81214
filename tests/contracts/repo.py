"""The project's own files, for the contract tests: which there are and what their syntax trees say."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def project_files() -> tuple[str, ...]:
    """Paths of all files that are, or would be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(sorted(path for path in set(listed.split("\0")) if path and (ROOT / path).is_file()))


def files_under(*folders: str, suffix: str = ".py") -> list[str]:
    """Those of the project's files that lie in the folders and end in the suffix."""
    return [path for path in project_files() if path.endswith(suffix) and path.split("/")[0] in folders]


def read(path: str) -> str:
    """The text of one file of the project."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree(path: str) -> ast.Module:
    """The syntax tree of one Python file of the project."""
    return ast.parse(read(path), filename=path)


def functions(module: ast.Module) -> list[tuple[str, FunctionNode]]:
    """(qualified name, node) of every function and method, nested ones included."""
    found: list[tuple[str, FunctionNode]] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FunctionNode | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if isinstance(child, FunctionNode):
                    found.append((name, child))
                visit(child, f"{name}.")
            else:
                visit(child, prefix)

    visit(module, "")
    return found
