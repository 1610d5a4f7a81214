"""The reference inputs and the averages over them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from models.head_scores import DECIMALS
from models.reference import LONGEST, NAMES, ONCE, TEXTS, read_text, references_for, repeated
from models.reference.averages import average_heads
from models.tokens import Token
from tests.fakes import fake_tokens

LAST_DIGIT = 10**-DECIMALS  # of a figure as it is told


def tokenize(text: str) -> list[Token]:
    """With one special token at each end."""
    tokens = fake_tokens(text)
    end = Token(len(tokens), 2, "</s>", "</s>", len(text), len(text), True, None, 1, 1, None)
    return [*tokens, end]


def test_every_text_is_there_and_none_is_long() -> None:
    for name in TEXTS:
        text = read_text(name)
        assert 200 < len(text) < 1200
        assert text == text.strip()
    assert any("\u4e00" <= character <= "\u9fff" for character in read_text("chinese"))


@pytest.mark.parametrize("limit", [20, 100, 4096])
def test_inputs_fit_the_model(limit: int) -> None:
    found = list(references_for(tokenize, limit))
    assert tuple(one.name for one in found) == NAMES
    for one in found:
        assert 0 < len(one.tokens) <= min(limit, LONGEST)
        assert [token.index for token in one.tokens] == list(range(len(one.tokens)))
        assert one.tokens[0].special
        assert one.tokens[-1].special


def test_random_tokens_come_twice_and_are_the_same_each_time() -> None:
    texts = [tokenize(read_text(name)) for name in TEXTS]
    tokens = repeated(texts, 4096)
    ids = [token.id for token in tokens[1:-1]]
    assert len(ids) == 2 * ONCE
    assert ids[:ONCE] == ids[ONCE:]
    assert len(set(ids)) == ONCE
    assert set(ids) <= {token.id for text in texts for token in text if not token.special}
    assert repeated(texts, 4096) == tokens
    assert ids[:ONCE] != sorted(ids[:ONCE])
    few = repeated([tokenize("one two three")], 4096)
    assert [token.special for token in few] == [True, *[False] * 6, True]


def figures(corrected: float | None, entropy: float = 0.5, length: int = 3) -> dict[str, Any]:
    score = None if corrected is None else {"score": corrected / 2, "chance": 0.1, "corrected": corrected, "rows": 10}
    names = ("previous", "self", "first", "next", "duplicate", "induction", "punctuation", "local", "special")
    distance = {"mean": 2.0, "uniform": 4.0, "within_50": 1, "within_90": length, "bins": [1 / length] * length}
    return {
        "scores": {**dict.fromkeys(names), "previous": score},
        "entropy": {"mean": 1.0, "normalised": entropy, "rows": 10},
        "distance": {**distance, "rows": 10},
        "concentration": {"share": 0.2, "key": 3, "chance": 0.1, "rows": 10},
    }


def head(corrected: float | None, **more: Any) -> dict[str, Any]:
    without = {"first": {"removed": 0.25, **figures(corrected)}, "special": None}
    place = {"site": "decoder.self", "layer": 1, "head": 2}
    return {**place, **figures(corrected, **more), "own_sink": 0.2, "without": without}


def test_each_text_counts_the_same_and_what_none_shows_stays_unknown() -> None:
    texts = {"prose": [head(0.8, length=3)], "code": [head(0.4, entropy=0.7, length=5)], "chinese": [head(None)]}
    before = deepcopy(texts)
    (found,) = average_heads(texts)
    assert texts == before
    assert (found["site"], found["layer"], found["head"]) == ("decoder.self", 1, 2)
    assert found["scores"]["previous"] == {
        "score": pytest.approx(0.3),
        "chance": 0.1,
        "corrected": pytest.approx((0.3 - 0.1) / (1 - 0.1)),
        "rows": 20,
        "by_text": {"prose": 0.8, "code": 0.4, "chinese": None},
    }
    assert found["scores"]["induction"] is None
    assert found["entropy"]["normalised"] == pytest.approx((0.5 + 0.7 + 0.5) / 3)
    assert found["distance"]["within_90"] == pytest.approx((3 + 5 + 3) / 3)
    assert found["distance"]["bins"][4] == pytest.approx(0.2 / 3, abs=LAST_DIGIT)
    assert sum(found["distance"]["bins"]) == pytest.approx(1, abs=5 * LAST_DIGIT)  # five bins that are not 0
    assert found["concentration"] == {"share": 0.2, "chance": 0.1, "rows": 30}
    assert found["without"]["special"] is None
    assert found["without"]["first"]["removed"] == 0.25
    assert found["without"]["first"]["scores"]["previous"]["by_text"]["code"] == 0.4
    assert (found["role"]["name"], found["role"]["corrected"]) == ("mixed", pytest.approx(0.2 / 0.9, abs=LAST_DIGIT))
    assert "induction" in found["role"]["untested"]


def test_a_heads_own_sink_is_averaged() -> None:
    (found,) = average_heads({"prose": [head(0.5)], "code": [{**head(0.5), "own_sink": 0.6}]})
    assert found["own_sink"] == 0.4


def test_a_text_on_which_a_heads_own_sink_takes_all_counts_in_its_mean() -> None:
    resting = {**head(0.5), "own_sink": 0.999, "entropy": None, "distance": None, "concentration": None}
    resting["scores"] = dict.fromkeys(resting["scores"])
    some = {**head(0.5), "own_sink": 0.96}
    some["scores"]["special"] = {"score": 0.018, "chance": 0.01, "corrected": 0.01, "rows": 10}
    for one in (resting, some):
        one["without"] = {"first": {"removed": 0.0, **figures(0.9)}, "special": {"removed": 0.0, **figures(0.5)}}
    (found,) = average_heads({"prose": [some], "code": [resting]})
    assert found["own_sink"] == pytest.approx((0.999 + 0.96) / 2)
    # of the 0.0205 that it leaves special tokens take 0.009: on the second text nothing
    assert (found["role"]["name"], found["role"]["sinks"]) == ("previous", ["own"])


def test_a_text_without_special_tokens_is_left_out_of_what_is_without_them() -> None:
    with_special, without = head(0.5), head(0.5)
    with_special["without"]["special"] = {"removed": 0.75, **figures(0.9)}
    (found,) = average_heads({"prose": [with_special], "code": [without]})
    assert found["without"]["special"]["removed"] == 0.75
    assert found["without"]["special"]["scores"]["previous"]["by_text"] == {"prose": 0.9, "code": None}


def test_what_is_left_out_is_averaged_over_the_texts_that_tell_it() -> None:
    texts = {name: [head(0.5)] for name in ("prose", "code", "chinese")}
    for removed, (made,) in zip((0.2, 0.6, None), texts.values(), strict=True):
        made["without"]["first"]["removed"] = removed
    (found,) = average_heads(texts)
    assert found["without"]["first"]["removed"] == pytest.approx(0.4)


def test_the_role_is_that_of_the_means() -> None:
    (found,) = average_heads({"prose": [head(0.5)], "code": [head(0.05)]})
    assert (found["role"]["name"], found["role"]["best"]) == ("mixed", "previous")


def test_what_is_corrected_is_the_mean_score_by_the_mean_chance() -> None:
    easy, hard = head(0.5), head(0.5)
    easy["scores"]["previous"] = {"score": 0.96, "chance": 0.6, "corrected": 0.9, "rows": 10}
    hard["scores"]["previous"] = {"score": 0.1, "chance": 0.1, "corrected": 0.0, "rows": 90}
    (found,) = average_heads({"prose": [easy], "code": [hard]})
    score = found["scores"]["previous"]
    assert (score["score"], score["chance"], score["by_text"]) == (0.53, 0.35, {"prose": 0.9, "code": 0.0})
    assert score["corrected"] == pytest.approx((0.53 - 0.35) / (1 - 0.35), abs=LAST_DIGIT)


def resting(score: float | None, rows: int, all_rows: int) -> dict[str, Any]:
    """A head with so much on special tokens in so many of its rows."""
    made = head(0.5)
    made["scores"]["special"] = score and {"score": score, "chance": 0.1, "corrected": score, "rows": rows}
    made["entropy"]["rows"] = all_rows
    made["without"]["special"] = {"removed": 0.5, **figures(0.5)}
    return made


@pytest.mark.parametrize(
    ("prose", "code", "sinks"),
    [
        (resting(1.0, 10, 10), resting(0.5, 20, 200), ["special"]),  # (1 + 0.05) / 2
        (resting(0.2, 300, 300), resting(0.99, 30, 40), []),  # (0.2 + 0.74) / 2
        (resting(0.9, 40, 40), resting(None, 0, 40), []),  # (0.9 + 0) / 2
    ],
)
def test_special_tokens_are_a_sink_by_the_mean_of_their_mass(
    prose: dict[str, Any], code: dict[str, Any], sinks: list[str]
) -> None:
    (found,) = average_heads({"prose": [prose], "code": [code]})
    assert found["role"]["sinks"] == sinks
    rows = [one["scores"]["special"]["rows"] for one in (prose, code) if one["scores"]["special"]]
    assert found["scores"]["special"]["rows"] == sum(rows)  # what is told of the score itself stays as it is


def test_beside_the_first_token_the_mass_counts_of_what_that_leaves() -> None:
    texts = {"prose": [resting(0.1, 10, 10)], "code": [resting(0.1, 10, 10)]}
    for share, rows, (made,) in zip((1.0, 0.5), (10, 20), texts.values(), strict=True):
        made["scores"]["first"] = {"score": 0.8, "chance": 0.1, "corrected": 0.7, "rows": 10}
        left = made["without"]["first"]
        left["removed"] = 0.8
        left["scores"]["special"] = {"score": share, "chance": 0.1, "corrected": share, "rows": rows}
        left["entropy"]["rows"] = 10 if rows == 10 else 200
    (found,) = average_heads(texts)
    assert found["role"]["sinks"] == ["first", "special"]
