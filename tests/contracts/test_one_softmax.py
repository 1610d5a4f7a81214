"""Scores become weights in exactly one function: nothing else in models/ or app/ takes a softmax or an exponential."""

from __future__ import annotations

import ast

import pytest

from tests.contracts.repo import files_under, functions, tree

HOME = "models/attention.py"
NAMES = {"softmax", "log_softmax", "softmax_", "exp", "exp_", "exp2", "exp2_", "logsumexp", "Softmax", "LogSoftmax"}


def exponentials(module: ast.Module) -> list[int]:
    """Lines on which a softmax or an exponential is called or named as a method."""
    return sorted(
        node.lineno
        for node in ast.walk(module)
        if (isinstance(node, ast.Attribute) and node.attr in NAMES) or (isinstance(node, ast.Name) and node.id in NAMES)
    )


@pytest.mark.parametrize("path", [path for path in files_under("models", "app") if path != HOME])
def test_no_other_file_has_one(path: str) -> None:
    assert exponentials(tree(path)) == []


def test_the_one_place_is_one_function() -> None:
    lines = exponentials(tree(HOME))
    home = [
        name
        for name, node in functions(tree(HOME))
        if any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)
    ]
    assert home == ["softmax_parts"]
    node = dict(functions(tree(HOME)))["softmax_parts"]
    assert all(node.lineno <= line <= (node.end_lineno or 0) for line in lines)


@pytest.mark.parametrize(
    "line", ["w = scores.softmax(-1)", "w = torch.exp(s - m)", "w = F.softmax(s, dim=-1)", "s.sub_(m).exp_()"]
)
def test_another_one_is_seen(line: str) -> None:
    assert exponentials(ast.parse(line)) == [1]
