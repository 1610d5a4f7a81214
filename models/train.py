"""Train a recipe: `python -m models.train RECIPE [--data FOLDER] [--out FOLDER] [--snapshots STEPS] [--until STEP]`.

Run it again after an interruption (Ctrl-C saves first) and it goes on from its last checkpoint. At the end the folder
holds a model as it is shipped: weights in float16, tokenizer, card. Knows nothing of the service.
"""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from models.errors import Cancelled, EngineError
from models.protocol import device_of_choice
from models.recipes.registry import RECIPES
from models.shipped import TrainingFacts, half_weights, write_shipped
from models.training import StepReport, train
from models.training_state import training_seconds
from models.transformer import Transformer

LINE_EVERY = 20  # steps between two lines of progress


class Stop:
    """Whether to stop: after a step that was asked for, or at Ctrl-C; a second Ctrl-C does not wait."""

    def __init__(self, until: int | None) -> None:
        self.until = until
        self.wanted = False

    def after_step(self, report: StepReport) -> None:
        """Note that a step is done."""
        self.wanted = self.wanted or (self.until is not None and report.step + 1 >= self.until)

    def on_signal(self, *_signal: Any) -> None:
        """Note that somebody wants to stop."""
        self.wanted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    """Read the command line, train, write the model."""
    arguments = _arguments()
    recipe = RECIPES[arguments.recipe]
    folder = arguments.out or Path("build/training") / recipe.name
    stop = Stop(arguments.until)
    torch.manual_seed(recipe.training.seed)
    try:
        folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is known now, not after many steps
        prepared = recipe.prepare(arguments.data)
        model = Transformer(recipe.model).to(device_of_choice())
        checkpoint = folder / "training.safetensors"
        signal.signal(signal.SIGINT, stop.on_signal)
        losses = train(
            model,
            prepared.next_batch,
            recipe.training,
            checkpoint=checkpoint,
            on_step=partial(_after_step, model, folder / "snapshots", arguments.snapshots, stop),
            should_stop=lambda: stop.wanted,
        )
        facts = TrainingFacts(f"python -m models.train {recipe.name}", training_seconds(checkpoint) / 60, losses)
        write_shipped(folder / "model", recipe, prepared, model.cpu(), facts)  # figures are measured where it will run
    except Cancelled as stopped:
        sys.stdout.write(f"{stopped}; the same command goes on from there\n")
        return 0
    except (EngineError, OSError, SafetensorError) as error:  # the last is what safetensors makes of a full disk
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"wrote {folder / 'model'}\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m models.train", description="Train one of the shipped models.")
    parser.add_argument("recipe", choices=sorted(RECIPES))
    parser.add_argument("--data", type=Path, default=Path("build/training-data"), help="folder with the texts")
    parser.add_argument("--out", type=Path, help="folder for checkpoint and model (default: build/training/RECIPE)")
    parser.add_argument(
        "--snapshots", type=_at_least_one, metavar="STEPS", help="keep the weights after every so many steps"
    )
    parser.add_argument("--until", type=_at_least_one, metavar="STEP", help="stop after this step; run again to go on")
    return parser.parse_args()


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text}")
    return int(text)


def _after_step(model: Transformer, snapshots: Path, every: int | None, stop: Stop, report: StepReport) -> None:
    stop.after_step(report)
    if every and (report.step + 1) % every == 0:
        snapshots.mkdir(parents=True, exist_ok=True)
        save_file(half_weights(model), snapshots / f"step-{report.step + 1:05}.safetensors")
    if (report.step + 1) % LINE_EVERY == 0 or report.step + 1 == report.steps:
        sys.stdout.write(
            f"step {report.step + 1}/{report.steps}  loss {report.loss:.3f}  rate {report.rate:.2e}  "
            f"gradient {report.grad_norm:.2f}  {report.seconds_left / 60:.1f} min left\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
