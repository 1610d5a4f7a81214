"""A training on disk: weights, optimizer state and loss curve in one safetensors file, replaced as a whole.

Nothing in it is pickled. This module knows nothing of batches or of the loop.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from models.errors import ConfigError
from models.transformer import Transformer

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of each parameter


@dataclass(frozen=True)
class TrainingState:
    """What a training consists of between two steps."""

    model: Transformer
    optimizer: torch.optim.AdamW
    losses: list[float]
    seed: int


def save_state(path: Path, state: TrainingState) -> None:
    """Write a training's state; the file is the old one or the new one at every moment, never half of one."""
    tensors = {}
    for name, parameter in state.model.named_parameters():
        tensors[f"model.{name}"] = parameter.detach().contiguous()
        for moment, value in state.optimizer.state.get(parameter, {}).items():
            tensors[f"{moment}.{name}"] = value.contiguous()
    facts = {"losses": state.losses, "seed": state.seed, "config": state.model.config.as_dict()}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    save_file(tensors, beside, metadata={"training": json.dumps(facts)})
    beside.replace(path)


def load_state(path: Path, model: Transformer, optimizer: torch.optim.AdamW, seed: int) -> list[float]:
    """Put a training's state into the model and optimizer; the losses so far.

    Raises:  ConfigError if it is the state of a model of another shape, or of another seed
    """
    with safe_open(path, framework="pt") as held:
        facts = json.loads(held.metadata()["training"])
        given = {"seed": seed, "config": model.config.as_dict()}
        for name, expected in given.items():
            if facts[name] != expected:
                raise ConfigError(f"{path.name} is of a training with {name} {facts[name]}, not {expected}")
        names = set(held.keys())
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(held.get_tensor(f"model.{name}"))
                moments = {moment: f"{moment}.{name}" for moment in MOMENTS if f"{moment}.{name}" in names}
                if moments:
                    optimizer.state[parameter] = {m: held.get_tensor(key).clone() for m, key in moments.items()}
    losses: list[float] = facts["losses"]
    return losses
