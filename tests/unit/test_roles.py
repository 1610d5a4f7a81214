"""Heads made so that their role is known, through the pass; ties, sinks, thresholds and texts that cannot tell."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from models.attention import causal_mask, sliding_window_mask
from models.blockwise import AttentionInputs, blockwise_attention
from models.head_scores import DECIMALS, head_scores
from models.head_targets import MIN_ROWS, HeadTargets
from models.masks import MaskLayout
from models.roles import ROLES, role_of
from models.token_facts import TokenFacts

PERIOD, N = 20, 60
LAST_DIGIT = 10**-DECIMALS  # of a figure as it is told
IDS = tuple(range(100, 100 + PERIOD)) * 3  # random tokens repeated: none twice within a period


def heads(
    weights: Tensor,
    *,
    ids: tuple[int, ...] = IDS,
    special: tuple[int, ...] = (),
    window: int = 0,
    sink: float = 0.0,
    causal: bool = True,
    same_sequence: bool = True,
) -> list[dict[str, Any]]:
    """Figures of heads with just these weights: their logarithms are the scores, through an identity as keys."""
    n_heads, n, m = weights.shape
    seen = causal_mask(n) if n == m and causal else torch.ones(n, m, dtype=torch.bool)
    mask = MaskLayout.from_mask(seen & sliding_window_mask(n, window=window) if window else seen)
    sinks = torch.full((n_heads,), math.log(sink), dtype=torch.float64) if sink else None
    query = weights.clamp(min=1e-30).double().log()
    key = torch.eye(m, dtype=torch.float64).expand(n_heads, -1, -1)
    facts = TokenFacts(ids, tuple(i in special for i in range(m)), tuple(i % PERIOD == 7 for i in range(m)))
    targets = HeadTargets(mask, facts, same_sequence=same_sequence)
    inputs = AttentionInputs(
        query, key, torch.zeros(n_heads, m, 1, dtype=torch.float64), 1.0, mask, targets=targets, sink_logits=sinks
    )
    return head_scores(blockwise_attention(inputs).figures)


def at(*keys: Any) -> Tensor:
    """Weight 1 on one key a row; rows without such a key look at the first."""
    weights = torch.zeros(N, N)
    for row, key in enumerate(keys):
        weights[row, key if 0 <= key <= row else 0] = 1.0
    return weights


def role(weights: Tensor, threshold: float = 0.3, **options: Any) -> dict[str, Any]:
    """The role of one head."""
    (head,) = heads(weights[None], **options)
    return role_of(head, threshold)


ROWS = range(N)
UNIFORM = causal_mask(N).float() / torch.arange(1, N + 1)[:, None]
EXACT = {
    "previous": at(*(i - 1 for i in ROWS)),
    "self": at(*ROWS),
    "uniform": UNIFORM,
    "induction": at(*(i - PERIOD + 1 for i in ROWS)),
    "duplicate": at(*(i - PERIOD for i in ROWS)),
    "local": at(*(i - 3 for i in ROWS)),
    "punctuation": at(*((i - 7) // PERIOD * PERIOD + 7 for i in ROWS)),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_head_made_for_a_role_gets_it(name: str) -> None:
    found = role(EXACT[name])
    assert (found["name"], found["sinks"], found["of"]) == (name, [], "all")
    if name != "uniform":
        assert found["corrected"] > 0.6  # rows before the first match look at the first token


def test_a_head_of_an_encoder_that_looks_at_the_next_token() -> None:
    weights = torch.eye(N).roll(1, -1)  # the last row, which has no next token, looks at the first
    found = role(weights, causal=False)
    assert (found["name"], found["sinks"], found["of"]) == ("next", [], "all")
    assert found["corrected"] == pytest.approx(1.0, abs=1e-6)
    assert "next" in role(EXACT["previous"])["untested"], "a decoder sees no next token"


def test_a_head_that_only_rests_is_a_sink() -> None:
    found = role(at(*(0 for _ in ROWS)))
    assert (found["name"], found["best"], found["sinks"]) == ("sink", None, ["first"])
    assert set(found["untested"]) == set(ROLES)


def test_where_much_is_left_beside_a_sink_but_in_too_few_rows_the_text_cannot_tell() -> None:
    n = MIN_ROWS + 1  # the first row sees one key only
    weights = 0.6 * torch.zeros(1, n, n).index_fill(2, torch.tensor(0), 1.0) + 0.4 * torch.eye(n)
    weights[0, 4] = torch.eye(n)[0]  # of this row nothing is left: one too few
    (head,) = heads(weights, ids=tuple(range(n)))
    found = role_of(head)
    assert (head["scores"]["self"]["rows"], head["without"]["first"]["scores"]["self"]) == (MIN_ROWS, None)
    assert (found["name"], found["best"], found["sinks"]) == (None, None, ["first"])
    (rest,) = heads(weights / 10 + 0.9 * weights[:, [4]], ids=tuple(range(n)))
    assert rest["without"]["first"]["removed"] > 0.95
    assert (role_of(rest)["name"], role_of(rest)["sinks"]) == ("sink", ["first"]), "there is nothing to read"


def test_none_of_the_roles_is_not_said_where_none_could_be_tested() -> None:
    """Attention to a text without punctuation: only the entropy can be told."""
    weights = torch.stack([torch.eye(7).repeat(3, 1), torch.full((21, 7), 1 / 7)])
    narrow, even = (role_of(head) for head in heads(weights, ids=tuple(range(7)), same_sequence=False))
    assert (narrow["name"], narrow["best"], narrow["sinks"]) == (None, None, [])
    assert set(narrow["untested"]) == set(ROLES)
    assert even["name"] == "uniform", "its entropy says so"


def test_a_sink_is_told_beside_what_the_rest_does() -> None:
    (head,) = heads((0.95 * at(*(0 for _ in ROWS)) + 0.05 * EXACT["previous"])[None])
    found = role_of(head)
    assert (found["name"], found["sinks"], found["of"]) == ("previous", ["first"], "first")
    assert found["corrected"] == pytest.approx(1.0, abs=1e-6)
    assert head["without"]["first"]["removed"] == pytest.approx(0.95, abs=2e-3)  # the second row has nothing else
    assert head["scores"]["previous"]["score"] < 0.1, "nothing of it is seen without taking the sink away"


def test_what_only_a_windows_first_rows_see_is_no_sink() -> None:
    weights = EXACT["previous"].clone()
    weights[:10] = at(*(0 for _ in ROWS))[:10]
    (head,) = heads(weights[None], window=10)
    assert head["scores"]["first"]["score"] > 0.9, "of the rows that see it"
    assert head["without"]["first"]["removed"] < 0.2, "of all rows"
    assert (role_of(head)["name"], role_of(head)["sinks"]) == ("previous", [])


def test_a_heads_own_sink_is_told_and_its_shape_is_that_of_the_rest() -> None:
    (head,) = heads(UNIFORM[None], sink=3.0)  # a logit of ln 3 beside weights that sum to 1
    assert head["own_sink"] == pytest.approx(0.75, abs=1e-6)
    assert head["scores"]["self"]["score"] == pytest.approx(head["scores"]["self"]["chance"] / 4, abs=1e-6)
    assert (role_of(head)["name"], role_of(head)["sinks"]) == ("uniform", ["own"])
    assert head["distance"]["mean"] == pytest.approx(head["distance"]["uniform"], abs=1e-4)
    assert heads(UNIFORM[None])[0]["own_sink"] == 0.0


def test_a_head_whose_own_sink_takes_nearly_everything_rests() -> None:
    (head,) = heads(EXACT["previous"][None], sink=999.0)  # a thousandth is left of every row
    assert head["own_sink"] == pytest.approx(0.999, abs=1e-6)
    assert head["without"]["first"]["removed"] == pytest.approx(0.001 / (N - 1), abs=1e-6)  # of the second row alone
    assert (head["entropy"], head["scores"]["previous"]) == (None, None)
    found = role_of(head)
    assert (found["name"], found["sinks"], found["best"]) == ("sink", ["own"], None)
    n = MIN_ROWS
    (short,) = heads(EXACT["previous"][None, :n, :n], sink=999.0, ids=tuple(range(n)))
    assert (short["own_sink"], role_of(short)["name"]) == (None, None), "one row too few"


@pytest.mark.parametrize("sink", [1.5, 30.0])
def test_beside_a_sink_of_its_own_a_head_has_the_role_that_the_rest_shows(sink: float) -> None:
    (head,) = heads(EXACT["previous"][None], sink=sink)
    assert head["scores"]["previous"]["score"] == pytest.approx(1 / (1 + sink), abs=1e-6)
    found = role_of(head)
    assert (found["name"], found["sinks"], found["of"]) == ("previous", ["own"], "first")
    assert found["corrected"] == pytest.approx(1.0, abs=1e-6)
    weak = role(EXACT["previous"], sink=0.9)  # it takes 0.47
    assert (weak["name"], weak["sinks"], weak["of"]) == ("previous", [], "all")


@pytest.mark.parametrize(
    ("first", "second", "sinks"),
    [(0.8, 0.0, ["own", "first"]), (0.3, 0.4, ["own", "special"]), (0.6, 0.3, ["own", "first", "special"])],
)
def test_beside_a_sink_of_its_own_others_count_of_what_it_leaves(first: float, second: float, sinks: list[str]) -> None:
    own = 1.0 - first - second
    weights = first * at(*(0 for _ in ROWS)) + second * at(*(1 for _ in ROWS)) + own * EXACT["self"]
    found = role(weights, special=(0, 1), sink=3.0)
    assert (found["name"], found["sinks"], found["of"]) == ("self", sinks, sinks[-1])


@pytest.mark.parametrize(
    ("first", "second", "sinks"),
    [
        (0.48, 0.0, ["own"]),
        (0.52, 0.0, ["own", "first"]),
        (0.0, 0.48, ["own"]),
        (0.0, 0.52, ["own", "special"]),
        (0.6, 0.18, ["own", "first"]),  # 0.45 of what the first leaves
        (0.6, 0.22, ["own", "first", "special"]),  # 0.55
    ],
)
def test_beside_a_sink_of_its_own_half_of_what_is_left_makes_another(
    first: float, second: float, sinks: list[str]
) -> None:
    own = 1.0 - first - second
    weights = first * at(*(0 for _ in ROWS)) + second * at(*(1 for _ in ROWS)) + own * EXACT["self"]
    assert role(weights, special=(0, 1), sink=3.0)["sinks"] == sinks


@pytest.mark.parametrize(("sink", "sinks"), [(90.0, ["own", "first"]), (110.0, ["own"])])
def test_beside_a_sink_of_its_own_that_leaves_less_than_a_hundredth_there_is_no_other(
    sink: float, sinks: list[str]
) -> None:
    """All of the rest is on the first token: of 1 / 91 it is told, of 1 / 111 it is not."""
    assert role(at(*(0 for _ in ROWS)), sink=sink)["sinks"] == sinks


@pytest.mark.parametrize("share", [0.48, 0.52])
def test_half_of_the_mass_makes_a_sink(share: float) -> None:
    found, rest = share > 0.5, (1 - share) * EXACT["self"]
    assert role(share * at(*(0 for _ in ROWS)) + rest)["sinks"] == ["first"] * found
    assert role(share * at(*(1 for _ in ROWS)) + rest, special=(1,))["sinks"] == ["special"] * found
    assert role(EXACT["self"], sink=share / (1 - share))["sinks"] == ["own"] * found


@pytest.mark.parametrize(("even", "normalised", "name"), [(0.85, 0.954, "uniform"), (0.83, 0.943, "mixed")])
def test_nearly_the_entropy_of_equal_weights_makes_a_head_uniform(even: float, normalised: float, name: str) -> None:
    weights = even * UNIFORM + (1 - even) * at(*(i * 7 % (i + 1) for i in ROWS))  # keys that no role is about
    (head,) = heads(weights[None])
    assert head["entropy"]["normalised"] == pytest.approx(normalised, abs=1e-3)  # three digits are written here
    assert role_of(head)["name"] == name


def test_a_pass_without_numbers_tells_nothing() -> None:
    weights = EXACT["previous"].clone()
    weights[30] = torch.nan
    (head,) = heads(weights[None])
    assert (head["entropy"], head["distance"], head["concentration"]) == (None, None, None)
    assert (role_of(head)["name"], role_of(head)["best"]) == (None, None)


def test_special_tokens_are_a_sink_too() -> None:
    rest = torch.where(torch.arange(N)[:, None] >= 30, 0.9 * at(*(30 for _ in ROWS)) + 0.1 * EXACT["self"], UNIFORM)
    rest[:30] = at(*(0 for _ in ROWS))[:30]
    found = role(rest, special=(30,))
    assert found["sinks"] == [], "each takes less than half of all rows' mass"
    late = torch.where(torch.arange(N)[:, None] >= 5, 0.9 * at(*(5 for _ in ROWS)) + 0.1 * EXACT["self"], UNIFORM)
    found = role(late, special=(5,))
    assert (found["name"], found["sinks"], found["of"]) == ("self", ["special"], "special")


@pytest.mark.parametrize(
    ("first", "second", "sinks"),
    [
        (0.4, 0.4, ["special"]),  # as [CLS] and [SEP]: together they are one
        (0.2, 0.2, []),
        (0.6, 0.3, ["first", "special"]),  # three quarters of what the first leaves
        (0.6, 0.1, ["first"]),
    ],
)
def test_special_tokens_count_together_and_beside_a_first_one(first: float, second: float, sinks: list[str]) -> None:
    own = 1.0 - first - second
    weights = first * at(*(0 for _ in ROWS)) + second * at(*(1 for _ in ROWS)) + own * EXACT["self"]
    found = role(weights, special=(0, 1))
    assert (found["name"], found["sinks"], found["of"]) == ("self", sinks, sinks[-1] if sinks else "all")


def test_of_scores_that_are_as_high_the_narrower_counts() -> None:
    """All within four tokens, nearly all of it on the previous one: local is a little higher, previous says more."""
    weights = 0.97 * EXACT["previous"] + 0.03 * at(*(i - 2 for i in ROWS))
    (head,) = heads(weights[None])
    assert head["scores"]["local"]["corrected"] > head["scores"]["previous"]["corrected"]
    assert role_of(head)["name"] == "previous"
    wide = 0.5 * EXACT["previous"] + 0.5 * at(*(i - 3 for i in ROWS))
    assert role(wide)["name"] == "local"


def test_where_the_narrower_of_equal_scores_misses_the_threshold_the_wider_is_the_role() -> None:
    """The number beside a role is its own: never another score's that reached the threshold for it."""
    weights = 0.97 * EXACT["previous"] + 0.03 * at(*(i - 2 for i in ROWS))
    (head,) = heads(weights[None])
    previous, local = (head["scores"][name]["corrected"] for name in ("previous", "local"))
    assert previous < local
    found = role_of(head, (previous + local) / 2)
    assert (found["name"], found["corrected"]) == ("local", local)
    found = role_of(head, previous)
    assert (found["name"], found["corrected"]) == ("previous", previous)
    found = role_of(head, 1.1)
    assert (found["name"], found["best"], found["corrected"]) == ("mixed", "local", local)


def test_low_scores_that_differ_are_no_tie() -> None:
    """What stands out most is said, however little it is: not a narrower score that is at its chance."""
    (head,) = heads((0.96 * UNIFORM + 0.04 * EXACT["local"])[None])
    scores = head["scores"]
    assert scores["previous"]["corrected"] < 0.01 < scores["local"]["corrected"] < 0.05
    assert scores["previous"]["chance"] < scores["local"]["chance"]
    assert role_of(head)["best"] == "local"


def test_below_the_threshold_a_head_is_mixed() -> None:
    weights = 0.4 * EXACT["previous"] + 0.6 * at(*(i * 7 % (i + 1) for i in ROWS))
    found = role(weights, 0.9)
    assert (found["name"], found["otherwise"]) == ("mixed", "mixed")
    assert role(weights, found["corrected"])["name"] == found["best"]


def test_without_repeats_there_are_no_such_scores_nor_roles() -> None:
    for weights in (EXACT["induction"], EXACT["duplicate"]):
        (head,) = heads(weights[None], ids=tuple(range(N)))
        assert head["scores"]["induction"] is None
        assert head["scores"]["duplicate"] is None
        found = role_of(head, 0.0)
        assert found["name"] not in ("induction", "duplicate")
        assert {"induction", "duplicate"} <= set(found["untested"])


def test_too_few_rows_tell_nothing() -> None:
    n = MIN_ROWS  # the first row sees one key only: one row too few is left
    weights = torch.zeros(1, n, n)
    weights[0, range(n), [0, *range(n - 1)]] = 1.0
    (head,) = heads(weights, ids=tuple(range(n)))
    assert (head["entropy"], head["distance"], head["concentration"]) == (None, None, None)
    assert set(head["scores"].values()) == {None}
    assert role_of(head)["name"] is None


def test_chance_is_what_uniform_attention_gives() -> None:
    (head,) = heads(UNIFORM[None])
    for name, score in head["scores"].items():
        if score is not None:
            assert score["score"] == pytest.approx(score["chance"], abs=LAST_DIGIT), name
            assert score["corrected"] == pytest.approx(0.0, abs=1e-6)
    previous, duplicate = head["scores"]["previous"], head["scores"]["duplicate"]
    assert previous["chance"] == pytest.approx(sum(1 / (i + 1) for i in range(1, N)) / (N - 1), abs=LAST_DIGIT)
    of_row = [(i // PERIOD) / (i + 1) for i in range(PERIOD, N)]
    assert (duplicate["chance"], duplicate["rows"]) == (
        pytest.approx(sum(of_row) / len(of_row), abs=LAST_DIGIT),
        N - PERIOD,
    )
    assert head["entropy"]["normalised"] == pytest.approx(1.0, abs=1e-6)
    assert head["distance"]["mean"] == pytest.approx(head["distance"]["uniform"], abs=1e-5)
    assert head["concentration"]["share"] == pytest.approx(head["concentration"]["chance"], abs=1e-6)
