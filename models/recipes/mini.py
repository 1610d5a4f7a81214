"""everyhead-mini: a small decoder on English and Chinese text and on repeated spans, so that induction heads form.

Texts grow in four stages. First come spans of random tokens that are repeated, out of a few hundred tokens: nothing but
looking for the earlier copy can predict these, and the heads that do so form within minutes. Then half of each batch
are windows of text, a quarter repeated spans of text and a quarter repeated random tokens out of the whole vocabulary.
The last stages are the same over longer texts. Where nothing can be predicted, in the first copy of random tokens, no
loss is taken.

The model is not shipped yet. The first stage was tried by itself, with the 256 tokens as the whole vocabulary: for 500
steps nothing, then within 300 a previous-token head (0.99) and an induction head (0.95). With the vocabulary below a
previous-token head came (0.91), but no induction head in 800 steps.

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
SHORTEST_SPAN = 8


@dataclass(frozen=True)
class Stage:
    """What the batches are made of from a step on.

    context        tokens of each text
    text           share of the texts that are windows of the corpus; if any are, half of the others repeat a span of it
    random_tokens  how many entries of the vocabulary random spans are drawn from
    """

    from_step: int
    context: int
    text: float
    random_tokens: int


STAGES = (
    Stage(0, 64, 0.0, 256),
    Stage(900, 128, 0.5, VOCAB_SIZE),
    Stage(2_000, 256, 0.5, VOCAB_SIZE),
    Stage(2_500, 512, 0.5, VOCAB_SIZE),
)

MODEL = TransformerConfig(
    kind="decoder",
    vocab_size=VOCAB_SIZE,
    d_model=128,
    n_heads=8,
    n_layers=4,
    d_ff=512,
    max_tokens=512,
    positions="rotary",
)
TRAINING = TrainingConfig(steps=3_000, rate=1.5e-3, warmup_steps=50, seed=1, save_every=100)


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
        span = int(random.integers(SHORTEST_SPAN, context // 2 + 1))
        if stage.text and row % 2:
            ids[row] = np.resize(ids[row, :span], context + 1)
        else:
            ids[row] = np.resize(random.integers(0, stage.random_tokens, span, dtype=np.int32), context + 1)
            counted[row, :span] = False  # target i is token i + 1: the first that a copy foretells is token span + 1
    targets = np.where(counted, ids[:, 1:], NOT_COUNTED)
    return Batch(torch.from_numpy(ids[:, :-1].astype(np.int64)), torch.from_numpy(targets.astype(np.int64)))


def _window(random: np.random.Generator, text: NDArray[np.int32], length: int) -> NDArray[np.int32]:
    start = int(random.integers(0, len(text) - length))
    return text[start : start + length]


RECIPE = Recipe("everyhead-mini", "a small decoder on English and Chinese text", MODEL, TRAINING, prepare)
