"""everyhead-mini: a small decoder on English and Chinese text and on random tokens, so that heads of known kinds form.

First come short texts of random tokens, out of a few hundred, in which each token that came before is followed by a
mark: to foretell it, a head must find the earlier one, and within some hundred steps one does (a duplicate-token head).
Then, in three of four, a span comes twice: nothing but looking for the earlier copy can predict it. A head that looks
at the previous token is there by then, and soon one that looks behind the earlier copy. The shorter the texts, the
sooner: equal weights over n tokens hint at the right one with a strength of 1/n.

From then on windows of text join in, windows in which a span comes twice, and random tokens out of the whole
vocabulary, and the texts grow. In the longer ones half of the copies may lie anywhere behind their span: where they
always follow at once no distance is above half a text, and heads find what is near that edge less well. No loss is
taken in the first copy of a random span, nor behind a mark; it is behind a token that is new in a marked text, where
the model learns that no mark comes.

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
MARK = 3  # "#": in a vocabulary of bytes and what is made of them the fourth entry, and in neither text
AGAIN = 0.5  # chance that the next token of a marked text is one that came before, where there is one


@dataclass(frozen=True)
class Stage:
    """What the batches are made of from a step on: windows of the corpus first, then texts that repeat something.

    context        tokens of each text
    text           share of the texts that are windows of the corpus
    text_spans     half of the rest are windows, too, in which a span comes twice; of an odd number the smaller half
    random_tokens  random tokens are drawn from the first so many entries of the vocabulary, and chosen among them
    marked         share of the texts of random tokens in which what came before is marked; in the others a span repeats
    apart          share of the copies that may lie anywhere behind their span; the others follow it at once
    """

    from_step: int
    context: int
    text: float = 0.0
    text_spans: bool = False
    random_tokens: int = VOCAB_SIZE
    marked: float = 0.0
    apart: float = 0.0


STAGES = (
    Stage(0, context=24, random_tokens=256, marked=1.0),
    Stage(300, context=24, random_tokens=256, marked=0.25),
    Stage(1_500, context=64, text=0.5, text_spans=True, marked=0.25),
    Stage(2_300, context=128, text=0.5, text_spans=True, marked=0.25),
    Stage(2_600, context=256, text=0.25, text_spans=True, marked=0.1, apart=0.5),
    Stage(3_000, context=512, text=0.25, text_spans=True, marked=0.1, apart=0.5),
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
# It stops before the decay ends: on the way there the previous-token head would weaken, for the sake of text.
TRAINING = TrainingConfig(steps=4_400, decay_steps=5_000, rate=1e-3, warmup_steps=50, seed=1, save_every=100)


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
        if stage.text_spans and row % 2 == 0:
            _repeat_span(random, ids[row], stage.apart)
        elif random.random() < stage.marked:
            ids[row], counted[row] = _marked(random, context, stage.random_tokens)
        else:
            ids[row] = random.integers(0, stage.random_tokens, context + 1, dtype=np.int32)
            start, stop = _repeat_span(random, ids[row], stage.apart)
            counted[row] = False  # target i is token i + 1, and the first token of a copy cannot be foretold
            counted[row, start : stop - 1] = True
    targets = np.where(counted, ids[:, 1:], NOT_COUNTED).astype(np.int64)
    return Batch(torch.from_numpy(ids[:, :-1].astype(np.int64)), torch.from_numpy(targets), among=stage.random_tokens)


def _repeat_span(random: np.random.Generator, ids: NDArray[np.int32], apart: float) -> tuple[int, int]:
    """Copy a span of a text to a place behind itself; tells where the copy lies."""
    span = int(random.integers(SHORTEST_SPAN, (len(ids) - 1) // 2))
    first = int(random.integers(0, len(ids) + 1 - 2 * span))  # both find room behind it
    copy = first + span
    if apart and random.random() < apart:
        copy = int(random.integers(copy, len(ids) + 1 - span))
    ids[copy : copy + span] = ids[first : first + span]
    return copy, copy + span


def _marked(random: np.random.Generator, context: int, among: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Random tokens, MARK behind each that came before; what follows a mark does not count."""
    ids: list[int] = []
    once: list[int] = []  # tokens drawn anew, and not yet taken again
    seen = set()
    while len(ids) <= context:
        again = once and random.random() < AGAIN
        token = once.pop(int(random.integers(len(once)))) if again else int(random.integers(among))
        if token == MARK:
            continue
        ids.append(token)
        if token in seen:
            ids.append(MARK)
        elif not again:
            once.append(token)
        seen.add(token)
    made = np.array(ids[: context + 1], dtype=np.int32)
    return made, made[:-1] != MARK


def _window(random: np.random.Generator, text: NDArray[np.int32], length: int) -> NDArray[np.int32]:
    start = int(random.integers(0, len(text) - length))
    return text[start : start + length]


RECIPE = Recipe("everyhead-mini", "a small decoder on English and Chinese text", MODEL, TRAINING, prepare)
