"""A training of a few steps, of a model that is small enough for it to take no time."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from models.errors import Cancelled
from models.training import NOT_COUNTED, Batch, TrainingConfig, train
from models.transformer import Transformer
from models.transformer_config import TransformerConfig

SMALL = TransformerConfig(
    kind="decoder", vocab_size=13, d_model=16, n_heads=2, n_layers=2, d_ff=16, max_tokens=12, dropout=0.2
)
SHORT = TrainingConfig(steps=12, rate=1e-2, warmup_steps=3, seed=5, save_every=4)


def small(config: TransformerConfig = SMALL, seed: int = 0) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(config)


def next_batch(step: int, part: int) -> Batch:
    ids = torch.randint(13, (4, 9), generator=torch.Generator().manual_seed(100 * step + part))
    targets = ids[:, 1:].clone()
    targets[: part + 1, :5] = NOT_COUNTED  # another number of counted targets in each part
    return Batch(ids[:, :-1], targets)


def trained(checkpoint: Path, config: TrainingConfig = SHORT, until: int | None = None) -> tuple[list[float], Tensor]:
    """Losses and all weights of a training which stops itself before step `until`."""
    model, steps = small(), iter(range(10**6))
    try:
        losses = train(
            model, next_batch, config, checkpoint=checkpoint, should_stop=lambda: next(steps) + 1 == (until or -1)
        )
    except Cancelled:
        assert not model.training
        losses = []
    return losses, torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
