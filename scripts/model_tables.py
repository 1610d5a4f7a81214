"""The tables of docs/models.md, made from the cards of the shipped models: a figure there is one that was measured.

It knows how a card is laid out, and nothing of how its figures came about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.recipes.dates_data import FORMS, LANGUAGES

FORMATION_STEPS = 100  # between two rows of the table of how heads formed
HEADS = {"previous": "previous token", "induction": "induction", "duplicate": "duplicate token"}


def dates_training(card: Mapping[str, Any]) -> str:
    """How everyhead-dates was made, one row per fact."""
    data, training = card["data"], card["training"]
    dates = ", ".join(f"{count:,} {split}" for split, count in data["dates"].items())
    rows = {
        "dates": f"{data['from']} to {data['to']}: {dates}",
        "rule": data["rule"],
        "command": f"`{training['command']}`",
        "steps": f"{training['steps']:,}, final loss {training['final_loss']} nats per character",
        "time": f"{training['minutes']} minutes on {training['hardware']}",
        "parameters": f"{card['parameters']:,}",
    }
    return _facts(rows)


def dates_heads(card: Mapping[str, Any]) -> str:
    """One row per field: which head reads it, how often, and how often one would by chance."""
    figures = card["figures"]
    lines = ["| field | head | held-out dates | English | Chinese | chance |", "|---|---|---|---|---|---|"]
    for field, found in figures["fields"].items():
        shares = [found["top_in_field"], *found["by_language"].values(), found["chance"]]
        head = f"layer {found['layer']}, head {found['head']}"
        lines.append(f"| {field} | {head} | {' | '.join(_percent(share) for share in shares)} |")
    return "\n".join(lines)


def dates_forms(card: Mapping[str, Any]) -> str:
    """How many held-out dates are written exactly right: of each language, and in each form."""
    figures = card["figures"]
    lines = ["| language | spelling | right |", "|---|---|---|"]
    for language in LANGUAGES:
        share = figures["exact"][language]
        count = figures["spellings_of_held_out_dates"][language]
        lines.append(f"| **{language}** | all forms, {count:,} spellings | **{_percent(share)}** |")
        by_form = figures["exact_by_form"][language]
        for form, example in zip(FORMS[language], card["data"]["examples"][language], strict=True):
            lines.append(f"| {language} | `{example}` | {_percent(by_form[form.template])} |")
    return "\n".join(lines)


def mini_training(card: Mapping[str, Any]) -> str:
    """How everyhead-mini was made, one row per fact."""
    data, training = card["data"], card["training"]
    texts = "; ".join(f"{text['name']}, {text['characters']:,} characters" for text in data["texts"])
    rows = {
        "texts": texts,
        "tokens": f"{data['training_tokens']:,} training, {data['validation_tokens']:,} validation",
        "command": f"`{training['command']}`",
        "steps": f"{training['steps']:,} of {data['tokens_per_step']:,} tokens",
        "time": f"{training['minutes']} minutes on {training['hardware']}",
        "parameters": f"{card['parameters']:,}",
    }
    return _facts(rows)


def mini_losses(card: Mapping[str, Any]) -> str:
    """Loss on validation text, in all and by position, beside the baseline."""
    figures = card["figures"]
    rows = {
        "everyhead-mini": "validation_loss",
        "the same, at positions 64 to 128": "validation_loss_at_64_to_128",
        "the same, at positions 384 to 512": "validation_loss_at_384_to_512",
        "counting which token follows which (bigrams)": "bigram_loss",
    }
    lines = [f"| {name} | {figures[key]:.3f} |" for name, key in rows.items()]
    return "\n".join([f"| validation text, windows of 512 tokens | {figures['unit']} |", "|---|---:|", *lines])


def mini_heads(card: Mapping[str, Any]) -> str:
    """The best head of each kind on random tokens that come twice."""
    figures = card["figures"]
    lines = [f"| random tokens | {' | '.join(HEADS.values())} |", "|---|---|---|---|"]
    for found in figures["heads_on_repeated_random_tokens"].values():
        cells = [_scored(found[kind]) for kind in HEADS]
        lines.append(f"| {found['span']} twice | {' | '.join(cells)} |")
    return "\n".join(lines)


def mini_distances(card: Mapping[str, Any]) -> str:
    """How far each layer looks, and what equal weights would give."""
    *layers, uniform = card["figures"]["mean_distance_by_layer"]
    lines = ["| layer | mean distance, tokens |", "|---|---:|"]
    lines += [f"| {layer} | {distance} |" for layer, distance in enumerate(layers)]
    return "\n".join([*lines, f"| equal weights | {uniform} |"])


def mini_formation(points: Sequence[Mapping[str, Any]]) -> str:
    """The best head of each kind after every hundredth step."""
    lines = [
        f"| {point['step']:,} | {' | '.join(_scored(point[kind]) for kind in HEADS)} |"
        for point in points
        if point["step"] % FORMATION_STEPS == 0
    ]
    return "\n".join([f"| step | {' | '.join(HEADS.values())} |", "|---:|---|---|---|", *lines])


def _facts(rows: Mapping[str, str]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items())])


def _scored(head: Mapping[str, Any]) -> str:
    return f"{head['best']:.3f} (layer {head['layer']}, head {head['head']})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
