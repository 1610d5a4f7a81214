"""What is said of layers where the first token takes a large share: it is of what remains, with both numbers."""

from __future__ import annotations

import pytest

from models.locality import FURTHER, SINK_LARGE
from tests.unit.test_locality import DISTANCE, EVEN, FAR, NEAR, heads, locality

MEANS = ("share", "chance", "mean", "uniform")


def test_a_sink_does_not_make_a_layer_look_far() -> None:
    """Seven tenths on the first token, the rest one and three back."""
    found = locality([0.7 * FAR + 0.3 * NEAR] * 3)
    layer = found["layers"][0]
    assert (layer["all"]["kind"], layer["first"]["kind"], layer["of"]) == ("far", "near", "first")
    assert layer["sink"] == pytest.approx(0.7, abs=0.02)  # rows at the start look at it as their neighbour
    (verdict,) = found["verdicts"]["all"]
    assert (verdict["code"], verdict["layers"], verdict["of"]) == ("near", [0, 2], "first")
    assert verdict["mean"] == pytest.approx(layer["first"]["distance"]["mean"], abs=DISTANCE)
    assert verdict["whole"]["mean"] == pytest.approx(layer["all"]["distance"]["mean"], abs=DISTANCE)
    assert verdict["whole"]["mean"] > FURTHER * verdict["whole"]["uniform"] > verdict["mean"]
    assert verdict["sink"] == pytest.approx(layer["sink"], abs=1e-6)


def test_a_sink_does_not_hide_that_high_layers_are_local() -> None:
    found = locality([EVEN, EVEN, 0.7 * FAR + 0.3 * NEAR])
    (warning,) = found["warnings"]["all"]
    near = found["layers"][2]["first"]["near"]
    assert (warning["layers"], warning["share"], warning["chance"]) == ([2, 2], near["share"], near["chance"])


@pytest.mark.parametrize(("more", "of", "kind"), [(-0.02, "all", "even"), (0.03, "first", "even")])
def test_a_sink_is_large_where_it_alone_would_make_a_layer_far(more: float, of: str, kind: str) -> None:
    """Beside equal weights: with less of it the layer is "even" as it is, with more of it by what remains."""
    first = 5 / 80  # what rows of equal weights have on it in the mean: the sum of 1 / (i + 1) over 79 rows is 4.0
    share = SINK_LARGE - first + more + 0.02
    (verdict,) = locality([(1 - share) * EVEN + share * FAR])["verdicts"]["all"]
    assert (verdict["of"], verdict["code"]) == (of, kind)


def test_a_layer_that_only_rests_is_not_said_to_look_far() -> None:
    (verdict,) = locality([FAR] * 3)["verdicts"]["all"]
    assert (verdict["code"], verdict["of"], verdict["sink"]) == ("sink", "first", 1.0)
    assert {name: verdict[name] for name in MEANS} == verdict["whole"]


def test_without_a_sink_there_is_one_number() -> None:
    for verdict in locality([NEAR, EVEN, heads(10, 10)])["verdicts"]["all"]:
        assert (verdict["of"], verdict["sink"], verdict["whole"]) == ("all", None, None)


def test_of_a_model_that_is_all_local_the_highest_layers_are_warned_of() -> None:
    found = locality([NEAR] * 4)
    (warning,) = found["warnings"]["all"]
    assert (warning["layers"], found["verdicts"]["all"][0]["layers"]) == ([3, 3], [0, 3])


def test_the_version_that_is_asked_for_is_told_plainly() -> None:
    (verdict,) = locality([0.7 * FAR + 0.3 * NEAR] * 3)["verdicts"]["first"]
    assert (verdict["code"], verdict["of"], verdict["sink"], verdict["whole"]) == ("near", "first", None, None)
