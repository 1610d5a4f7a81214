"""The tables of docs/models.md, made from the cards of the shipped models: a figure there is one that was measured.

It knows how a card is laid out, and nothing of how its figures came about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.recipes.dates_data import FORMS, LANGUAGES


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
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items())])


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


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
