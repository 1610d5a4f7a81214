"""The figures of heads averaged over several texts, in the form that one text's have (see models/head_scores.py).

What a text cannot show is left out of the mean; what no text can show stays None. Every text counts the same, however
long it is. What is made of other figures is made of their means: `corrected` of score and chance. It knows neither the
texts nor the models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.head_scores import corrected_score, rounded
from models.roles import role_of, special_mass

Figures = dict[str, Any]
ByText = Mapping[str, Mapping[str, Any] | None]
PLACE = ("site", "layer", "head")


def average_heads(by_text: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Figures]:
    """Average each head's figures over texts.

    Args:    by_text: for each text the same heads in the same order, as capture.head_scores gives them
    Values:  for each head its place, figures and role, which is read from the means; a score also has `by_text`: its
             corrected score on each text, None where it cannot be told. `corrected` itself is that of the mean score
             and the mean chance beside it, not the mean of by_text
    """
    names = list(by_text)
    averaged = []
    for heads in zip(*by_text.values(), strict=True):
        own = dict(zip(names, heads, strict=True))
        head = {name: heads[0][name] for name in PLACE} | _version(own)
        head["own_sink"] = _mean_told([one["own_sink"] for one in heads])
        head["without"] = {
            version: _version(_part(_part(own, "without"), version), removed=True)
            if any(one["without"][version] for one in heads)
            else None
            for version in heads[0]["without"]
        }
        averaged.append({**head, "role": role_of(_with_masses(head, own))})
    return averaged


def _with_masses(head: Figures, own: ByText) -> Figures:
    """The head as `role_of` is to read it: its special tokens with the mean of their mass on each text.

    That mass is of all rows, and a score of those that see a special token; multiplying a mean score by summed rows
    would count each text the same in one factor and by its length in the other.
    """
    first = head["without"]["first"]
    without = first if first is None else _with_mass(first, _part(_part(own, "without"), "first"))
    return {**_with_mass(head, own), "without": {**head["without"], "first": without}}


def _with_mass(averaged: Figures, by_text: ByText) -> Figures:
    # where a sink of the head's own takes all of a text, special tokens have nothing of it
    told = [one for one in by_text.values() if one is not None and (one["entropy"] or one.get("own_sink"))]
    special = averaged["scores"]["special"]
    if special is None or not told:
        return averaged
    masses = [special_mass(one) for one in told]
    of_all_rows = {**special, "score": sum(masses) / len(masses), "rows": averaged["entropy"]["rows"]}
    return {**averaged, "scores": {**averaged["scores"], "special": of_all_rows}}


def _part(by_text: ByText, name: str) -> ByText:
    return {text: None if figures is None else figures[name] for text, figures in by_text.items()}


def _version(by_text: ByText, *, removed: bool = False) -> Figures:
    some = next(figures for figures in by_text.values() if figures is not None)
    scores = {name: _score(_part(_part(by_text, "scores"), name)) for name in some["scores"]}
    figures: Figures = {
        "scores": scores,
        "entropy": _means(_part(by_text, "entropy"), "mean", "normalised"),
        "distance": _distance(_part(by_text, "distance")),
        "concentration": _means(_part(by_text, "concentration"), "share", "chance"),
    }
    if removed:
        figures["removed"] = _mean_told([one["removed"] for one in by_text.values() if one is not None])
    return figures


def _score(by_text: ByText) -> Figures | None:
    told = [one for one in by_text.values() if one is not None]
    if not told:
        return None
    score, chance = (sum(one[name] for one in told) / len(told) for name in ("score", "chance"))
    return {
        "score": rounded(score),
        "chance": rounded(chance),
        "corrected": rounded(corrected_score(score, chance)),
        "rows": sum(one["rows"] for one in told),
        "by_text": {text: None if one is None else one["corrected"] for text, one in by_text.items()},
    }


def _distance(by_text: ByText) -> Figures | None:
    found = _means(by_text, "mean", "uniform", "within_50", "within_90")
    if found is None:
        return None
    bins = [one["bins"] for one in by_text.values() if one is not None]
    longest = max(map(len, bins))  # a shorter text has no mass at the distances that it does not have
    padded = [[*one, *[0.0] * (longest - len(one))] for one in bins]
    return {**found, "bins": [_mean(values) for values in zip(*padded, strict=True)]}


def _means(by_text: ByText, *names: str) -> Figures | None:
    """The mean of each field over the texts that have it, and the rows of all of them."""
    told = [figures for figures in by_text.values() if figures is not None]
    if not told:
        return None
    means = {name: _mean([one[name] for one in told]) for name in names}
    return {**means, "rows": sum(one["rows"] for one in told)}


def _mean_told(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return _mean(told) if told else None


def _mean(values: Sequence[float]) -> float:
    return rounded(sum(values) / len(values))
