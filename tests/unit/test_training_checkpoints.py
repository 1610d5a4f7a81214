"""Interrupted trainings: what a resumed one goes on from, and checkpoints that nothing can go on from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

import models.training as loop
from models.errors import ConfigError
from models.training import TrainingConfig, train
from models.training_state import training_seconds
from tests.unit.small_training import SHORT, SMALL, next_batch, small, trained


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)  # the number of threads changes the order of sums


@pytest.mark.parametrize("config", [SHORT, replace(SHORT, accumulation=2)])
def test_a_resumed_training_is_an_uninterrupted_one(tmp_path: Path, config: TrainingConfig) -> None:
    """Bit for bit, with dropout: losses, weights, and what AdamW has gathered, or the weights would part."""
    losses, weights = trained(tmp_path / "one.safetensors", config)
    for stop in (6, 3):
        again, _ = trained(tmp_path / "two.safetensors", config, until=stop)
        assert again == []
    resumed_losses, resumed_weights = trained(tmp_path / "two.safetensors", config)
    assert len(losses) == 12
    assert resumed_losses == losses
    assert torch.equal(resumed_weights, weights)
    finished, same = trained(tmp_path / "two.safetensors", config)  # nothing is left to do
    assert finished == losses
    assert torch.equal(same, weights)


def test_forgetting_what_adamw_has_gathered_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses, _ = trained(tmp_path / "one.safetensors")
    trained(tmp_path / "two.safetensors", until=7)
    monkeypatch.setattr("models.training_state._gather", lambda *_: None)
    assert trained(tmp_path / "two.safetensors")[0] != losses


def test_a_training_that_dies_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    losses, weights = trained(tmp_path / "one.safetensors")
    seen: list[int] = []

    def die(report: loop.StepReport) -> None:
        if report.step == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(small(), next_batch, SHORT, checkpoint=tmp_path / "two.safetensors", on_step=die)
    model = small(seed=9)  # its weights are those of the checkpoint, whatever it began with
    resumed = train(
        model,
        next_batch,
        SHORT,
        checkpoint=tmp_path / "two.safetensors",
        on_step=lambda report: seen.append(report.step),
    )
    assert seen == [8, 9, 10, 11]
    assert resumed == losses
    assert torch.equal(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]), weights)
    assert not (tmp_path / "two.part").exists()


def test_time_before_an_interruption_counts(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    trained(path, until=6)
    before = training_seconds(path)
    assert before > 0
    trained(path)
    assert training_seconds(path) > before


def test_checkpoints_of_other_trainings(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    trained(path, until=6)
    for changes, message in (
        ({"seed": 6}, "another training: it has seed 5 instead of 6"),
        ({"rate": 0.5}, "rate 0.01 instead of 0.5"),
        ({"steps": 20}, "steps 12 instead of 20"),
    ):
        with pytest.raises(ConfigError, match=message):
            trained(path, replace(SHORT, **changes))
    wider = small(replace(SMALL, d_ff=32))
    with pytest.raises(ConfigError, match=r"one\.safetensors is of another model: it has d_ff 16 instead of 32"):
        train(wider, next_batch, SHORT, checkpoint=path)
    losses, _ = trained(path, replace(SHORT, save_every=5))  # changes nothing of what is learned
    assert len(losses) == 12
    save_file({"model.x": torch.zeros(1)}, tmp_path / "other.safetensors")
    (tmp_path / "torn.safetensors").write_bytes(path.read_bytes()[:1000])
    for name in ("other", "torn"):
        with pytest.raises(ConfigError, match=rf"{name}\.safetensors is no checkpoint"):
            trained(tmp_path / f"{name}.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(ConfigError, match=r"folder\.safetensors is no checkpoint"):
        trained(tmp_path / "folder.safetensors")


Tensors = dict[str, Tensor]
NORM = "decoder.final_norm.weight"  # one of the model's weights, (16)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(f"model.{NORM}"), rf"missing: model\.{NORM}$"),
        (lambda t: t.update({"model.x": torch.zeros(1)}), r"unexpected: model\.x$"),
        (lambda t: t.update({f"model.{NORM}": torch.ones(1, 16)}), rf"{NORM} should be \(16,\), is \(1, 16\)$"),
        (lambda t: t.update({f"model.{NORM}": torch.tensor(1.0)}), rf"{NORM} should be \(16,\), is \(\)$"),
        (lambda t: t.update({f"model.{NORM}": torch.ones(16).to(torch.int8)}), rf"these are not: model\.{NORM}$"),
        (lambda t: t.update({f"model.{NORM}": torch.full((16,), math.nan)}), rf"NaN or infinity: model\.{NORM}$"),
        (lambda t: t.update({f"exp_avg.{NORM}": torch.full((16,), math.inf)}), rf"NaN or infinity: exp_avg\.{NORM}$"),
        (lambda t: t.pop(f"exp_avg_sq.{NORM}"), rf"missing: exp_avg_sq\.{NORM}$"),
        (lambda t: [t.pop(name) for name in list(t) if not name.startswith("model.")], r"missing: exp_avg\."),
        (lambda t: t.update({f"step.{NORM}": torch.tensor(6.0)}), rf"have done 5 steps.*; not so: step\.{NORM}$"),
    ],
)
def test_checkpoints_of_other_tensors(tmp_path: Path, change: Callable[[Tensors], Any], message: str) -> None:
    """Each would be broadcast, converted or left out without a word; the model stays as it was."""
    path = tmp_path / "one.safetensors"
    trained(path, until=6)
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, {"training": json.dumps(facts_of(path))})
    model = small(seed=9)
    before = [parameter.clone() for parameter in model.parameters()]
    with pytest.raises(ConfigError, match=rf"^one\.safetensors cannot be gone on from: .*{message}"):
        train(model, next_batch, SHORT, checkpoint=path)
    assert all(map(torch.equal, before, model.parameters()))


def facts_of(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as held:
        facts: dict[str, Any] = json.loads(held.metadata()["training"])
    return facts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.update(losses=f["losses"][:4]), "must have done 4 steps"),
        (lambda f: f.update(losses=[1.0] * 13), "at most 12 losses, one for each step, got 13"),
        (lambda f: f.pop("losses"), "losses must be a list of finite numbers, got none"),
        (lambda f: f.update(losses=[math.nan] * 6), "losses must be a list of finite numbers, got .nan"),
        (lambda f: f.pop("config"), "config must be an object, got none"),
        (lambda f: f.update(training=[]), r"training must be an object, got \[\]"),
        (lambda f: f.update(seconds="abc"), "seconds must be a finite number, got abc"),
    ],
)
def test_checkpoints_that_say_something_else(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    path = tmp_path / "one.safetensors"
    trained(path, until=6)
    facts = facts_of(path)
    change(facts)
    save_file(load_file(path), path, {"training": json.dumps(facts)})
    with pytest.raises(ConfigError, match=message):
        trained(path)
    save_file(load_file(path), path, {"training": "[]"})
    with pytest.raises(ConfigError, match="what it says of it must be an object"):
        trained(path)


def test_a_loss_that_is_no_number_is_not_saved(tmp_path: Path) -> None:
    """Nor are the weights that it would leave: the checkpoint stays what it was, and so does the model."""
    path = tmp_path / "one.safetensors"
    trained(path, until=6)
    before, model = path.read_bytes(), small()

    def break_it(report: loop.StepReport) -> None:
        with torch.no_grad():
            model.get_parameter(NORM).fill_(math.nan if report.step == 6 else 1.0)

    with pytest.raises(ConfigError, match=r"^step 8 of 12 gave the loss nan and a gradient .*a rate below 0\.01 may"):
        train(model, next_batch, SHORT, checkpoint=path, on_step=break_it)
    assert path.read_bytes() == before
    assert bool(model.get_parameter("decoder.layers.0.feed_forward.inner.weight").isfinite().all())


def test_a_gradient_that_is_no_number_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(math.inf))
    with pytest.raises(ConfigError, match=r"^step 1 of 12 gave the loss \d.* and a gradient of length inf"):
        train(small(), next_batch, SHORT)
