"""A checkpoint's tokenizer, made to cut the same text the same way each time, as its tokenizer.json says.

transformers takes vocabulary and merges from tokenizer.json but builds the rest from the class that is named beside it;
where the two do not belong together, the text falls apart in another way than the model was trained on. What differs is
put back here, and said. This module knows nothing of tokens' labels (`models/tokens.py`) nor of weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from models.errors import UnsupportedModel
from models.tokens import NO_OFFSETS

FILE = "tokenizer.json"
PARTS = ("normalizer", "pre_tokenizer", "model", "decoder")
SAMPLING = ("dropout", "alpha", "nbest_size")  # settings that draw the pieces at random, for training: BPE, Unigram
VOCABULARY = ("vocab", "merges")
# Spaces, cases, accents, scripts, digits, line ends: where two ways to cut a text part, they part in one of these.
PROBES = ("The cat's  HAT, naïve cafe\u0301 2024!", " leading\n\nline\tend ", "北京の猫 Привет", "it's_snake-case")


@dataclass(frozen=True)
class LoadedTokenizer:
    """A fast tokenizer, and sentences that people should know of it."""

    tokenizer: PreTrainedTokenizerBase
    notes: tuple[str, ...] = ()


def load_tokenizer(folder: Path) -> LoadedTokenizer:
    """The tokenizer of a checkpoint folder: no code from it, no network.

    Raises:  UnsupportedModel for a tokenizer without character offsets, or one that cannot be loaded
    """
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # any of transformers' and tokenizers' own errors
        words = " ".join(str(error).split()).replace(str(folder), folder.name)[:160]
        raise UnsupportedModel(f"its tokenizer cannot be loaded ({type(error).__name__}: {words})") from error
    if not tokenizer.is_fast:
        raise UnsupportedModel(NO_OFFSETS)
    notes = _as_the_file_says(tokenizer, folder / FILE)
    if sampled := without_sampling(tokenizer.backend_tokenizer):
        notes += (f"Its tokenizer.json cuts texts at random ({sampled}), which is for training: that is off here.",)
    return LoadedTokenizer(tokenizer, notes)


def vocabulary_rows(folder: Path) -> int | None:
    """Rows that a table of embeddings needs for the vocabulary in tokenizer.json, without tokens that were added to it.

    None if there is no such file, or none that can be read: loading the tokenizer then says why.
    """
    try:
        vocabulary = json.loads((folder / FILE).read_text(encoding="utf-8"))["model"]["vocab"]
        numbers = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
        return 1 + max(numbers, default=-1)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_rows(needed: int | None, rows: int) -> None:
    """See that a table of embeddings has a row for every token. Raises UnsupportedModel, naming both sizes."""
    if needed is not None and needed > rows:
        raise UnsupportedModel(
            f"its tokenizer has {needed} tokens and its table of embeddings {rows} rows: they are not of one model"
        )


def _as_the_file_says(tokenizer: Any, file: Path) -> tuple[str, ...]:  # noqa: ANN401  of transformers' classes
    """Put back what the class built in another way than tokenizer.json says; a sentence if texts are cut otherwise."""
    if not file.is_file():
        return ()
    backend, stated = tokenizer.backend_tokenizer, Tokenizer.from_file(str(file))
    differing = [part for part in PARTS if _settings(backend, part) != _settings(stated, part)]
    if not differing:
        return ()
    before = _pieces(backend)
    for part in differing:
        setattr(backend, part, getattr(stated, part))
    without_sampling(stated)
    if _pieces(backend) == before:
        return ()
    kind = type(tokenizer).__name__
    return (
        f"Its tokenizer.json is not made for {kind}, which is named beside it: texts are cut as tokenizer.json says.",
    )


def _settings(tokenizer: Tokenizer, part: str) -> Any:  # noqa: ANN401  JSON
    """One part of a tokenizer as JSON, without its vocabulary."""
    found = getattr(tokenizer, part)
    if found is None:
        return None
    if part != "model":
        return json.loads(found.__getstate__())
    stated = json.loads(found.__getstate__())
    return {name: value for name, value in stated.items() if name not in (*VOCABULARY, *SAMPLING)}


def _pieces(backend: Tokenizer) -> list[list[str]] | None:
    """How the probes are cut; None where the parts do not belong together at all."""
    try:
        return [backend.encode(probe, add_special_tokens=False).tokens for probe in PROBES]
    except Exception:  # noqa: BLE001 - tokenizers raises no other type
        return None


def without_sampling(backend: Tokenizer) -> str | None:
    """Switch off what draws pieces at random; what was on, in words."""
    model: Any = backend.model
    on = {name: value for name in SAMPLING if (value := getattr(model, name, None))}
    for name in on:
        setattr(model, name, None)
    return ", ".join(f"{name} {value}" for name, value in on.items()) or None
