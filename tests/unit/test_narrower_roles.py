"""Roles of which one holds the targets of another: the narrower wins once it reaches the threshold and has most."""

from __future__ import annotations

import pytest
import torch

from models.roles import MOST, PARTS, THRESHOLD, role_of
from tests.unit.test_roles import EXACT, ROWS, UNIFORM, N, at, heads, role

NEXT = torch.eye(N).roll(1, -1)  # the last row, which has no next token, looks at the first
THREE_BACK = at(*(i - 3 for i in ROWS))
ONE_TOKEN = (100,) * N  # a text of one token again and again


@pytest.mark.parametrize("name", PARTS["local"])
@pytest.mark.parametrize("share", [MOST + 0.05, 0.75, 0.86, 0.94])
def test_what_has_most_of_local_names_the_role(name: str, share: float) -> None:
    """Also far from a tie: the rest is near, so that local holds all of it."""
    narrow = NEXT if name == "next" else EXACT[name]
    weights = share * narrow + (1 - share) * THREE_BACK
    (head,) = heads(weights[None], causal=name != "next")
    assert head["scores"]["local"]["score"] > 0.98
    found = role_of(head)
    assert (found["name"], found["best"]) == (name, name)
    assert found["corrected"] == head["scores"][name]["corrected"]
    assert role(0.7 * weights + 0.3 * at(*(i * 7 % (i + 1) for i in ROWS)), causal=name != "next")["name"] == name


@pytest.mark.parametrize("name", ["previous", "self"])
def test_what_has_less_of_local_is_local(name: str) -> None:
    share = MOST - 0.05
    assert role(share * EXACT[name] + (1 - share) * THREE_BACK)["name"] == "local"
    assert role(0.5 * EXACT["previous"] + 0.5 * EXACT["self"])["name"] == "local", "neither has most"


def test_the_narrower_must_reach_the_threshold_itself() -> None:
    weights = 0.26 * EXACT["previous"] + 0.06 * THREE_BACK + 0.68 * UNIFORM
    (head,) = heads(weights[None])
    previous, local = (head["scores"][name]["corrected"] for name in ("previous", "local"))
    assert head["scores"]["previous"]["score"] > MOST * head["scores"]["local"]["score"]
    assert previous < THRESHOLD < local
    found = role_of(head)
    assert (found["name"], found["corrected"]) == ("local", local)
    assert role_of(head, previous)["name"] == "previous"


def test_the_candidates_give_the_role_at_every_threshold() -> None:
    (head,) = heads((0.7 * EXACT["previous"] + 0.3 * THREE_BACK)[None])
    candidates = role_of(head)["candidates"]
    assert [one["name"] for one in candidates] == ["previous", "local"]
    for threshold in (0.1, 0.3, 0.5, 0.7, 0.9):
        first = next((one for one in candidates if one["corrected"] >= threshold), None)
        found = role_of(head, threshold)
        assert found["candidates"] == candidates
        assert first is not None
        assert (found["name"], found["corrected"]) == (first["name"], first["corrected"])


def test_a_sink_beside_it_changes_nothing() -> None:
    rest = 0.8 * EXACT["previous"] + 0.2 * THREE_BACK
    found = role(0.7 * at(*(0 for _ in ROWS)) + 0.3 * rest)
    assert (found["name"], found["sinks"], found["of"]) == ("previous", ["first"], "first")


def test_on_a_run_of_one_token_what_follows_a_copy_is_a_copy() -> None:
    """Looking ten back is "duplicate" there, as the key is seen to be; on a text of pairs it is induction."""
    weights = at(*(max(1, i - 10) for i in ROWS))  # the second token, too, is right after a copy
    (head,) = heads(weights[None], ids=ONE_TOKEN)
    induction, duplicate = (head["scores"][name] for name in ("induction", "duplicate"))
    assert induction["score"] + duplicate["score"] > 1.5, "their targets are the same keys"
    assert role_of(head)["name"] == "duplicate"
    assert role(EXACT["induction"])["name"] == "induction"
    assert role(EXACT["duplicate"])["name"] == "duplicate"


@pytest.mark.parametrize("name", ["previous", "self"])
def test_on_a_run_of_one_token_the_neighbour_still_names_the_role(name: str) -> None:
    assert role(EXACT[name], ids=ONE_TOKEN)["name"] == name
    assert role(0.85 * EXACT[name] + 0.15 * at(*(i - 2 for i in ROWS)), ids=ONE_TOKEN)["name"] == name
