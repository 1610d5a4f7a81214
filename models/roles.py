"""The role of a head on one text: one word for what it mostly does, with the number that says so.

A role is the highest corrected score (so far above chance, 1 = all of it) among ROLES if it reaches a threshold. Scores
closer than TIE count as equal, and then the one with fewer targets wins: whoever looks at the previous token also looks
at something near. A head with nearly the entropy of equal weights is "uniform", any other "mixed". Weight on the first
token or on special tokens is where a head rests when it has nothing to do: such a sink is told beside the role, which
is then read from what is left; where nothing is left the role is "sink". Where a score cannot be told on a text, nor
can its role. Works on the figures of `models/head_scores.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROLES = ("previous", "self", "next", "duplicate", "induction", "punctuation", "local")
THRESHOLD = 0.3
TIE = 0.05
SINK = 0.5  # of the mass
UNIFORM = 0.95  # of the entropy that equal weights have

Figures = Mapping[str, Any]


def role_of(head: Figures, threshold: float = THRESHOLD) -> dict[str, Any]:
    """Tell a head's role from its figures.

    Args:    head: scores, entropy and without, as in head_scores; threshold: of the corrected score
    Values:  name: the role; None where the text is too short to tell. best, corrected: the leading score, whatever it
             is; otherwise: the name below the threshold. sinks: first, special; of: the version that was read
    """
    sinks = _sinks(head)
    of = sinks[-1] if sinks else "all"
    read = head if of == "all" else head["without"][of]
    if head["entropy"] is None:
        best, otherwise = None, None
    elif read is None or read["entropy"] is None:
        best, otherwise = None, "sink"
    else:
        best = _leading(read["scores"])
        otherwise = "uniform" if read["entropy"]["normalised"] >= UNIFORM else "mixed"
    corrected = None if best is None else read["scores"][best]["corrected"]
    return {
        "name": best if corrected is not None and corrected >= threshold else otherwise,
        "best": best,
        "corrected": corrected,
        "otherwise": otherwise,
        "sinks": sinks,
        "of": of,
        "untested": [name for name in ROLES if read is None or read["scores"][name] is None],
    }


def _sinks(head: Figures) -> list[str]:
    first, without = head["scores"]["first"], head["without"]
    sinks = ["first"] if first is not None and first["score"] >= SINK else []
    taken = {name: figures["removed"] for name, figures in without.items() if figures is not None}
    if taken.get("special", 0.0) - taken.get("first", 0.0) >= SINK:
        sinks.append("special")
    return sinks


def _leading(scores: Figures) -> str | None:
    told = {name: scores[name] for name in ROLES if scores[name] is not None}
    if not told:
        return None
    most = max(score["corrected"] for score in told.values())
    near = [name for name, score in told.items() if score["corrected"] > most - TIE]
    return min(near, key=lambda name: told[name]["chance"])
