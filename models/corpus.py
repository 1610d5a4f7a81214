"""Texts to train on: found in a folder, split into training and validation, turned into one row of token numbers.

Which files the folder holds is `scripts/fetch_training_data.py`'s business. This module knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from models.errors import ConfigError

END = "<|end|>"  # between two texts
VALIDATION_EVERY = 20  # of the pieces that a text is cut into, every 20th is kept for validation
PIECE = 4_000  # characters, cut at the end of a line


@dataclass(frozen=True)
class Corpus:
    """Token numbers of all training texts, and of the validation texts, each in one row."""

    train: NDArray[np.int32]
    validation: NDArray[np.int32]


def read_texts(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Read the named texts. Raises ConfigError that says how to fetch them."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ConfigError(f"{folder} has no {', '.join(missing)}: run python -m scripts.fetch_training_data {folder}")
    return {name: (folder / name).read_text("utf-8") for name in names}


def split_pieces(text: str) -> tuple[list[str], list[str]]:
    """Cut a text into pieces of whole lines; every VALIDATION_EVERY-th is for validation: (training, validation)."""
    pieces = list(_pieces(text))
    held_out = pieces[VALIDATION_EVERY - 1 :: VALIDATION_EVERY]
    return [piece for i, piece in enumerate(pieces, start=1) if i % VALIDATION_EVERY], held_out


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        stop = text.find("\n", min(start + PIECE, len(text) - 1))
        stop = len(text) if stop < 0 else stop + 1
        yield text[start:stop]
        start = stop


def train_tokenizer(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """Learn a byte-level vocabulary: any text can be written in it, frequent pieces are one token.

    Source:  Sennrich et al. 2016 (byte-pair encoding); Radford et al. 2019, §2.2 (over bytes)
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode_pieces(tokenizer: Tokenizer, pieces: Sequence[str]) -> NDArray[np.int32]:
    """All pieces as one row of token numbers, END between two."""
    end = tokenizer.token_to_id(END)
    rows = [np.array([*encoding.ids, end], dtype=np.int32) for encoding in tokenizer.encode_batch(list(pieces))]
    return np.concatenate(rows)
