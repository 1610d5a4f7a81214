"""Training: a plain loop. Take a batch, measure the loss, follow the gradient, note what happened, save now and then.

    rate        linear warm-up, then cosine decay                                      learning_rate
    gradient    that of `accumulation` batches as if they were one, clipped to a norm  train
    optimizer   AdamW; biases, norms and embeddings are not decayed                    _optimizer
    checkpoint  weights, optimizer state and loss curve in one safetensors file        models/training_state.py

A step depends on the seed and its own number alone (batches and dropout are drawn anew for each step from both), so a
training that was killed and resumed follows the same curve as one that was not.

This module knows nothing of texts, tokenizers or recipes: a recipe hands it a model and a function that makes batches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from models.errors import Cancelled, ConfigError, ShapeError
from models.fused import fused_attention
from models.training_state import TrainingState, load_state, save_state, training_seconds
from models.transformer import Transformer

NOT_COUNTED = -100  # a target that takes no part in the loss: what cannot be predicted, or padding


@dataclass(frozen=True)
class Batch:
    """Texts to learn from.

    among   targets are chosen among the first so many entries of the vocabulary; None: among all
    Shapes:  ids (batch, seq_len); targets (batch, seq_len or target_len), NOT_COUNTED where no loss is taken;
             target_ids (batch, target_len) for encoder–decoder models; is_token (batch, seq_len), False for padding
    """

    ids: Tensor
    targets: Tensor
    target_ids: Tensor | None = None
    is_token: Tensor | None = None
    among: int | None = None


NextBatch = Callable[[int, int], Batch]  # (step, part of the step) -> batch; the same for the same two numbers


@dataclass(frozen=True)
class TrainingConfig:
    """How to train.

    steps          updates of the weights
    rate           highest learning rate, reached after warmup_steps; the cosine ends at rate · final_share
    decay_steps    steps until the cosine has ended, more than warmup_steps; None: as many as steps. A training may end
                   earlier, or go on at that rate
    clip_norm      longest gradient, over all parameters
    accumulation   batches for one update, which weighs every counted target alike
    mixed          bfloat16 where the device is a GPU that has it; elsewhere it changes nothing
    save_every     steps between checkpoints
    """

    steps: int
    rate: float
    warmup_steps: int = 100
    final_share: float = 0.1
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    clip_norm: float = 1.0
    accumulation: int = 1
    seed: int = 0
    mixed: bool = True
    save_every: int = 200
    decay_steps: int | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        for name, least in (("steps", 1), ("accumulation", 1), ("save_every", 1), ("warmup_steps", 0)):
            value = getattr(self, name)
            _check(name, type(value) is int and value >= least, f"at least {least} and an integer", value)
        decay = self.decay_steps
        least = self.warmup_steps + 1
        holds = decay is None or (type(decay) is int and decay >= least)
        _check("decay_steps", holds, f"at least {least} and an integer", decay)
        _check("seed", type(self.seed) is int, "an integer", self.seed)
        # each is asked for what it must be, not for what it must not: NaN is neither above nor below anything
        _check("rate", 0 < self.rate < math.inf, "above 0 and finite", self.rate)
        _check("clip_norm", self.clip_norm > 0, "above 0", self.clip_norm)
        _check("final_share", 0 <= self.final_share <= 1, "from 0 to 1", self.final_share)
        _check("weight_decay", 0 <= self.weight_decay < math.inf, "at least 0 and finite", self.weight_decay)
        betas = [beta for beta in self.betas if 0 <= beta < 1]
        _check("betas", len(betas) == len(self.betas) == 2, "two numbers from 0 to below 1", self.betas)

    def as_dict(self) -> dict[str, Any]:
        """What decides the loss curve, JSON-ready: a checkpoint of other values is of another training."""
        return {**asdict(self), "betas": list(self.betas), "save_every": None}


def _check(name: str, holds: bool, expected: str, given: object) -> None:
    if not holds:
        raise ConfigError(f"{name} must be {expected}, got {given}")


@dataclass(frozen=True)
class StepReport:
    """What one step did. grad_norm is the gradient's length before clipping; seconds_left an estimate."""

    step: int
    steps: int
    loss: float
    rate: float
    grad_norm: float
    seconds_left: float


OnStep = Callable[[StepReport], None]


def train(
    model: Transformer,
    next_batch: NextBatch,
    config: TrainingConfig,
    *,
    checkpoint: Path | None = None,
    on_step: OnStep = lambda _report: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[float]:
    """Train; go on from `checkpoint` if that file exists, and keep it up to date.

    Shapes:  see Batch -> the loss of every step from the first, also of those before a resumption
    Raises:  Cancelled between steps, after saving; ConfigError if the checkpoint is of another training or not
             whole, or if a loss or gradient is not finite: nothing is saved then
    Source:  AdamW: Loshchilov and Hutter 2019; warm-up: Vaswani et al. 2017, §5.3; cosine: Loshchilov and Hutter 2017;
             clipping: Pascanu et al. 2013
    """
    optimizer = _optimizer(model, config)
    started, losses = time.perf_counter(), []
    if checkpoint is not None and checkpoint.exists():
        started -= training_seconds(checkpoint)  # the time before an interruption counts too
        losses = load_state(checkpoint, model, optimizer, config.as_dict())
    resumed, first = time.perf_counter(), len(losses)

    def save() -> None:
        if checkpoint is not None:
            seconds = time.perf_counter() - started
            save_state(checkpoint, TrainingState(model, optimizer, losses, config.as_dict(), seconds))

    model.train()
    for step in range(first, config.steps):
        if should_stop():
            save()
            model.eval()
            raise Cancelled(f"training was stopped after {step} of {config.steps} steps")
        torch.manual_seed(config.seed * config.steps + step)  # for dropout: the same in a resumed training
        rate = _set_rate(optimizer, learning_rate(step, config))
        loss = _add_gradients(model, [next_batch(step, part) for part in range(config.accumulation)], config)
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm))
        _check_finite(step, loss, norm, config)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss)
        left = (time.perf_counter() - resumed) / (step + 1 - first) * (config.steps - step - 1)
        on_step(StepReport(step, config.steps, loss, rate, norm, left))
        if (step + 1) % config.save_every == 0 or step + 1 == config.steps:
            save()
    model.eval()
    return losses


def learning_rate(step: int, config: TrainingConfig) -> float:
    """Rise in a line to the highest rate, then fall along half a cosine.

    Values:  rate / warmup_steps at step 0, rate at the end of the warm-up, rate · final_share from the end of the decay
    Source:  Vaswani et al. 2017, §5.3; Loshchilov and Hutter 2017, eq. 5
    """
    if step < config.warmup_steps:
        return config.rate * (step + 1) / config.warmup_steps
    last = (config.decay_steps or config.steps) - 1
    way = min(1.0, (step - config.warmup_steps) / max(1, last - config.warmup_steps))  # 0 … 1
    share = config.final_share + (1 - config.final_share) * 0.5 * (1 + math.cos(math.pi * way))
    return config.rate * share


def _set_rate(optimizer: torch.optim.AdamW, rate: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = rate
    return rate


def batch_loss(model: Transformer, batch: Batch) -> Tensor:
    """Measure how badly the model predicts the targets: the mean of −ln of what it gives them.

    Shapes:  see Batch -> (), nats; 0 where no target counts
    Raises:  ShapeError if there is not one target for each position
    """
    logits = model(batch.ids, batch.target_ids, is_token=batch.is_token, attend=fused_attention)
    if batch.targets.shape != logits.shape[:2]:  # both are flattened: (5, 2) would pass for (2, 5)
        expected = tuple(logits.shape[:2])
        raise ShapeError(f"targets must be {expected}, one for each position, got {tuple(batch.targets.shape)}")
    flat, targets = logits.flatten(0, 1)[:, : batch.among].float(), batch.targets.flatten()
    total = cross_entropy(flat, targets, ignore_index=NOT_COUNTED, reduction="sum")
    return total / (targets != NOT_COUNTED).sum().clamp(min=1)  # torch's own mean is NaN where no target counts


def _add_gradients(model: Transformer, batches: Sequence[Batch], config: TrainingConfig) -> float:
    # The mean loss over all counted targets of the batches, and its gradient. Each batch takes part by its share of the
    # targets: the mean of the batches' means would give those of a short one more weight.
    device = next(model.parameters()).device
    use = config.mixed and device.type == "cuda" and torch.cuda.is_bf16_supported()
    counts = [int((batch.targets != NOT_COUNTED).sum()) for batch in batches]
    whole = 0.0
    for batch, count in zip(batches, counts, strict=True):
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=use):
            loss = batch_loss(model, _on_device(batch, device)) * (count / max(1, sum(counts)))
        loss.backward()
        whole += float(loss.detach())
    return whole


def _check_finite(step: int, loss: float, norm: float, config: TrainingConfig) -> None:
    # a gradient that is no number leaves no weight that is one, and the next checkpoint would hold these
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise ConfigError(
            f"step {step + 1} of {config.steps} gave the loss {loss} and a gradient of length {norm}, both must be "
            f"finite; the last checkpoint is as it was, and a rate below {config.rate} may help"
        )


def _on_device(batch: Batch, device: torch.device) -> Batch:
    def move(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.to(device)

    return replace(
        batch,
        ids=batch.ids.to(device),
        targets=batch.targets.to(device),
        target_ids=move(batch.target_ids),
        is_token=move(batch.is_token),
    )


def _optimizer(model: Transformer, config: TrainingConfig) -> torch.optim.AdamW:
    # decay pulls matrices towards 0; a norm's scale or a token's vector has nothing to gain from that
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            (decayed if isinstance(module, nn.Linear) and parameter.dim() == 2 else others).append(parameter)
    tied = {id(parameter) for parameter in others}
    groups = [
        {"params": [p for p in decayed if id(p) not in tied], "weight_decay": config.weight_decay},
        {"params": list({id(p): p for p in others}.values()), "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.rate, betas=config.betas)
