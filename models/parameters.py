"""Putting weights into a model: every name and shape is checked before a byte is copied.

This module knows nothing of where the weights come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from models.errors import ConfigError

LISTED = 8  # names in a message; more are counted


def copy_parameters(model: nn.Module, given: Mapping[str, Tensor]) -> None:
    """Copy tensors into the model's parameters of the same names, converted to their type.

    Shapes:  as the model's parameters; parameters that are one tensor under two names (tied) are given once, under the
             name that `named_parameters` has
    Raises:  ConfigError that lists missing and unexpected names, wrong shapes, and tensors that are not of finite
             floating-point numbers; the model is then as it was
    """
    wanted = dict(model.named_parameters())
    check_fit({name: parameter.shape for name, parameter in wanted.items()}, given)
    check_numbers(given)
    with torch.no_grad():
        for name, tensor in given.items():
            wanted[name].copy_(tensor)


def check_fit(wanted: Mapping[str, Sequence[int]], given: Mapping[str, Tensor]) -> None:
    """Compare names and shapes.

    Shapes:  each of `given` as `wanted` says
    Raises:  ConfigError that lists missing and unexpected names and wrong shapes
    """
    problems = []
    if missing := sorted(wanted.keys() - given.keys()):
        problems.append(f"missing: {listed(missing)}")
    if unexpected := sorted(given.keys() - wanted.keys()):
        problems.append(f"unexpected: {listed(unexpected)}")
    wrong = [
        f"{name} should be {tuple(wanted[name])}, is {tuple(tensor.shape)}"
        for name, tensor in sorted(given.items())
        if name in wanted and tuple(wanted[name]) != tuple(tensor.shape)
    ]
    if wrong:
        problems.append(f"wrong shapes: {listed(wrong)}")
    if problems:
        raise ConfigError(f"these weights do not fit the model; {'; '.join(problems)}")


def check_numbers(given: Mapping[str, Tensor]) -> None:
    """See that all are finite floating-point numbers: a copy would turn others into weights without a word.

    Shapes:  any
    Raises:  ConfigError that lists the tensors of which it is not so
    """
    if other := sorted(name for name, tensor in given.items() if not tensor.is_floating_point()):
        raise ConfigError(f"weights must be floating-point numbers; these are not: {listed(other)}")
    if broken := sorted(name for name, tensor in given.items() if not bool(tensor.isfinite().all())):
        raise ConfigError(f"weights must be finite; these hold NaN or infinity: {listed(broken)}")


def listed(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
