"""The models that we train and ship: how they lie on disk, and how it is made sure that nobody has changed them.

    models/weights/NAME/model.safetensors   weights in float16, loaded as float32
                        config.json         shape of the Transformer
                        tokenizer.json      vocabulary
                        card.json           recipe, data and licence, command, hardware, time, loss, figures
    models/weights/hashes.json              SHA-256 of each of these files; a file that is not listed is not loaded

This module knows nothing of the catalogue, nor of how a model is run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from models.errors import ConfigError, UnsupportedModel
from models.parameters import copy_parameters, listed
from models.recipes import Prepared, Recipe
from models.transformer import Transformer
from models.transformer_config import TransformerConfig

WEIGHTS = Path(__file__).parent / "weights"
HASHES = "hashes.json"
FILES = ("model.safetensors", "config.json", "tokenizer.json", "card.json")
CURVE_POINTS = 60  # of the loss curve that a card holds


@dataclass(frozen=True)
class TrainingFacts:
    """How a training went."""

    command: str
    minutes: float
    losses: list[float]


@dataclass(frozen=True)
class Shipped:
    """A model as it lies on disk, loaded."""

    model: Transformer
    tokenizer: Tokenizer
    card: Mapping[str, Any]
    revision: str


def write_shipped(folder: Path, recipe: Recipe, prepared: Prepared, model: Transformer, facts: TrainingFacts) -> None:
    """Write a trained model as it is shipped; its figures are measured on the float16 weights that are written."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = half_weights(model)
    save_file(weights, folder / "model.safetensors")
    copy_parameters(model, weights)
    (folder / "config.json").write_text(_json(model.config.as_dict()), "utf-8")
    prepared.tokenizer.save(str(folder / "tokenizer.json"))
    card = {
        "name": recipe.name,
        "about": recipe.about,
        "licence": "MIT",
        "data": dict(prepared.data),
        "training": {
            "command": facts.command,
            "minutes": round(facts.minutes, 1),
            "hardware": _hardware(),
            "torch": torch.__version__,
            **asdict(recipe.training),
            "final_loss": round(_mean(facts.losses[-CURVE_POINTS:]), 4),
            "loss_curve": _curve(facts.losses),
        },
        "figures": dict(prepared.evaluate(model)),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        **prepared.extra_card,
    }
    (folder / "card.json").write_text(_json(card), "utf-8")


def _hardware() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return f"{threads} thread{'' if threads == 1 else 's'} on {os.cpu_count()} {platform.machine()} cores, no GPU"


def half_weights(model: Transformer) -> dict[str, Tensor]:
    """The model's parameters in the type in which they are shipped.

    Shapes:  as the parameters; float16
    """
    return {name: parameter.detach().half().contiguous() for name, parameter in model.named_parameters()}


def read_shipped(name: str, root: Path = WEIGHTS) -> Shipped:
    """Load a shipped model.

    Raises:  UnsupportedModel if a file is missing, unlisted, not the one that was listed, or listed and of no use;
             ConfigError if the list itself cannot be read
    """
    folder = root / name
    revision = check_hashes(name, root)
    with _reading(f"{name}/config.json"):
        config = TransformerConfig.from_dict(_read_object(folder / "config.json"))
    model = Transformer(config)
    with _reading(f"{name}/model.safetensors"):
        copy_parameters(model, load_file(folder / "model.safetensors"))
    with _reading(f"{name}/tokenizer.json"):
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return Shipped(model.eval(), tokenizer, read_card(name, root), revision)


def read_card(name: str, root: Path = WEIGHTS) -> Mapping[str, Any]:
    """What is known of a shipped model, without loading it. Raises UnsupportedModel if that cannot be read."""
    with _reading(f"{name}/card.json"):
        return _read_object(root / name / "card.json")


@contextmanager
def _reading(place: str) -> Iterator[None]:
    # a hash says who wrote a file, not that it is of use
    try:
        yield
    except Exception as error:  # tokenizers raises nothing narrower
        raise UnsupportedModel(f"{place} cannot be used: {error}") from error


def _read_object(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8"))
    if not isinstance(found, dict):
        raise ConfigError(f"it must be a JSON object, got {type(found).__name__}")
    return found


def check_hashes(name: str, root: Path = WEIGHTS) -> str:
    """Compare every file of a model with the list; the revision, which is made of the listed hashes.

    Raises:  UnsupportedModel that names the file, what was expected and what was found
    """
    signed = _listed_hashes(root)
    for file in FILES:
        place, path = f"{name}/{file}", root / name / file
        if not path.is_file():
            raise UnsupportedModel(f"{place} is missing")
        if place not in signed:
            raise UnsupportedModel(f"{place} is not in {HASHES}: only files that are listed there are loaded")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != signed[place]:
            raise UnsupportedModel(
                f"{place} is not the file that was shipped: SHA-256 should be {signed[place]}, is {found}"
            )
    return revision_of(name, root)


def revision_of(name: str, root: Path = WEIGHTS) -> str:
    """A short name for the weights, from their listed hashes alone. Raises UnsupportedModel if one is not listed."""
    signed = _listed_hashes(root)
    missing = [file for file in FILES if f"{name}/{file}" not in signed]
    if missing:
        raise UnsupportedModel(f"{name}/{missing[0]} is not in {HASHES}: only files that are listed there are loaded")
    return hashlib.sha256("".join(signed[f"{name}/{file}"] for file in FILES).encode()).hexdigest()[:16]


def sign(root: Path = WEIGHTS) -> dict[str, str]:
    """Hash every file of every model below `root` and write the list."""
    hashes = {
        f"{folder.name}/{file}": hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for folder in sorted(path for path in root.iterdir() if path.is_dir())
        for file in FILES
    }
    (root / HASHES).write_text(_json(hashes), "utf-8")
    return hashes


def _listed_hashes(root: Path) -> dict[str, str]:
    try:
        found = _read_object(root / HASHES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{HASHES} cannot be read: {error}") from error
    if other := sorted(place for place, own in found.items() if not isinstance(own, str)):
        raise ConfigError(f"{HASHES} cannot be read: a SHA-256 must be text; not so: {listed(other)}")
    return found


def _curve(losses: list[float]) -> list[list[float]]:
    # [step, mean loss of it and the steps up to the next] at CURVE_POINTS places or fewer
    width = -(-len(losses) // CURVE_POINTS)
    return [[i, round(_mean(losses[i : i + width]), 3)] for i in range(0, len(losses), width)]


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"
