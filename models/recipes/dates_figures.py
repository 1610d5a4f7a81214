"""What the card of everyhead-dates states: how many held-out dates are read right, and which heads read which field.

HOW says how heads are chosen and judged. This module knows nothing of how the model was trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from models.multi_head import MultiHeadAttention, explicit_attention
from models.recipes.dates_data import FIELDS, LANGUAGES, Field, Language, Spelling, Split, spellings_of
from models.training import Batch
from models.transformer import Transformer

PAD, START, END, UNKNOWN = "<pad>", "<start>", "<end>", "<unk>"
HOW = (
    "For each field the cross-attention head is chosen on validation dates and judged on held-out dates. The rows in "
    "which the decoder writes the field's digits are averaged (a row has read the target up to its own character and "
    "writes the next one); top_in_field is the share of spellings in which the source character with the largest mean "
    "weight is one of those that state the field, without 年, 月, 日, comma or space. chance is the mean share of "
    "characters that state it: what a head that looks anywhere would reach."
)
JUDGED = 2_000  # spellings of each language, of validation and of held-out dates
AT_ONCE = 250
SEEDS: dict[Split, int] = {"validation": 1, "held-out": 2}
WRITES: dict[Field, slice] = {"year": slice(0, 4), "month": slice(5, 7), "day": slice(8, 10)}  # rows, of 2021-03-05


@dataclass(frozen=True)
class Reading:
    """What the model made of some spellings.

    Shapes:  exact (n), True where all characters and the end are right; tops by field (n, n_layers, n_heads), source
             characters
    """

    exact: NDArray[np.bool_]
    tops: dict[Field, NDArray[np.int64]]


def make_batch(tokenizer: Tokenizer, spellings: Sequence[Spelling]) -> Batch:
    """Number the characters: the decoder reads START and the date, and is to write the date and END.

    Shapes:  see Batch; sources are padded to the longest
    """
    rows = [encoding.ids for encoding in tokenizer.encode_batch([spelling.text for spelling in spellings])]
    dates = np.array([encoding.ids for encoding in tokenizer.encode_batch([spelling.iso for spelling in spellings])])
    lengths = np.array([len(row) for row in rows])
    is_token = np.arange(lengths.max()) < lengths[:, None]  # (n, seq_len)
    ids = np.full(is_token.shape, tokenizer.token_to_id(PAD))
    ids[is_token] = np.concatenate(rows)
    start, end = (np.full((len(dates), 1), tokenizer.token_to_id(name)) for name in (START, END))
    return Batch(
        ids=torch.from_numpy(ids),
        targets=torch.from_numpy(np.concatenate([dates, end], 1)),
        target_ids=torch.from_numpy(np.concatenate([start, dates], 1)),
        is_token=torch.from_numpy(is_token),
    )


def evaluate(tokenizer: Tokenizer, model: Transformer) -> dict[str, Any]:
    """Every figure of the card."""
    chosen, validation = choose_heads(tokenizer, model)
    by_language = {language: spellings_of("held-out", language, JUDGED, SEEDS["held-out"]) for language in LANGUAGES}
    readings = {language: read_dates(tokenizer, model, found) for language, found in by_language.items()}
    everything = [spelling for language in LANGUAGES for spelling in by_language[language]]
    fields = {}
    for field, (layer, head) in chosen.items():
        inside = {language: in_span(readings[language], by_language[language], field) for language in LANGUAGES}
        held_out = np.concatenate(list(inside.values()))
        fields[field] = {
            "layer": layer,
            "head": head,
            "top_in_field": _share(held_out[:, layer, head]),
            "chance": _share(chances(everything, field)),
            "by_language": {language: _share(found[:, layer, head]) for language, found in inside.items()},
            "on_validation": validation[field],
        }
    return {
        "exact": {language: _share(readings[language].exact) for language in LANGUAGES},
        "spellings_of_held_out_dates": {language: len(by_language[language]) for language in LANGUAGES},
        "exact_by_form": _by_form(by_language, readings),
        "how": HOW,
        "fields": fields,
    }


def choose_heads(tokenizer: Tokenizer, model: Transformer) -> tuple[dict[Field, tuple[int, int]], dict[Field, float]]:
    """Of all cross-attention heads the one for each field that looks into it most often, on validation dates.

    Values:  (layer, head) by field, and the share of validation dates by field
    """
    spellings = [found for name in LANGUAGES for found in spellings_of("validation", name, JUDGED, SEEDS["validation"])]
    reading = read_dates(tokenizer, model, spellings)
    chosen, shares = dict[Field, tuple[int, int]](), dict[Field, float]()
    for field in FIELDS:
        scores = in_span(reading, spellings, field).mean(0)  # (n_layers, n_heads)
        layer, head = divmod(int(scores.argmax()), scores.shape[1])
        chosen[field], shares[field] = (layer, head), _share(scores[layer, head])
    return chosen, shares


def read_dates(tokenizer: Tokenizer, model: Transformer, spellings: Sequence[Spelling]) -> Reading:
    """Run the model on the spellings and their dates.

    Writing greedily gives the date exactly if, and only if, each character is the likeliest after the right ones.
    """
    parts = [_read(tokenizer, model, spellings[i : i + AT_ONCE]) for i in range(0, len(spellings), AT_ONCE)]
    tops = {field: np.concatenate([part.tops[field] for part in parts]) for field in FIELDS}
    return Reading(np.concatenate([part.exact for part in parts]), tops)


def in_span(reading: Reading, spellings: Sequence[Spelling], field: Field) -> NDArray[np.bool_]:
    """Tell for each spelling and head whether its top source character is one that states the field.

    Values:  (n, n_layers, n_heads)
    """
    spans = np.array([spelling.spans[field] for spelling in spellings])[:, :, None, None]  # (n, 2, 1, 1)
    found: NDArray[np.bool_] = (reading.tops[field] >= spans[:, 0]) & (reading.tops[field] < spans[:, 1])
    return found


def chances(spellings: Sequence[Spelling], field: Field) -> NDArray[np.float64]:
    """The share of each spelling's characters that state the field."""
    lengths = [(spelling.spans[field][1] - spelling.spans[field][0]) / len(spelling.text) for spelling in spellings]
    return np.array(lengths)


@torch.no_grad()
def _read(tokenizer: Tokenizer, model: Transformer, spellings: Sequence[Spelling]) -> Reading:
    batch, layers = make_batch(tokenizer, spellings), list[Tensor]()
    cross = {id(module) for name, module in model.named_modules() if name.endswith("cross_attention")}

    def attend(module: MultiHeadAttention, *inputs: Any) -> tuple[Tensor, Tensor]:
        output, weights = explicit_attention(module, *inputs)
        if id(module) in cross:
            layers.append(weights)  # (n, n_heads, target_len, seq_len)
        return output, weights

    logits = model(batch.ids, batch.target_ids, is_token=batch.is_token, attend=attend)
    right = logits.argmax(-1) == batch.targets
    stacked = torch.stack(layers, 1)  # (n, n_layers, n_heads, target_len, seq_len)
    tops = {field: stacked[..., rows, :].mean(-2).argmax(-1).numpy() for field, rows in WRITES.items()}
    return Reading(right.all(-1).numpy(), tops)


def _by_form(
    by_language: dict[Language, list[Spelling]], readings: dict[Language, Reading]
) -> dict[Language, dict[str, float]]:
    def shares(language: Language) -> Iterator[tuple[str, float]]:
        forms = np.array([spelling.form.template for spelling in by_language[language]])
        for template in dict.fromkeys(sorted(forms)):
            yield str(template), _share(readings[language].exact[forms == template])

    return {language: dict(shares(language)) for language in LANGUAGES}


def _share(found: NDArray[np.bool_] | NDArray[np.float64]) -> float:
    return round(float(np.mean(found)), 4)
