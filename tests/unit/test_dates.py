"""Dates and their spellings: every form, the spans of its fields, the rule for bare numbers, disjoint splits."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from models.recipes import dates
from models.recipes.dates_data import (
    CASES,
    ENDS,
    FIELDS,
    FORMS,
    LANGUAGES,
    Field,
    Form,
    Language,
    Split,
    characters,
    dates_of,
    spell,
    spellings_of,
    split_of,
)
from models.recipes.dates_figures import END, PAD, START, UNKNOWN, WRITES, make_batch
from models.target_tokens import tokens_from_ids
from models.tokens import tokens_from_text
from models.training import batch_loss
from models.transformer import Transformer

FRIDAY = date(2021, 3, 5)
SPLITS: tuple[Split, ...] = ("training", "validation", "held-out")
ALL_FORMS = [form for language in LANGUAGES for form in FORMS[language]]
# Each form with its spelling of 5 March 2021 and what states year, month and day there, written down by hand.
EXAMPLES: dict[str, tuple[str, str, str, str]] = {
    "{year}-{mm}-{dd}": ("2021-03-05", "2021", "03", "05"),
    "{year}-{m}-{d}": ("2021-3-5", "2021", "3", "5"),
    "{year}/{m}/{d}": ("2021/3/5", "2021", "3", "5"),
    "{year}.{mm}.{dd}": ("2021.03.05", "2021", "03", "05"),
    "{d}/{m}/{year}": ("5/3/2021", "2021", "3", "5"),
    "{dd}/{mm}/{year}": ("05/03/2021", "2021", "03", "05"),
    "{d}/{m}/{yy}": ("5/3/21", "21", "3", "5"),
    "{dd}/{mm}/{yy}": ("05/03/21", "21", "03", "05"),
    "{d}.{m}.{year}": ("5.3.2021", "2021", "3", "5"),
    "{month} {d}, {year}": ("March 5, 2021", "2021", "March", "5"),
    "{month} {d} {year}": ("March 5 2021", "2021", "March", "5"),
    "{month} {dth}, {year}": ("March 5th, 2021", "2021", "March", "5th"),
    "{month} {dth} {year}": ("March 5th 2021", "2021", "March", "5th"),
    "{mon} {d}, {year}": ("Mar 5, 2021", "2021", "Mar", "5"),
    "{mon}. {d}, {year}": ("Mar. 5, 2021", "2021", "Mar", "5"),
    "{d} {month} {year}": ("5 March 2021", "2021", "March", "5"),
    "{d} {mon} {year}": ("5 Mar 2021", "2021", "Mar", "5"),
    "{d}-{mon}-{year}": ("5-Mar-2021", "2021", "Mar", "5"),
    "{dth} {month} {year}": ("5th March 2021", "2021", "March", "5th"),
    "{dth} of {month} {year}": ("5th of March 2021", "2021", "March", "5th"),
    "the {dth} of {month}, {year}": ("the 5th of March, 2021", "2021", "March", "5th"),
    "the {ordinal} of {month} {year}": ("the fifth of March 2021", "2021", "March", "fifth"),
    "{ordinal} of {month}, {year}": ("fifth of March, 2021", "2021", "March", "fifth"),
    "{month} {ordinal}, {year}": ("March fifth, 2021", "2021", "March", "fifth"),
    "{month} the {ordinal}, {year}": ("March the fifth, 2021", "2021", "March", "fifth"),
    "{year}, {month} {d}": ("2021, March 5", "2021", "March", "5"),
    "{weekday}, {d} {month} {year}": ("Friday, 5 March 2021", "2021", "March", "5"),
    "{weekday}, {month} {dth}, {year}": ("Friday, March 5th, 2021", "2021", "March", "5th"),
    "{weekday} the {dth} of {month} {year}": ("Friday the 5th of March 2021", "2021", "March", "5th"),
    "{wkd}, {d} {mon} {year}": ("Fri, 5 Mar 2021", "2021", "Mar", "5"),
    "{wkd} {mon} {d} {year}": ("Fri Mar 5 2021", "2021", "Mar", "5"),
    "{year}年{m}月{d}日": ("2021年3月5日", "2021", "3", "5"),
    "{year}年{mm}月{dd}日": ("2021年03月05日", "2021", "03", "05"),
    "{year} 年 {m} 月 {d} 日": ("2021 年 3 月 5 日", "2021", "3", "5"),
    "{year}年{m}月{d}号": ("2021年3月5号", "2021", "3", "5"),
    "{year}年{m}月{d}號": ("2021年3月5號", "2021", "3", "5"),
    "{yy}年{m}月{d}日": ("21年3月5日", "21", "3", "5"),
    "{m}月{d}日{year}年": ("3月5日2021年", "2021", "3", "5"),
    "{m}月{d}号，{year}年": ("3月5号，2021年", "2021", "3", "5"),
    "{wide_year}年{wide_m}月{wide_d}日": ("２０２１年３月５日", "２０２１", "３", "５"),
    "{year_numerals}年{m_numerals}月{d_numerals}日": ("二〇二一年三月五日", "二〇二一", "三", "五"),
    "{year_numerals}年{m_numerals}月{d_numerals}号": ("二〇二一年三月五号", "二〇二一", "三", "五"),
    "{year_ling}年{m_numerals}月{d_numerals}日": ("二零二一年三月五日", "二零二一", "三", "五"),
    "{year_ling}年{m_numerals}月{d_numerals}号": ("二零二一年三月五号", "二零二一", "三", "五"),
    "公元{year_numerals}年{m_numerals}月{d_numerals}日": ("公元二〇二一年三月五日", "二〇二一", "三", "五"),
    "{m_numerals}月{d_numerals}日{year_numerals}年": ("三月五日二〇二一年", "二〇二一", "三", "五"),
    "{m_numerals}月{d_numerals}号，{year_ling}年": ("三月五号，二零二一年", "二零二一", "三", "五"),
    "{year}年{m}月{d}日星期{xingqi}": ("2021年3月5日星期五", "2021", "3", "5"),
    "{year}年{m}月{d}日（周{xingqi}）": ("2021年3月5日（周五）", "2021", "3", "5"),
    "{year_numerals}年{m_numerals}月{d_numerals}日星期{xingqi}": ("二〇二一年三月五日星期五", "二〇二一", "三", "五"),
    "{year_numerals}年{m_numerals}月{d_numerals}日，礼拜{xingqi}": (
        "二〇二一年三月五日，礼拜五",
        "二〇二一",
        "三",
        "五",
    ),
    "星期{xingqi}，{year}年{m}月{d}日": ("星期五，2021年3月5日", "2021", "3", "5"),
    "周{xingqi}，{m}月{d}日，{year}年": ("周五，3月5日，2021年", "2021", "3", "5"),
}


def stated(form: Form, day: date) -> dict[Field, str]:
    """What a form writes for each field, cut from the text by the spans."""
    spelling = spell(form, day)
    return {field: spelling.text[slice(*spelling.spans[field])] for field in FIELDS}


@pytest.mark.parametrize("form", ALL_FORMS, ids=lambda form: form.template)
def test_every_form_has_its_example(form: Form) -> None:
    text, *fields = EXAMPLES[form.template]
    spelling = spell(form, FRIDAY)
    assert (spelling.text, spelling.iso) == (text, "2021-03-05")
    assert list(stated(form, FRIDAY).values()) == fields


def test_examples_are_those_of_the_table() -> None:
    assert [form.template for form in ALL_FORMS] == list(EXAMPLES)


@pytest.mark.parametrize(
    ("number", "digits", "ordinal", "numerals"),
    [
        (1, "1st", "first", "一"),
        (2, "2nd", "second", "二"),
        (3, "3rd", "third", "三"),
        (10, "10th", "tenth", "十"),
        (11, "11th", "eleventh", "十一"),
        (12, "12th", "twelfth", "十二"),
        (13, "13th", "thirteenth", "十三"),
        (19, "19th", "nineteenth", "十九"),
        (20, "20th", "twentieth", "二十"),
        (21, "21st", "twenty-first", "二十一"),
        (22, "22nd", "twenty-second", "二十二"),
        (23, "23rd", "twenty-third", "二十三"),
        (29, "29th", "twenty-ninth", "二十九"),
        (30, "30th", "thirtieth", "三十"),
        (31, "31st", "thirty-first", "三十一"),
    ],
)
def test_days_in_words(number: int, digits: str, ordinal: str, numerals: str) -> None:
    day = date(1999, 12, number)
    assert stated(Form("English", "{dth} {month} {year}"), day)["day"] == digits
    assert stated(Form("English", "{month} {ordinal}, {year}"), day)["day"] == ordinal
    chinese = stated(Form("Chinese", "{year_numerals}年{m_numerals}月{d_numerals}日"), day)
    assert list(chinese.values()) == ["一九九九", "十二", numerals]


def test_the_rule_for_bare_numbers() -> None:
    """Day, month, year; 00–68 are of this century, 69–99 of the last; other years have no spelling of two digits."""
    short = Form("English", "{d}/{m}/{yy}")
    for year, digits in ((1969, "69"), (1999, "99"), (2000, "00"), (2021, "21"), (2068, "68")):
        assert spell(short, date(year, 3, 5)).text == f"5/3/{digits}"
    for year in (1900, 1921, 1968, 2069, 2099):
        assert not short.can_write(date(year, 3, 5))
        with pytest.raises(ValueError, match="two digits stand for"):
            spell(short, date(year, 3, 5))


def test_no_spelling_has_two_meanings() -> None:
    """Over dates in which day, month and year can be confused: all days up to 12 of years that end alike."""
    meanings: dict[str, set[str]] = {}
    days = [date(year, month, day) for year in (1905, 2005) for month in range(1, 13) for day in range(1, 13)]
    for form in ALL_FORMS:
        for day in days:
            if form.can_write(day):
                found = spell(form, day)
                meanings.setdefault(found.text, set()).add(found.iso)
    assert {text: found for text, found in meanings.items() if len(found) > 1} == {}


def test_splits_are_of_all_dates_and_do_not_meet() -> None:
    found = {split: set(dates_of(split)) for split in SPLITS}
    total = (date(2099, 12, 31) - date(1900, 1, 1)).days + 1
    assert sum(len(days) for days in found.values()) == total == len(set.union(*found.values()))
    for split, share in zip(SPLITS, (0.8, 0.1, 0.1), strict=True):
        # a share of a hash: its standard deviation is below 0.0015 over 73,049 dates, so 0.006 is four of them
        assert len(found[split]) / total == pytest.approx(share, abs=0.006)
    assert [split_of(day) for day in sorted(found["held-out"])[:3]] == ["held-out"] * 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_random_spellings_are_right_and_of_their_split(language: Language) -> None:
    spellings = spellings_of("held-out", language, 500, seed=3)
    assert spellings == spellings_of("held-out", language, 500, seed=3)
    assert spellings != spellings_of("held-out", language, 500, seed=4)
    for found in spellings:
        day = date.fromisoformat(found.iso)
        assert split_of(day) == "held-out"
        plain = spell(found.form, day)
        assert found.text in {case(plain.text) + end for case, _ in CASES for end, _ in ENDS}
        assert found.spans == plain.spans
    assert {found.form for found in spellings} == set(FORMS[language])


def test_the_tokenizer_gives_one_token_a_character() -> None:
    tokenizer = dates.make_tokenizer()
    assert tokenizer.get_vocab_size() == dates.VOCAB_SIZE == len(characters()) + 4
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    text = "三月5th,\t<end> 𝟛Q"
    tokens = tokens_from_text(fast, text)
    assert [text[token.start : token.end] for token in tokens] == list(text)
    assert [token.id for token in tokens if token.text in "\t𝟛Q<>"] == [tokenizer.token_to_id(UNKNOWN)] * 5
    ids = tokenizer.encode("2021-03-05").ids
    assert [(token.text, token.start) for token in tokens_from_ids(fast, ids)] == [
        *zip("2021-03-05", range(10), strict=True)
    ]


def test_a_batch_is_what_the_decoder_reads_and_writes() -> None:
    tokenizer = dates.make_tokenizer()
    spellings = [spell(form, FRIDAY) for form in ALL_FORMS[:20]]
    batch = make_batch(tokenizer, spellings)
    names = np.array(sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__))
    assert batch.target_ids is not None
    assert batch.is_token is not None
    for i, spelling in enumerate(spellings):
        assert "".join(names[batch.ids[i][batch.is_token[i]]]) == spelling.text
        assert set(names[batch.ids[i][~batch.is_token[i]]]) <= {PAD}
        assert list(names[batch.target_ids[i]]) == [START, *spelling.iso]
        written = names[batch.targets[i]]
        assert list(written) == [*spelling.iso, END]
        assert ["".join(written[rows]) for rows in WRITES.values()] == ["2021", "03", "05"]


def test_batches_depend_on_their_number_alone() -> None:
    prepared = dates.prepare(Path())
    one, again, other = (prepared.next_batch(step, 0) for step in (5, 5, 6))
    assert torch.equal(one.ids, again.ids)
    assert not torch.equal(one.targets, other.targets)
    assert prepared.extra_card == {"start_id": 1, "stop_id": 2}
    longest = max(len(spell(form, date(2000, 9, 27)).text) for form in ALL_FORMS)  # a Wednesday, twenty-seventh
    assert longest < dates.MODEL.max_tokens
    assert batch_loss(Transformer(dates.MODEL), one).item() == pytest.approx(np.log(dates.VOCAB_SIZE), rel=0.2)
