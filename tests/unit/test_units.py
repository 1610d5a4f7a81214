"""Units cover the tokens exactly once, and end where Unicode and a reader of Chinese expect it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uniseg.sentencebreak import sentence_boundaries, sentence_break
from uniseg.wordbreak import word_boundaries, word_break

from models import units
from models.tokens import Token, tokens_from_text
from models.units import UNITS, Segmenter, TextUnit, Unit
from tests.fakes import fake_tokens
from tests.unit.test_tokens import HARD_TEXTS, byte_fallback, byte_level, decomposing

SEGMENTER = Segmenter()
TOKENIZERS = {
    "byte_level": byte_level(),
    "trimmed": byte_level(trimmed=True),
    "byte_fallback": byte_fallback(),
    "decomposing": decomposing(),
}
LETTERS = st.text(
    st.sampled_from("aB1 .,!?\n\r\t\"')。！？，今天好說x\u0301\u200d\u00ad\u2028\u3000👩💻🇨🇳й…:;-"), max_size=40
)


def texts_of(found: tuple[TextUnit, ...]) -> list[str]:
    return [unit.text for unit in found]


def of(text: str, unit: Unit) -> list[str]:
    """The units of a text of which every character is a token."""
    tokens = [Token(i, 9, c, c, i, i + 1, False, None, 1, 1, None) for i, c in enumerate(text)]
    return texts_of(SEGMENTER.units(tokens, unit))


def check(tokens: list[Token], text: str) -> None:
    """What must hold of the units of any tokens of any text."""
    for unit in UNITS:
        found = SEGMENTER.units(tokens, unit)
        assert [one.index for one in found] == list(range(len(found)))
        covered = [i for one in found for i in range(one.first, one.stop)]
        assert covered == list(range(len(tokens)))  # each token once, in order: a piece is never split
        for one in found:
            inside = tokens[one.first : one.stop]
            assert one.special == any(token.special for token in inside)
            assert not one.special or len(inside) == 1
            assert len({token.segment for token in inside}) == 1
            assert one.special or one.start <= one.end <= len(text)
    characters = SEGMENTER.units(tokens, "character")
    for before, after in pairwise(characters):
        assert tokens[before.stop - 1].part == tokens[before.stop - 1].parts, "a character was cut"
        assert after.first == before.stop


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("text", HARD_TEXTS)
def test_units_of_hard_texts_cover_the_tokens_once(kind: str, text: str) -> None:
    check(tokens_from_text(TOKENIZERS[kind], text), text)


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=60, deadline=None)
@given(text=LETTERS)
def test_units_of_any_text_cover_the_tokens_once(kind: str, text: str) -> None:
    check(tokens_from_text(TOKENIZERS[kind], text), text)


@settings(max_examples=300, deadline=None)
@given(text=LETTERS)
def test_counting_runs_once_finds_the_same_ends(text: str) -> None:
    ends = list(sentence_boundaries(text))
    assert SEGMENTER.ends(text, "sentence") == [end for end in ends if end]
    without_chinese = "".join(c for c in text if c not in "今天好說")
    ends = list(word_boundaries(without_chinese))
    assert SEGMENTER.ends(without_chinese, "word") == [end for end in ends if end]
    assert units._ends(text, sentence_boundaries, sentence_break, frozenset()) == [
        end for end in sentence_boundaries(text) if end
    ]
    assert units._ends(text, word_boundaries, word_break, frozenset())[-1:] == [len(text)][: len(text)]


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("aB1 .!?)。今\u0301"), min_size=80, max_size=200))
def test_a_text_in_parts_has_the_same_ends(text: str) -> None:
    """Where no sentence is as long as a part, parts change nothing."""
    ends = [end for end in sentence_boundaries(text) if end]
    if max(after - before for before, after in pairwise([0, *ends])) <= 20:
        with pytest.MonkeyPatch.context() as planted:
            planted.setattr(units, "MOST_AT_ONCE", 60)
            assert SEGMENTER.ends(text, "sentence") == ends


def test_a_wrong_merge_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_ONE_SENTENCE", units._ONE_SENTENCE | {sentence_break(".")})
    assert SEGMENTER.ends("A..B", "sentence") != [end for end in sentence_boundaries("A..B") if end]


def test_words_are_unicodes() -> None:
    assert of("Can't pay 3.14, sir.", "word") == ["Can't", " ", "pay", " ", "3.14", ",", " ", "sir", "."]
    assert of("ab\r\ncd  e", "word") == ["ab", "\r\n", "cd", "  ", "e"]
    assert of("مرحبا بالعالم", "word") == ["مرحبا", " ", "بالعالم"]
    assert of("cafe\u0301 👩\u200d💻🇨🇳🇨🇳", "word") == ["cafe\u0301", " ", "👩\u200d💻", "🇨🇳", "🇨🇳"]
    assert of("   ", "word") == ["   "]
    assert of("", "word") == []


def test_words_of_chinese_are_a_readers() -> None:
    assert of("我爱北京天安门，真的。", "word") == ["我", "爱", "北京", "天安门", "，", "真的", "。"]
    assert of("用GPT写信，3号", "word") == ["用", "GPT", "写信", "，", "3", "号"]


def test_sentences_end_at_the_stops_of_both_scripts() -> None:
    assert of("It is 3.5 m. Go! (No.) Why?", "sentence") == ["It is 3.5 m. ", "Go! ", "(No.) ", "Why?"]
    assert of("他说：“你好！”真的？是的。", "sentence") == ["他说：“你好！”", "真的？", "是的。"]
    assert of("one\r\ntwo\nthree", "sentence") == ["one\r\n", "two\n", "three"]


def test_a_token_over_a_boundary_stays_whole_where_its_first_letter_lies() -> None:
    spans = [("A", 0, 1), (" cat.", 1, 6), (" So", 6, 9), (" it", 9, 12)]
    tokens = [Token(i, 9, t, t, a, b, False, None, 1, 1, None) for i, (t, a, b) in enumerate(spans)]
    assert texts_of(SEGMENTER.units(tokens, "word")) == ["A", " cat.", " So", " it"]
    assert texts_of(SEGMENTER.units(tokens, "sentence")) == ["A cat.", " So it"]
    merged = [
        Token(0, 9, "x", "我。", 0, 2, False, None, 1, 1, None),
        Token(1, 9, "x", "他", 2, 3, False, None, 1, 1, None),
    ]
    assert texts_of(SEGMENTER.units(merged, "word")) == ["我。", "他"]


def test_pieces_of_one_character_are_one_unit_and_special_tokens_their_own() -> None:
    tokens = fake_tokens("ok 💩北京")
    assert [(one.text, one.stop - one.first, one.special) for one in SEGMENTER.units(tokens, "character")] == [
        ("<s>", 1, True),
        ("ok", 1, False),
        (" ", 1, False),
        ("💩", 4, False),
        ("北", 3, False),
        ("京", 3, False),
    ]
    assert [(one.text, one.stop - one.first) for one in SEGMENTER.units(tokens, "word")][-1] == ("北京", 6)
    assert len(SEGMENTER.units(tokens, "token")) == len(tokens)


def test_what_no_token_holds_is_a_space_and_a_pair_is_two_texts() -> None:
    spans = [("so", 0, 2, 0), ("it", 3, 5, 0), (".", 5, 6, 0), ("No", 0, 2, 1), ("no", 2, 4, 1)]
    tokens = [Token(i, 9, t, t, a, b, False, None, 1, 1, None, s) for i, (t, a, b, s) in enumerate(spans)]
    assert texts_of(SEGMENTER.units(tokens, "sentence")) == ["so it.", "Nono"]
    assert texts_of(SEGMENTER.units(tokens, "word")) == ["so", "it", ".", "Nono"]
    assert [one.segment for one in SEGMENTER.units(tokens, "sentence")] == [0, 1]


def test_a_text_whose_head_was_cut_keeps_its_places() -> None:
    tokens = [
        Token(i, 9, t, t, a, b, False, None, 1, 1, None)
        for i, (t, a, b) in enumerate([("b", 900, 901), ("c", 901, 902)])
    ]
    (unit,) = SEGMENTER.units(tokens, "word")
    assert (unit.text, unit.start, unit.end) == ("bc", 900, 902)


def test_a_long_run_of_chinese_is_cut_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "我爱北京天安门" * 4
    whole = SEGMENTER.ends(text, "word")
    monkeypatch.setattr(units, "MOST_CHINESE", 9)
    assert SEGMENTER.ends(text, "word") == whole


@pytest.mark.parametrize(
    ("text", "unit"),
    [("a.1, 0.25, ", "sentence"), ("\u00ad ", "sentence"), ("龘靐齉", "word")],
    ids=["ones", "soft", "rare"],
)
def test_what_is_looked_at_together_is_bounded(
    text: str, unit: Literal["word", "sentence"], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def noted(part: str) -> list[int]:
        seen.append(len(part))
        return list(sentence_boundaries(part))

    monkeypatch.setattr(units, "sentence_boundaries", noted)
    cut = SEGMENTER._dictionary().cut

    def cut_noted(part: str) -> Any:  # noqa: ANN401  jieba has no types
        seen.append(len(part))
        return cut(part)

    monkeypatch.setattr(SEGMENTER._dictionary(), "cut", cut_noted)
    assert SEGMENTER.ends(text * 1500, unit)[-1] == len(text) * 1500
    assert 0 < max(seen) <= (1000 if unit == "word" else 4000)
    if text == "\u00ad ":
        assert max(seen) == 2  # spaces count once, what is inside them not at all


def test_many_spaces_take_no_time() -> None:
    assert SEGMENTER.ends("a. " + " " * 200_000 + "B", "sentence") == [200_003, 200_004]
