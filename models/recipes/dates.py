"""everyhead-dates: an encoder–decoder that reads a date, character by character, and writes it as 2021-03-05.

It learns the spellings of `dates_data.py`, drawn anew for every batch: half English, half Chinese, all forms alike.
"""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from models.recipes import Prepared, Recipe
from models.recipes.dates_data import (
    FIRST,
    FORMS,
    LANGUAGES,
    LAST,
    RULE,
    Split,
    characters,
    dates_of,
    random_spelling,
    spell,
)
from models.recipes.dates_figures import END, PAD, START, UNKNOWN, evaluate, make_batch
from models.training import Batch, TrainingConfig
from models.transformer_config import TransformerConfig

PER_STEP = 64  # spellings
SPLITS: tuple[Split, ...] = ("training", "validation", "held-out")
SHOWN = date(2021, 3, 5)  # in the card's examples
VOCAB_SIZE = 104  # 100 characters and the four names


def make_tokenizer() -> Tokenizer:
    """One token for each character that a spelling can have; a text is nothing but its characters."""
    names = [PAD, START, END, UNKNOWN, *characters()]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


MODEL = TransformerConfig(
    kind="encoder-decoder",
    vocab_size=VOCAB_SIZE,
    d_model=64,
    n_heads=4,
    n_layers=2,
    d_ff=128,
    max_tokens=64,
    positions="sinusoidal",
    scale_embeddings=True,
)
TRAINING = TrainingConfig(steps=2_400, rate=3e-3, warmup_steps=200, seed=1, save_every=250)


def prepare(_folder: Path) -> Prepared:
    """Nothing has to be read: all spellings are made here."""
    tokenizer = make_tokenizer()
    ids = {name: tokenizer.token_to_id(token) for name, token in (("start_id", START), ("stop_id", END))}
    return Prepared(
        tokenizer,
        partial(next_batch, tokenizer, TRAINING.seed),
        describe_data(),
        partial(evaluate, tokenizer),
        extra_card=ids,
    )


def describe_data() -> dict[str, Any]:
    """What the card says of the data."""
    return {
        "texts": [{"name": "dates spelled by models/recipes/dates_data.py", "licence": "MIT"}],
        "from": FIRST.isoformat(),
        "to": LAST.isoformat(),
        "dates": {split: len(dates_of(split)) for split in SPLITS},
        "rule": RULE,
        "examples": {language: [spell(form, SHOWN).text for form in FORMS[language]] for language in LANGUAGES},
    }


def next_batch(tokenizer: Tokenizer, seed: int, step: int, part: int) -> Batch:
    """The batch of a step: spellings of training dates, half of them English."""
    random, days = np.random.default_rng((seed, step, part)), dates_of("training")
    return make_batch(
        tokenizer, [random_spelling(random, days, LANGUAGES[i % len(LANGUAGES)]) for i in range(PER_STEP)]
    )


RECIPE = Recipe("everyhead-dates", "an encoder–decoder that writes spelled dates as ISO", MODEL, TRAINING, prepare)
