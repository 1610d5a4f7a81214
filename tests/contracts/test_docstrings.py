"""Every module says what it is, and every public tensor function of models/ says which shapes go in and come out."""

from __future__ import annotations

import ast
import re

import pytest

from tests.contracts.repo import FunctionNode, files_under, functions, tree

# A shape in our dimension names, as in "(n_layers, n_heads, g_rows, g_cols) float32": enough for a one-line docstring.
SHAPE_IN_A_LINE = re.compile(r"\((?:\w+, )*\w*(?:_len|_rows|n_heads|n_layers|d_head)\b[^()]*\)")


def is_tensor(annotation: ast.expr | None) -> bool:
    """True if an annotation names Tensor, other than as the values of a dict or mapping."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in {"dict", "Mapping"}:
        return False
    if isinstance(annotation, ast.Name | ast.Attribute):
        return ast.unparse(annotation).split(".")[-1] == "Tensor"
    return annotation is not None and any(
        is_tensor(child) for child in ast.iter_child_nodes(annotation) if isinstance(child, ast.expr)
    )


def touches_tensors(node: FunctionNode) -> bool:
    """True if a parameter or the return value is a tensor."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return any(is_tensor(annotation) for annotation in [*(argument.annotation for argument in arguments), node.returns])


def states_shapes(docstring: str) -> bool:
    """True if a docstring has the section `Shapes:`, or is one line with a shape in it."""
    return "Shapes:" in docstring or ("\n" not in docstring and SHAPE_IN_A_LINE.search(docstring) is not None)


def without_shapes(module: ast.Module) -> list[str]:
    """Public functions that touch tensors and whose docstring does not say their shapes."""
    return [
        name
        for name, node in functions(module)
        if not any(part.startswith("_") for part in name.split("."))
        and touches_tensors(node)
        and not states_shapes(ast.get_docstring(node) or "")
    ]


@pytest.mark.parametrize("path", files_under("app", "models", "bench", "tests"))
def test_module_says_what_it_is(path: str) -> None:
    docstring = ast.get_docstring(tree(path))
    assert docstring, f"{path} has no module docstring"
    assert len(docstring.split()) >= 4, f"{path}: {docstring!r} says too little"


@pytest.mark.parametrize("path", files_under("models"))
def test_tensor_functions_state_their_shapes(path: str) -> None:
    assert without_shapes(tree(path)) == []


@pytest.mark.parametrize(
    "source",
    [
        'def scale(x: Tensor) -> Tensor:\n    """Twice x."""',
        'def scale(x: torch.Tensor | None) -> None:\n    """Twice x (see below)."""',
        'def scale(xs: list[Tensor]) -> None:\n    """Twice each."""',
        "def scale() -> Tensor: ...",
    ],
)
def test_a_missing_shape_is_seen(source: str) -> None:
    assert without_shapes(ast.parse(source)) == ["scale"]
