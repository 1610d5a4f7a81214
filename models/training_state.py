"""A training on disk: weights, optimizer state and loss curve in one safetensors file, replaced as a whole.

Nothing in it is pickled. This module knows nothing of batches or of the loop.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from models.errors import ConfigError
from models.parameters import check_fit, check_numbers, listed
from models.transformer import Transformer

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of each parameter
LONGEST = 80  # characters of what was found, in a message


@dataclass(frozen=True)
class TrainingState:
    """What a training consists of between two steps.

    training  what decides its loss curve, JSON-ready
    seconds   how long it has taken so far
    """

    model: Transformer
    optimizer: torch.optim.AdamW
    losses: list[float]
    training: Mapping[str, Any]
    seconds: float


def save_state(path: Path, state: TrainingState) -> None:
    """Write a training's state; the file is the old one or the new one at every moment, never half of one."""
    tensors = {}
    for name, parameter in state.model.named_parameters():
        tensors[f"model.{name}"] = parameter.detach().contiguous()
        for moment, value in state.optimizer.state.get(parameter, {}).items():
            tensors[f"{moment}.{name}"] = value.contiguous()
    facts = {
        "losses": state.losses,
        "seconds": state.seconds,
        "training": dict(state.training),
        "config": state.model.config.as_dict(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    save_file(tensors, beside, metadata={"training": json.dumps(facts)})
    beside.replace(path)


def load_state(
    path: Path, model: Transformer, optimizer: torch.optim.AdamW, training: Mapping[str, Any]
) -> list[float]:
    """Put a training's state into the model and optimizer; the losses so far.

    Raises:  ConfigError if it is the state of a model of another shape, or of a training with other settings, or if
             it is not whole: names, shapes, numbers and steps are compared before anything is changed
    """
    facts = _facts(path)
    _check_same(path, "model", model.config.as_dict(), facts["config"])
    _check_same(path, "training", training, facts.get("training", training))  # older checkpoints do not say
    losses: list[float] = facts["losses"]
    parameters, held = dict(model.named_parameters()), load_file(path)
    try:
        _check_tensors(parameters, held, len(losses), training["steps"])
    except ConfigError as error:
        raise ConfigError(f"{path.name} cannot be gone on from: {error}") from error
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(held[f"model.{name}"])
    if losses:
        _gather(optimizer, parameters, held)
    return losses


def training_seconds(path: Path) -> float:
    """How long the training of a checkpoint had taken when it was saved, interruptions left out."""
    return float(_facts(path).get("seconds", 0.0))


def _check_same(path: Path, what: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    other = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
    if other:
        values = ", ".join(f"{key} {found.get(key)} instead of {expected.get(key)}" for key in other)
        raise ConfigError(f"{path.name} is of another {what}: it has {values}")


def _check_tensors(parameters: Mapping[str, Tensor], held: Mapping[str, Tensor], done: int, steps: int) -> None:
    if done > steps:
        raise ConfigError(f"there must be at most {steps} losses, one for each step, got {done}")
    wanted = {f"model.{name}": tuple(parameter.shape) for name, parameter in parameters.items()}
    if done:  # before the first step AdamW has gathered nothing
        for name, parameter in parameters.items():
            wanted |= {f"{moment}.{name}": () if moment == "step" else tuple(parameter.shape) for moment in MOMENTS}
    check_fit(wanted, held)
    check_numbers(held)
    other = sorted(name for name, tensor in held.items() if name.startswith("step.") and float(tensor) != done)
    if other:
        raise ConfigError(f"AdamW must have done {done} steps, one for each loss; not so: {listed(other)}")


def _gather(optimizer: torch.optim.AdamW, parameters: Mapping[str, nn.Parameter], held: Mapping[str, Tensor]) -> None:
    # AdamW counts its steps on the CPU, wherever the parameter is
    for name, parameter in parameters.items():
        state = {moment: held[f"{moment}.{name}"] for moment in MOMENTS}
        optimizer.state[parameter] = {
            moment: value if moment == "step" else value.to(parameter.device) for moment, value in state.items()
        }


def _facts(path: Path) -> dict[str, Any]:
    try:
        with safe_open(path, framework="pt") as held:
            facts = json.loads(held.metadata()["training"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path.name} is no checkpoint of a training: {error}") from error
    if not isinstance(facts, dict):
        raise ConfigError(f"{path.name} is no checkpoint of a training: what it says of it must be an object")
    losses = facts.get("losses")
    for name, expected, holds in (
        ("losses", "a list of finite numbers", isinstance(losses, list) and all(map(_is_number, losses))),
        ("config", "an object", isinstance(facts.get("config"), dict)),
        ("training", "an object", isinstance(facts.get("training", {}), dict)),
        ("seconds", "a finite number", _is_number(facts.get("seconds", 0.0))),
    ):
        if not holds:
            given = str(facts.get(name, "none"))[:LONGEST]
            raise ConfigError(f"{path.name} is no checkpoint of a training: {name} must be {expected}, got {given}")
    return facts


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
