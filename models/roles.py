"""The role of a head on one text: one word for what it mostly does, with the number that says so.

A role is the highest corrected score (so far above chance, 1 = all of it) among ROLES if it reaches a threshold. Scores
that come within TIE of it count as equal, and then the one with fewer targets wins. Where a score holds the targets of
others (what is local holds the previous token and the token itself), the narrower wins once it reaches the threshold
and has MOST of what the wider one has: whoever looks at the previous token also looks at something near. On a run of
the same token each key after a copy is a copy: there it is "duplicate", which is what is seen, not "induction". A
head with nearly the entropy of equal weights is
"uniform", any other "mixed". Weight on a sink of the head's own (GPT-OSS), on the first token or on special tokens is
where a head rests when it has nothing to do: such a sink is told beside the role, which is then read from what is left;
where next to nothing is left the role is "sink". Where a score cannot be told on a text, nor can its role, and where
none can, nor can "mixed", which is none of them. Works on the figures of `models/head_scores.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.head_scores import rounded
from models.head_sums import LEFT

ROLES = ("previous", "self", "next", "duplicate", "induction", "punctuation", "local")
THRESHOLD = 0.3
PARTS = {"local": ("previous", "self", "next")}  # whose targets lie within those of another, on every text
TIE = 0.05  # of the highest corrected score
MOST = 0.6  # of the wider score's mass; docs/head-figures.md says why
SINK = 0.5  # of the mass
REST = 0.05  # of the mass: a head that leaves less than this beside its sinks does nothing else
UNIFORM = 0.95  # of the entropy that equal weights have

NONE: dict[str, Any] = {"name": None, "corrected": None}

Figures = Mapping[str, Any]


def role_of(head: Figures, threshold: float = THRESHOLD) -> dict[str, Any]:
    """Tell a head's role from its figures.

    Args:    head: scores, entropy, own_sink and without, as in head_scores; threshold: of the corrected score
    Values:  name: the role; None where the text cannot tell. best: the score that made it, below the threshold the
             highest; corrected: its own; candidates: [{name, corrected}], the first that reaches a threshold is the
             role there; otherwise: the name where none does. sinks: own, first, special; taken: the mean mass of each,
             of what those before it leave; of: the version that was read: beside a sink of the head's own "first" at
             least, since scores of "all" are of the weights as they are, not of what it leaves
    """
    sinks = _sinks(head)
    of = "all" if not sinks else "first" if list(sinks) == ["own"] else list(sinks)[-1]
    read = head if of == "all" else head["without"][of]
    candidates: list[dict[str, Any]] = []
    if head["entropy"] is None and "own" not in sinks:
        otherwise = None
    elif read is None or read["entropy"] is None:
        otherwise = "sink" if _rest(head, of) < REST else None
    else:
        candidates = _candidates(read["scores"])
        uniform = read["entropy"]["normalised"] >= UNIFORM
        otherwise = "uniform" if uniform else "mixed" if candidates else None
    made = next((one for one in candidates if one["corrected"] >= threshold), None)
    told = made or max(candidates, key=lambda one: one["corrected"], default=NONE)
    return {
        "name": made["name"] if made else otherwise,
        "best": told["name"],
        "corrected": told["corrected"],
        "candidates": candidates,
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


def _candidates(scores: Figures) -> list[dict[str, Any]]:
    # those that may name the role, each with its own corrected score: the first that reaches the threshold does
    told = {name: scores[name] for name in ROLES if scores[name] is not None}
    if not told:
        return []
    highest = max(told, key=lambda name: told[name]["corrected"])
    most = told[highest]["corrected"]
    near = [name for name, score in told.items() if score["corrected"] >= most - TIE * abs(most)]
    leading = [min(near, key=lambda name: told[name]["chance"]), highest]
    wider = [name for name in leading if name in PARTS]
    parts = [part for name in wider for part in _parts(told, name)]
    copies = ["duplicate"] if "induction" in leading[:1] and _on_copies(told) else []
    names = dict.fromkeys([*parts, *copies, *leading])  # each once, in this order
    return [{"name": name, "corrected": told[name]["corrected"]} for name in names]


def _parts(told: Figures, wider: str) -> list[str]:
    # the part that has most of what the wider score has; of two, with few rows, the larger
    least = MOST * told[wider]["score"]
    parts = [name for name in PARTS[wider] if name in told and told[name]["score"] >= least]
    return sorted(parts, key=lambda name: -told[name]["score"])[:1]


def _on_copies(told: Figures) -> bool:
    # two shares that add up to more than 1 have so much in common: keys after a copy that are copies themselves
    if "duplicate" not in told:
        return False
    induction, duplicate = told["induction"]["score"], told["duplicate"]["score"]
    return bool(induction + duplicate - 1 >= MOST * induction)
