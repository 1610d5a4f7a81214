"""The shipped everyhead-dates, on held-out dates that its card was not made of: what it writes, and where it looks.

Everything goes the way of a run (OwnModel, capture), so that the picture is judged and not only the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from models.own import OwnModel
from models.recipes.dates_data import FIELDS, FORMS, LANGUAGES, Field, Language, Spelling, spell, spellings_of
from models.recipes.dates_figures import WRITES, Reading, chances, in_span, read_dates
from models.shipped import Shipped, read_shipped

SEED = 77  # not one of those of the card
FRESH = 300  # spellings of each language
PICTURES = 25  # of each language, whose capture is read back
EXACT, INSIDE = 0.99, 0.90  # what the model is shipped for


@pytest.fixture(scope="module")
def shipped() -> Shipped:
    """The model as it lies in the repository."""
    return read_shipped("everyhead-dates")


@pytest.fixture(scope="module")
def own(shipped: Shipped) -> OwnModel:
    """The same as a model that one can look into."""
    return OwnModel(
        shipped.model,
        PreTrainedTokenizerFast(tokenizer_object=shipped.tokenizer),
        family="everyhead-dates",
        weight_precision="float16",
        revision=shipped.revision,
        start_id=shipped.card["start_id"],
        stop_id=shipped.card["stop_id"],
    )


@pytest.fixture(scope="module")
def fresh() -> dict[Language, list[Spelling]]:
    """Held-out dates in spellings drawn for this test."""
    return {language: spellings_of("held-out", language, FRESH, SEED) for language in LANGUAGES}


@pytest.fixture(scope="module")
def readings(shipped: Shipped, fresh: dict[Language, list[Spelling]]) -> dict[Language, Reading]:
    """What the model makes of them, many at once."""
    return {language: read_dates(shipped.tokenizer, shipped.model, found) for language, found in fresh.items()}


def head_of(card: Mapping[str, Any], field: Field) -> tuple[int, int]:
    """The head that the card names for a field."""
    found = card["figures"]["fields"][field]
    return found["layer"], found["head"]


def captured_tops(own: OwnModel, card: Mapping[str, Any], spelling: Spelling) -> dict[Field, int]:
    """Of each field's head the source character with the largest weight, as a run keeps it."""
    source = [token.id for token in own.tokenize(spelling.text)]
    target = [token.id for token in own.tokenize_target(spelling.iso)]
    result = own.run(source, target_ids=target)
    assert [check.id for check in result.card.checks if check.status == "fail"] == []
    tops = dict[Field, int]()
    for field, rows in WRITES.items():
        window = result.capture.window("decoder.cross", *head_of(card, field), None, None, 10_000, "max")
        assert (window.row_step, window.col_step) == (1, 1)
        tops[field] = int(window.weights[rows].mean(0).argmax())
    return tops


def test_the_card_states_what_was_asked_for(shipped: Shipped) -> None:
    figures = shipped.card["figures"]
    assert min(figures["exact"].values()) >= EXACT
    for found in figures["fields"].values():
        assert found["top_in_field"] >= INSIDE
        assert found["chance"] < 0.5


def test_fresh_dates_are_written_exactly(
    fresh: dict[Language, list[Spelling]], readings: dict[Language, Reading]
) -> None:
    for language in LANGUAGES:
        pairs = zip(fresh[language], readings[language].exact, strict=True)
        wrong = [spelling.text for spelling, right in pairs if not right]
        assert len(wrong) <= (1 - EXACT) * FRESH, wrong


@pytest.mark.parametrize("field", FIELDS)
def test_the_named_head_reads_its_field(
    shipped: Shipped, fresh: dict[Language, list[Spelling]], readings: dict[Language, Reading], field: Field
) -> None:
    inside = np.concatenate([in_span(readings[language], fresh[language], field) for language in LANGUAGES])
    layer, head = head_of(shipped.card, field)
    assert inside[:, layer, head].mean() >= INSIDE
    chance = chances([spelling for found in fresh.values() for spelling in found], field).mean()
    # the mean of 600 shares of which one is at most 0.6: its standard deviation is below 0.01
    assert chance == pytest.approx(shipped.card["figures"]["fields"][field]["chance"], abs=0.03)


def test_the_picture_shows_the_same(
    shipped: Shipped, own: OwnModel, fresh: dict[Language, list[Spelling]], readings: dict[Language, Reading]
) -> None:
    """The weights that a run gives back have their maximum where the pass over many texts has it: inside the field."""
    for language in LANGUAGES:
        some = fresh[language][:PICTURES]
        tops = [captured_tops(own, shipped.card, spelling) for spelling in some]
        for field in FIELDS:
            layer, head = head_of(shipped.card, field)
            expected = readings[language].tops[field][:PICTURES, layer, head]
            assert [found[field] for found in tops] == expected.tolist()


@pytest.mark.parametrize("text", ["March 5th, 2021", "三月五日二〇二一年", "5/3/21", "the fifth of March 2021"])
def test_it_writes_the_date_by_itself(own: OwnModel, text: str) -> None:
    source = [token.id for token in own.tokenize(text)]
    written = own.write_target(source, should_stop=lambda: False)
    assert [token.text for token in written] == ["<start>", *"2021-03-05"]
    assert written[0].special


def test_figures_hold_for_dates_not_forms_alone(shipped: Shipped) -> None:
    """A wrong answer is seen: the same spellings with another day's date are all counted as wrong."""
    form = FORMS["English"][0]
    spelling = spell(form, date(2021, 3, 5))
    swapped = Spelling(spelling.text, "2021-03-06", spelling.spans, form)
    reading = read_dates(shipped.tokenizer, shipped.model, [spelling, swapped])
    assert reading.exact.tolist() == [True, False]
