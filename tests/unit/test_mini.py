"""The batches of everyhead-mini: a loss is taken where something can be predicted, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from models.recipes.mini import MARK, STAGES, TOKENS_PER_STEP, Stage, next_batch
from models.training import NOT_COUNTED, Batch

TEXT: NDArray[np.int32] = np.arange(5_000, dtype=np.int32) % 1_999  # a text in which a token foretells the next
RANDOM = Stage(0, context=64, random_tokens=97)
MIXED = Stage(0, context=64, text=0.5, text_spans=True)
MARKED = Stage(0, context=64, random_tokens=97, marked=1.0)


def batch(stage: Stage, step: int = 0) -> Batch:
    """A batch of one stage."""
    return next_batch(TEXT, [stage], seed=3, step=step, part=0)


def runs_of_true(row: torch.Tensor) -> list[tuple[int, int]]:
    """(first, end) of each stretch."""
    edges = torch.diff(row.int(), prepend=torch.zeros(1, dtype=torch.int), append=torch.zeros(1, dtype=torch.int))
    return list(zip((edges == 1).nonzero()[:, 0].tolist(), (edges == -1).nonzero()[:, 0].tolist(), strict=True))


@pytest.mark.parametrize("step", range(5))
def test_only_what_an_earlier_copy_foretells_is_counted(step: int) -> None:
    made = batch(RANDOM, step)
    assert made.ids.shape == made.targets.shape == (TOKENS_PER_STEP // 64, 64)
    for ids, targets in zip(made.ids, made.targets, strict=True):
        ((first, end),) = runs_of_true(targets != NOT_COUNTED)
        # first is where the second copy's first token lies; its second token is the first that is counted
        copy = torch.cat([ids[first : first + 1], targets[first:end]])
        joined = torch.cat([ids, targets[-1:]])
        assert torch.equal(joined[first - len(copy) : first], copy)
        assert end - first >= 2


def test_a_copy_may_lie_further_away() -> None:
    made = batch(Stage(0, context=64, random_tokens=97, apart=1.0))
    apart = 0
    for ids, targets in zip(made.ids, made.targets, strict=True):
        ((first, end),) = runs_of_true(targets != NOT_COUNTED)
        copy = torch.cat([ids[first : first + 1], targets[first:end]])
        earlier = ids[:first].unfold(0, len(copy), 1)  # every span of that length before it
        (places,) = (earlier == copy).all(dim=1).nonzero(as_tuple=True)
        assert len(places) >= 1
        apart += first - int(places[0]) > len(copy)
    assert apart > len(made.ids) / 2


def test_what_came_before_is_marked_and_nothing_else() -> None:
    made, again = batch(MARKED), 0
    for tokens, targets in zip(made.ids.tolist(), made.targets.tolist(), strict=True):
        for place in range(len(tokens)):
            if tokens[place] == MARK:
                assert tokens[place - 1] in tokens[: place - 1]
                assert targets[place] == NOT_COUNTED, "what follows a mark cannot be foretold"
            elif tokens[place] in tokens[:place]:
                assert targets[place] == MARK
                again += 1
            else:
                assert targets[place] not in (MARK, NOT_COUNTED)
    assert again > made.ids.numel() / 8, "what came before comes again often enough to be learned from"


def test_marked_texts_have_their_share() -> None:
    stage, marked = Stage(0, context=64, text=0.5, text_spans=True, marked=0.5), []
    for step in range(20):
        ids = batch(stage, step).ids
        made_up = [bool((row == MARK).sum() > 3) for row in ids[len(ids) // 2 :]]
        assert not any(made_up[0::2]), "spans of text"
        marked += made_up[1::2]
    assert 0.35 < sum(marked) / len(marked) < 0.65  # 160 of them: nearly four standard deviations to either side


def test_random_tokens_stay_in_their_part_of_the_vocabulary() -> None:
    made = batch(RANDOM)
    assert made.among == 97
    assert 90 <= int(made.ids.max()) < 97


def test_half_of_a_mixed_batch_is_text_and_a_quarter_repeats_it() -> None:
    made = batch(MIXED)
    half = len(made.ids) // 2
    follows = made.targets == (made.ids + 1) % 1_999  # as in the text
    assert follows[:half].all()
    for row in range(half, len(made.ids)):
        counted = made.targets[row] != NOT_COUNTED
        if row % 2 == 0:
            assert counted.all()
            assert 1 <= int((~follows[row]).sum()) <= 2, "the copy begins, and ends"
        else:
            assert not follows[row][~counted].any()


def test_without_spans_of_text_the_rest_is_random() -> None:
    made = batch(Stage(0, context=64, text=0.25))
    windows = len(made.ids) // 4
    all_counted = (made.targets != NOT_COUNTED).all(dim=1)
    assert all_counted[:windows].all()
    assert not all_counted[windows:].any()


def test_the_same_numbers_give_the_same_batch() -> None:
    first, again, other = batch(MIXED), batch(MIXED), batch(MIXED, step=1)
    assert torch.equal(first.ids, again.ids)
    assert not torch.equal(first.ids, other.ids)


def test_the_stages_come_in_order_and_end_with_the_longest_text() -> None:
    steps = [stage.from_step for stage in STAGES]
    assert steps == sorted(set(steps))
    contexts = [next_batch(TEXT, STAGES, 1, step, 0).ids.shape[1] for step in steps]
    assert contexts == [stage.context for stage in STAGES]
    assert next_batch(TEXT, STAGES, 1, steps[1] - 1, 0).ids.shape[1] == STAGES[0].context
