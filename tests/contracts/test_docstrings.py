"""Every module says what it is, and every public tensor function of models/ says which shapes go in and come out."""

from __future__ import annotations

import ast

import pytest

from tests.contracts.repo import FunctionNode, files_under, functions, tree


def mentions_tensor(node: FunctionNode) -> bool:
    """True if a parameter or the return value is annotated with Tensor."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    annotations = [argument.annotation for argument in arguments] + [node.returns]
    names = (name for annotation in annotations if annotation is not None for name in ast.walk(annotation))
    return any(
        (isinstance(name, ast.Name) and name.id == "Tensor")
        or (isinstance(name, ast.Attribute) and name.attr == "Tensor")
        for name in names
    )


def without_shapes(module: ast.Module) -> list[str]:
    """Public functions that touch tensors and whose docstring has no `Shapes:`."""
    return [
        name
        for name, node in functions(module)
        if not any(part.startswith("_") for part in name.split("."))
        and mentions_tensor(node)
        and "Shapes:" not in (ast.get_docstring(node) or "")
    ]


@pytest.mark.parametrize("path", files_under("app", "models", "bench", "tests"))
def test_module_says_what_it_is(path: str) -> None:
    docstring = ast.get_docstring(tree(path))
    assert docstring, f"{path} has no module docstring"
    assert len(docstring.split()) >= 4, f"{path}: {docstring!r} says too little"


@pytest.mark.parametrize("path", files_under("models"))
def test_tensor_functions_state_their_shapes(path: str) -> None:
    assert without_shapes(tree(path)) == []


def test_a_missing_shape_is_seen() -> None:
    source = 'def scale(x: Tensor) -> Tensor:\n    """Twice x."""\n\ndef _private(x: Tensor) -> None: ...\n'
    assert without_shapes(ast.parse(source)) == ["scale"]
