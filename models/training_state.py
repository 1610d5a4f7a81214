"""A training on disk: weights, optimizer state and loss curve in one safetensors file, replaced as a whole.

Nothing in it is pickled. This module knows nothing of batches or of the loop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from models.errors import ConfigError
from models.transformer import Transformer

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of each parameter


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

    Raises:  ConfigError if it is the state of a model of another shape, or of a training with other settings
    """
    facts = _facts(path)
    for name, expected, found in (
        ("model", model.config.as_dict(), facts["config"]),
        (
            "training",
            training,
            facts.get("training", training),
        ),  # older checkpoints do not say
    ):
        other = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
        if other:
            values = ", ".join(f"{key} {found.get(key)} instead of {expected.get(key)}" for key in other)
            raise ConfigError(f"{path.name} is of another {name}: it has {values}")
    with safe_open(path, framework="pt") as held, torch.no_grad():
        names = set(held.keys())
        for name, parameter in model.named_parameters():
            parameter.copy_(held.get_tensor(f"model.{name}"))
            moments = {moment: f"{moment}.{name}" for moment in MOMENTS if f"{moment}.{name}" in names}
            if moments:
                state = {moment: held.get_tensor(key).clone() for moment, key in moments.items()}
                optimizer.state[parameter] = {  # AdamW counts its steps on the CPU, wherever the parameter is
                    moment: value if moment == "step" else value.to(parameter.device) for moment, value in state.items()
                }
    losses: list[float] = facts["losses"]
    return losses


def training_seconds(path: Path) -> float:
    """How long the training of a checkpoint had taken when it was saved, interruptions left out."""
    return float(_facts(path).get("seconds", 0.0))


def _facts(path: Path) -> dict[str, Any]:
    try:
        with safe_open(path, framework="pt") as held:
            facts: dict[str, Any] = json.loads(held.metadata()["training"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path.name} is no checkpoint of a training: {error}") from error
    return facts
