"""everyhead-tiny: a span of random tokens that comes twice, two layers, no data: learned in seconds, to try training.

Nothing foretells a random token but its first copy, SPAN tokens earlier, so the loss of a model that cannot find it
stays at ln VOCAB_SIZE, and that of one which can falls to nearly 0. Loss is taken on the second copy alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from models.recipes import Prepared, Recipe
from models.training import NOT_COUNTED, Batch, TrainingConfig, batch_loss
from models.transformer import Transformer
from models.transformer_config import TransformerConfig

VOCAB_SIZE = 32
SPAN = 16
TEXTS_PER_STEP = 32
UNSEEN = 1_000_000  # number of a step that no training reaches: its batch is for validation

MODEL = TransformerConfig(
    kind="decoder",
    vocab_size=VOCAB_SIZE,
    d_model=64,
    n_heads=4,
    n_layers=2,
    d_ff=128,
    max_tokens=2 * SPAN,
    positions="rotary",
)
TRAINING = TrainingConfig(steps=200, rate=3e-3, warmup_steps=50, seed=1, save_every=20)


def prepare(_folder: Path) -> Prepared:
    """Name the tokens after their numbers; there is nothing to read."""
    tokenizer = Tokenizer(models.WordLevel({str(number): number for number in range(VOCAB_SIZE)}))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    data = {"texts": [{"name": "random numbers, drawn from the seed", "licence": "public domain"}]}
    return Prepared(tokenizer, partial(next_batch, TRAINING.seed), data, evaluate)


def next_batch(seed: int, step: int, part: int) -> Batch:
    """The batch of a step: each text is a span of random tokens, and the same again."""
    once = np.random.default_rng((seed, step, part)).integers(0, VOCAB_SIZE, (TEXTS_PER_STEP, SPAN))
    ids = torch.from_numpy(np.concatenate([once, once], 1))
    targets = ids[:, 1:].clone()
    targets[:, : SPAN - 1] = NOT_COUNTED  # target i is token i + 1: the first copy, which nothing foretells
    return Batch(ids[:, :-1], targets)


@torch.no_grad()
def evaluate(model: Transformer) -> Mapping[str, Any]:
    """Measure the loss on texts that the training has not seen, beside that of guessing."""
    loss = float(batch_loss(model, next_batch(TRAINING.seed, UNSEEN, 0)))
    return {
        "validation_loss": round(loss, 4),
        "guessing_loss": round(math.log(VOCAB_SIZE), 4),
        "unit": "nats per token",
    }


RECIPE = Recipe("everyhead-tiny", "random tokens that come twice, to try training with", MODEL, TRAINING, prepare)
