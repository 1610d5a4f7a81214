"""The role of a head on one text: one word for what it mostly does, with the number that says so.

A role is the highest corrected score (so far above chance, 1 = all of it) among ROLES if it reaches a threshold. Scores
that come within TIE of it count as equal, and then the one with fewer targets wins: whoever looks at the previous token
also looks at something near. A head with nearly the entropy of equal weights is "uniform", any other "mixed". Weight on
a sink of the head's own (GPT-OSS), on the first token or on special tokens is where a head rests when it has nothing to
do: such a sink is told beside the role, which is then read from what is left; where next to nothing is left the role is
"sink". Where a score cannot be told on a text, nor can its role, and where none can, nor can "mixed", which is none of
them. Works on the figures of `models/head_scores.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.head_scores import rounded
from models.head_sums import LEFT

ROLES = ("previous", "self", "next", "duplicate", "induction", "punctuation", "local")
THRESHOLD = 0.3
TIE = 0.05  # of the highest corrected score
SINK = 0.5  # of the mass
REST = 0.05  # of the mass: a head that leaves less than this beside its sinks does nothing else
UNIFORM = 0.95  # of the entropy that equal weights have

Figures = Mapping[str, Any]


def role_of(head: Figures, threshold: float = THRESHOLD) -> dict[str, Any]:
    """Tell a head's role from its figures.

    Args:    head: scores, entropy, own_sink and without, as in head_scores; threshold: of the corrected score
    Values:  name: the role; None where the text cannot tell. best: the leading score, whatever it is;
             corrected: the highest one, which the threshold is for, up to TIE above that of best; otherwise: the name
             below the threshold. sinks: own, first, special; taken: the mean mass of each, of what those before it
             leave; of: the version that was read: beside a sink of the head's own "first" at least, since scores of
             "all" are of the weights as they are, not of what it leaves
    """
    sinks = _sinks(head)
    of = "all" if not sinks else "first" if list(sinks) == ["own"] else list(sinks)[-1]
    read = head if of == "all" else head["without"][of]
    if head["entropy"] is None and "own" not in sinks:
        best, corrected, otherwise = None, None, None
    elif read is None or read["entropy"] is None:
        best, corrected, otherwise = None, None, "sink" if _rest(head, of) < REST else None
    else:
        best, corrected = _leading(read["scores"])
        otherwise = "uniform" if read["entropy"]["normalised"] >= UNIFORM else None if best is None else "mixed"
    return {
        "name": best if corrected is not None and corrected >= threshold else otherwise,
        "best": best,
        "corrected": corrected,
        "otherwise": otherwise,
        "sinks": list(sinks),
        "taken": sinks,
        "of": of,
        "untested": [name for name in ROLES if read is None or read["scores"][name] is None],
    }


def _sinks(head: Figures) -> dict[str, float]:
    # what each takes, of what those before it leave
    without, own = head["without"], head["own_sink"]
    sinks = {"own": own} if own is not None and own >= SINK else {}
    left = 1 - own if sinks else 1.0
    if left < LEFT:
        return sinks
    # of all rows: the score "first" is over those alone that see the first key, few where a window hides it
    removed = None if without["first"] is None else without["first"]["removed"]
    read = head
    if removed is not None and removed >= SINK * left:
        sinks["first"] = removed / left
        read, left = without["first"], 1.0  # special tokens beside it: of what it leaves, as its weights are
    if without["special"] is not None and (special := special_mass(read)) >= SINK * left:
        sinks["special"] = special / left
    return {name: rounded(taken) for name, taken in sinks.items()}


def _rest(head: Figures, of: str) -> float:
    # the mean mass that a head's own sink and the keys left out in a version leave; too few rows of it may be readable
    left_out = head["without"][of]
    removed: float = 0.0 if left_out is None else left_out["removed"]
    return 1.0 - removed - (head["own_sink"] or 0.0)


def special_mass(figures: Figures) -> float:
    """The mean mass on special tokens over all rows: their score is over those alone that see one."""
    score, entropy = figures["scores"]["special"], figures["entropy"]
    return 0.0 if score is None or entropy is None else score["score"] * score["rows"] / entropy["rows"]


def _leading(scores: Figures) -> tuple[str | None, float | None]:
    # the name of the leading score, and the highest corrected one
    told = {name: scores[name] for name in ROLES if scores[name] is not None}
    if not told:
        return None, None
    most = max(score["corrected"] for score in told.values())
    near = [name for name, score in told.items() if score["corrected"] >= most - TIE * abs(most)]
    return min(near, key=lambda name: told[name]["chance"]), most
