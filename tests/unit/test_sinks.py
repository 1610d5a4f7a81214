"""How much a sink takes: of all rows, whichever of them see it, and of what the sinks before it leave."""

from __future__ import annotations

import pytest
import torch

from models.roles import role_of
from tests.unit.test_roles import EXACT, LAST_DIGIT, ROWS, N, at, heads, role

FIRST, SECOND = at(*(0 for _ in ROWS)), at(*(1 for _ in ROWS))


def test_rows_that_do_not_see_a_sink_count_as_well() -> None:
    window = 40
    weights = EXACT["previous"].clone()
    weights[:window] = FIRST[:window]  # later rows do not see the first key
    (head,) = heads(weights[None], window=window)
    assert head["scores"]["first"]["score"] == pytest.approx(1.0, abs=1e-2), "of the rows that see it"
    # of the rows from the second on, each counting the same
    assert role_of(head)["taken"] == {"first": pytest.approx((window - 1) / (N - 1), abs=LAST_DIGIT)}
    late = torch.where(torch.arange(N)[:, None] >= 10, at(*(10 for _ in ROWS)), EXACT["self"])
    assert role(late, special=(10,))["taken"] == {"special": pytest.approx((N - 10) / (N - 1), abs=LAST_DIGIT)}


def test_beside_another_a_sink_is_told_by_its_share_of_what_that_leaves() -> None:
    weights = 0.6 * FIRST + 0.3 * SECOND + 0.1 * EXACT["self"]
    taken = role(weights, special=(0, 1))["taken"]
    assert taken == {
        "first": pytest.approx(0.6, abs=LAST_DIGIT),
        "special": pytest.approx(0.3 / 0.4, abs=LAST_DIGIT),
    }
    taken = role(0.8 * FIRST + 0.2 * EXACT["self"], sink=3.0)["taken"]  # a logit of ln 3 beside 1
    # 4: what is told in six digits is divided by the quarter that is left
    assert taken == {"own": pytest.approx(0.75, abs=LAST_DIGIT), "first": pytest.approx(0.8, abs=4 * LAST_DIGIT)}


def test_a_head_that_rests_nowhere_takes_nothing() -> None:
    assert role(EXACT["previous"])["taken"] == {}
