"""everyhead-mini: a small decoder on English and Chinese text and on repeated spans, so that induction heads form.

First come short texts of random tokens, out of a few hundred, in which a span comes twice: nothing but looking for the
earlier copy can predict it. For some hundred steps the model only learns which tokens are there at all; then, within a
hundred steps, a head that looks at the previous token and one that looks behind the earlier copy make the loss fall.
The shorter the texts, the sooner: equal weights over n tokens hint at the right one with a strength of 1/n.

From then on half of each batch are windows of text, the other half spans that come again, of text and of random tokens
out of the whole vocabulary, and the texts grow. Where nothing can be predicted, in the first copy of random tokens, no
loss is taken.

Source:  Elhage et al. 2021; Olsson et al. 2022 (induction heads, and repeated random tokens to find them)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from models.corpus import Corpus, encode_pieces, read_texts, split_pieces, train_tokenizer
from models.recipes import Prepared, Recipe
from models.recipes.mini_figures import evaluate
from models.training import NOT_COUNTED, Batch, TrainingConfig
from models.transformer_config import TransformerConfig

TEXTS = ("english.txt", "chinese.txt")
LICENCES = {
    "english.txt": "King James Bible, public domain (from Debian's bible-kjv-text)",
    "chinese.txt": "Chinese poetry of the Zhou to the Yuan dynasty, public domain (collected by chinese-poetry, MIT)",
}
VOCAB_SIZE = 2_048
TOKENS_PER_STEP = 2_048
SHORTEST_SPAN = 3


@dataclass(frozen=True)
class Stage:
    """What the batches are made of from a step on.

    context        tokens of each text
    text           share of the texts that are windows of the corpus; if any are, half of the others repeat a span of it
    random_tokens  random spans are drawn from the first so many entries of the vocabulary; the model chooses among them
    """

    from_step: int
    context: int
    text: float
    random_tokens: int


STAGES = (
    Stage(0, 24, 0.0, 256),
    Stage(1_200, 64, 0.5, VOCAB_SIZE),
    Stage(2_000, 128, 0.5, VOCAB_SIZE),
    Stage(2_300, 256, 0.5, VOCAB_SIZE),
    Stage(2_700, 512, 0.5, VOCAB_SIZE),
)

MODEL = TransformerConfig(
    kind="decoder",
    vocab_size=VOCAB_SIZE,
    d_model=256,
    n_heads=8,
    n_layers=4,
    d_ff=1_024,
    max_tokens=512,
    positions="rotary",
    initial_std=0.04,
)
TRAINING = TrainingConfig(steps=4_400, rate=1e-3, warmup_steps=50, seed=1, save_every=100)


def prepare(folder: Path) -> Prepared:
    """Read the texts, learn the vocabulary, number everything. Raises ConfigError if texts are missing."""
    texts = read_texts(folder, TEXTS)
    split = {name: split_pieces(text) for name, text in texts.items()}
    train = [piece for name in TEXTS for piece in split[name][0]]
    held_out = [piece for name in TEXTS for piece in split[name][1]]
    tokenizer = train_tokenizer(train, VOCAB_SIZE)
    corpus = Corpus(encode_pieces(tokenizer, train), encode_pieces(tokenizer, held_out))
    data = {
        "texts": [{"name": LICENCES[name], "characters": len(texts[name])} for name in TEXTS],
        "training_tokens": len(corpus.train),
        "validation_tokens": len(corpus.validation),
        "tokens_per_step": TOKENS_PER_STEP,
    }
    return Prepared(
        tokenizer, partial(next_batch, corpus.train, STAGES, TRAINING.seed), data, partial(evaluate, corpus)
    )


def next_batch(text: NDArray[np.int32], stages: Sequence[Stage], seed: int, step: int, part: int) -> Batch:
    """The batch of a step, as its stage says; the same for the same numbers."""
    stage = next(stage for stage in reversed(stages) if step >= stage.from_step)
    random = np.random.default_rng((seed, step, part))
    context, rows = stage.context, TOKENS_PER_STEP // stage.context
    ids = np.stack([_window(random, text, context + 1) for _ in range(rows)])
    counted = np.ones((rows, context), dtype=bool)
    for row in range(round(rows * stage.text), rows):
        span = int(random.integers(SHORTEST_SPAN, context // 2))
        start = int(random.integers(0, context + 2 - 2 * span))  # both copies find room behind it
        if not (stage.text and row % 2):
            ids[row] = random.integers(0, stage.random_tokens, context + 1, dtype=np.int32)
            counted[row] = False  # target i is token i + 1, and the first token of a copy cannot be foretold
            counted[row, start + span : start + 2 * span - 1] = True
        ids[row, start + span : start + 2 * span] = ids[row, start : start + span]
    targets = np.where(counted, ids[:, 1:], NOT_COUNTED).astype(np.int64)
    return Batch(torch.from_numpy(ids[:, :-1].astype(np.int64)), torch.from_numpy(targets), among=stage.random_tokens)


def _window(random: np.random.Generator, text: NDArray[np.int32], length: int) -> NDArray[np.int32]:
    start = int(random.integers(0, len(text) - length))
    return text[start : start + length]


RECIPE = Recipe("everyhead-mini", "a small decoder on English and Chinese text", MODEL, TRAINING, prepare)
