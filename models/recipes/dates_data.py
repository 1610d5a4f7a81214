"""Dates in many English and Chinese spellings, with where in the spelling year, month and day stand.

The spellings are a table of forms: what stands between braces is a part of the date (PARTS), the rest is written as it
is. Which split a date belongs to is decided by a hash of the date: a held-out date occurs in training in no spelling.

Numbers alone can be read in several ways. Here one rule holds (RULE). This module knows nothing of models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from string import Formatter
from typing import Literal, TypeVar

import numpy as np

Drawn = TypeVar("Drawn")
Field = Literal["year", "month", "day"]
Language = Literal["English", "Chinese"]
Split = Literal["training", "validation", "held-out"]

FIELDS: tuple[Field, ...] = ("year", "month", "day")
LANGUAGES: tuple[Language, ...] = ("English", "Chinese")
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
TWO_DIGIT_YEARS = range(1969, 2069)  # 69–99 are 1969–1999, 00–68 are 2000–2068, as POSIX's strptime reads %y
RULE = (
    "Numbers with the year at the end are day, month, year: 5/3/21 is 5 March. "
    "A year of two digits from 00 to 68 is 2000 to 2068, from 69 to 99 it is 1969 to 1999."
)
PARTS_OF_SPLITS = 10  # of which one is held out, one for validation

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_ORDINALS = (
    *_UNITS,
    *("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth"),
    *("fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
    *("twentieth", *(f"twenty-{unit}" for unit in _UNITS)),
    *("thirtieth", "thirty-first"),
)
_NUMERALS = "〇一二三四五六七八九"
_WIDE = str.maketrans("0123456789", "０１２３４５６７８９")


def _ordinal_ending(number: int) -> str:
    return "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _in_numerals(number: int) -> str:
    # 一 … 三十一
    tens, units = divmod(number, 10)
    ten = {0: "", 1: "十"}.get(tens, f"{_NUMERALS[tens]}十")
    return ten + (_NUMERALS[units] if units else "")


def _year_in_numerals(day: date) -> str:
    return "".join(_NUMERALS[int(digit)] for digit in str(day.year))


@dataclass(frozen=True)
class Part:
    """A part of a date in a form: the field that it states (None for the day of the week), and how it is written."""

    field: Field | None
    write: Callable[[date], str]


PARTS: dict[str, Part] = {
    "year": Part("year", lambda day: str(day.year)),
    "yy": Part("year", lambda day: f"{day.year % 100:02}"),
    "m": Part("month", lambda day: str(day.month)),
    "mm": Part("month", lambda day: f"{day.month:02}"),
    "d": Part("day", lambda day: str(day.day)),
    "dd": Part("day", lambda day: f"{day.day:02}"),
    "month": Part("month", lambda day: _MONTHS[day.month - 1]),
    "mon": Part("month", lambda day: _MONTHS[day.month - 1][:3]),
    "dth": Part("day", lambda day: f"{day.day}{_ordinal_ending(day.day)}"),
    "ordinal": Part("day", lambda day: _ORDINALS[day.day - 1]),
    "weekday": Part(None, lambda day: _WEEKDAYS[day.weekday()]),
    "wkd": Part(None, lambda day: _WEEKDAYS[day.weekday()][:3]),
    "year_numerals": Part("year", _year_in_numerals),
    "year_ling": Part("year", lambda day: _year_in_numerals(day).replace("〇", "零")),
    "m_numerals": Part("month", lambda day: _in_numerals(day.month)),
    "d_numerals": Part("day", lambda day: _in_numerals(day.day)),
    "xingqi": Part(None, lambda day: "一二三四五六日"[day.weekday()]),
    "wide_year": Part("year", lambda day: str(day.year).translate(_WIDE)),
    "wide_m": Part("month", lambda day: str(day.month).translate(_WIDE)),
    "wide_d": Part("day", lambda day: str(day.day).translate(_WIDE)),
}

ENGLISH = (
    "{year}-{mm}-{dd}",
    "{year}-{m}-{d}",
    "{year}/{m}/{d}",
    "{year}.{mm}.{dd}",
    "{d}/{m}/{year}",
    "{dd}/{mm}/{year}",
    "{d}/{m}/{yy}",
    "{dd}/{mm}/{yy}",
    "{d}.{m}.{year}",
    "{month} {d}, {year}",
    "{month} {d} {year}",
    "{month} {dth}, {year}",
    "{month} {dth} {year}",
    "{mon} {d}, {year}",
    "{mon}. {d}, {year}",
    "{d} {month} {year}",
    "{d} {mon} {year}",
    "{d}-{mon}-{year}",
    "{dth} {month} {year}",
    "{dth} of {month} {year}",
    "the {dth} of {month}, {year}",
    "the {ordinal} of {month} {year}",
    "{ordinal} of {month}, {year}",
    "{month} {ordinal}, {year}",
    "{month} the {ordinal}, {year}",
    "{year}, {month} {d}",
    "{weekday}, {d} {month} {year}",
    "{weekday}, {month} {dth}, {year}",
    "{weekday} the {dth} of {month} {year}",
    "{wkd}, {d} {mon} {year}",
    "{wkd} {mon} {d} {year}",
)
CHINESE = (
    "{year}年{m}月{d}日",
    "{year}年{mm}月{dd}日",
    "{year} 年 {m} 月 {d} 日",
    "{year}年{m}月{d}号",
    "{year}年{m}月{d}號",
    "{yy}年{m}月{d}日",
    "{m}月{d}日{year}年",
    "{m}月{d}号，{year}年",
    "{wide_year}年{wide_m}月{wide_d}日",
    "{year_numerals}年{m_numerals}月{d_numerals}日",
    "{year_numerals}年{m_numerals}月{d_numerals}号",
    "{year_ling}年{m_numerals}月{d_numerals}日",
    "{year_ling}年{m_numerals}月{d_numerals}号",
    "公元{year_numerals}年{m_numerals}月{d_numerals}日",
    "{m_numerals}月{d_numerals}日{year_numerals}年",
    "{m_numerals}月{d_numerals}号，{year_ling}年",
    "{year}年{m}月{d}日星期{xingqi}",
    "{year}年{m}月{d}日（周{xingqi}）",
    "{year_numerals}年{m_numerals}月{d_numerals}日星期{xingqi}",
    "{year_numerals}年{m_numerals}月{d_numerals}日，礼拜{xingqi}",
    "星期{xingqi}，{year}年{m}月{d}日",
    "周{xingqi}，{m}月{d}日，{year}年",
)


@dataclass(frozen=True)
class Form:
    """One way of writing a date."""

    language: Language
    template: str

    def can_write(self, day: date) -> bool:
        """False for a year of another century where the form has two digits for it."""
        return "{yy}" not in self.template or day.year in TWO_DIGIT_YEARS


FORMS: dict[Language, tuple[Form, ...]] = {
    "English": tuple(Form("English", template) for template in ENGLISH),
    "Chinese": tuple(Form("Chinese", template) for template in CHINESE),
}

# How letters are written and what may follow the date, each with how many of ten spellings have it.
CASES: tuple[tuple[Callable[[str], str], int], ...] = ((str, 7), (str.lower, 2), (str.upper, 1))
ENDS: tuple[tuple[str, int], ...] = (("", 7), (".", 1), ("。", 1), ("\n", 1))


@dataclass(frozen=True)
class Spelling:
    """A date as somebody might write it; spans are half-open, in characters: what states the field, no 年 or comma."""

    text: str
    iso: str
    spans: dict[Field, tuple[int, int]]
    form: Form


def spell(form: Form, day: date, case: Callable[[str], str] = str, end: str = "") -> Spelling:
    """Write a date in a form. Raises ValueError if the form cannot write it."""
    if not form.can_write(day):
        raise ValueError(f"{form.template} cannot write {day}: two digits stand for {TWO_DIGIT_YEARS}")
    text, spans = "", dict[Field, tuple[int, int]]()
    for literal, name, _, _ in Formatter().parse(form.template):
        text += literal
        if name is None:
            continue
        part = PARTS[name]
        written = part.write(day)
        if part.field is not None:
            spans[part.field] = (len(text), len(text) + len(written))
        text += written
    return Spelling(case(text) + end, day.isoformat(), spans, form)  # no case changes how many characters there are


def split_of(day: date) -> Split:
    """Tell which split a date belongs to, by a hash of the date alone: eight parts of ten are for training."""
    number = int.from_bytes(hashlib.sha256(day.isoformat().encode()).digest()[:8], "big") % PARTS_OF_SPLITS
    return "held-out" if number == 0 else "validation" if number == 1 else "training"


@cache
def dates_of(split: Split) -> tuple[date, ...]:
    """All dates of a split, in order."""
    days = (FIRST + timedelta(i) for i in range((LAST - FIRST).days + 1))
    return tuple(day for day in days if split_of(day) == split)


def random_spelling(random: np.random.Generator, days: Sequence[date], language: Language) -> Spelling:
    """Draw a form, then a date that it can write, then case and end."""
    form = FORMS[language][int(random.integers(len(FORMS[language])))]
    day = days[int(random.integers(len(days)))]
    while not form.can_write(day):
        day = days[int(random.integers(len(days)))]
    return spell(form, day, _draw(random, CASES), _draw(random, ENDS))


def spellings_of(split: Split, language: Language, count: int, seed: int) -> list[Spelling]:
    """Random spellings of dates of a split; the same for the same seed."""
    random = np.random.default_rng((seed, LANGUAGES.index(language)))
    return [random_spelling(random, dates_of(split), language) for _ in range(count)]


def characters() -> list[str]:
    """Every character that occurs in some spelling, in order. The days of 2000 have them all: they count up to 31."""
    days = [date(2000, 1, 1) + timedelta(i) for i in range(366)]
    texts = {spell(form, day).text for language in LANGUAGES for form in FORMS[language] for day in days}
    written = {character for text in texts for case, _ in CASES for character in case(text)}
    return sorted(written.union(*(end for end, _ in ENDS)))


def _draw(random: np.random.Generator, choices: Sequence[tuple[Drawn, int]]) -> Drawn:
    number = int(random.integers(sum(share for _, share in choices)))
    for choice, share in choices:
        number -= share
        if number < 0:
            return choice
    raise AssertionError("shares add up to what was drawn from")
