"""Which tokens of two runs belong together: by characters of one text, by equal stretches of two; folded matrices."""

from __future__ import annotations

import time
from collections.abc import Callable
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from models import alignment
from models.alignment import Alignment, Columns, align, fold, stretches
from models.protocol import Span
from models.tokens import Token, tokens_from_text
from tests.unit.test_tokens import minilm, smollm2

TEXT = "When Mary and John went, 北京 was cold."


def token(index: int, text: str, start: int, *, special: bool = False, segment: int = 0) -> Token:
    end = start if special else start + len(text)
    return Token(index, 0, text, text, start, end, special, None, 1, 1, None, segment)


def cut_at(
    text: str, places: list[int], *, head: list[str] | None = None, tail: list[str] | None = None
) -> list[Token]:
    """The text cut at these places, special tokens at its ends."""
    edges = sorted({0, *places, len(text)})
    inner = [(text[start:stop], start, False) for start, stop in pairwise(edges)]
    ends = [(name, 0, True) for name in head or []], [(name, len(text), True) for name in tail or []]
    parts = enumerate([*ends[0], *inner, *ends[1]])
    return [token(index, part, start, special=special) for index, (part, start, special) in parts]


def spans(found: Alignment) -> list[tuple[Span, Span]]:
    return [(segment.a, segment.b) for segment in found.segments]


def texts(found: Alignment) -> list[str]:
    return [segment.text for segment in found.segments]


def assert_sound(found: Alignment, a: list[Token], b: list[Token]) -> None:
    """In order, inside, never overlapping."""
    for side, tokens in (("a", a), ("b", b)):
        ranges = [getattr(segment, side) for segment in found.segments]
        assert all(0 <= start < stop <= len(tokens) for start, stop in ranges)
        assert all(one[1] <= other[0] for one, other in pairwise(ranges))


def test_pieces_of_characters_are_the_same_only_byte_by_byte() -> None:
    def pieces(*cut: str) -> list[Token]:
        parts = [(at, data) for at, data in enumerate(cut, 1)]
        return [Token(at - 1, 0, "?", " ☕", 0, 2, False, None, at, len(cut), data, 0) for at, data in parts]

    ours = [*pieces("20 E2", "98", "95"), token(3, "c", 2)]
    cut_otherwise, cut_alike = pieces("E2", "98", "95"), pieces("20 E2", "98", "95")
    for theirs, shared in ((cut_otherwise, [(1, 2), (2, 3)]), (cut_alike, [(0, 1), (1, 2), (2, 3)])):
        found = align(ours, [*theirs, token(3, "b", 2)])
        assert found.by == "tokens"
        assert [segment.a for segment in found.segments] == shared


def test_the_same_tokens_give_one_segment_each() -> None:
    tokens = cut_at(TEXT, [4, 9, 13, 25, 27], head=["<s>"], tail=["</s>"])
    found = align(tokens, tokens)
    assert found.by == "characters"
    assert spans(found) == [((i, i + 1), (i, i + 1)) for i in range(len(tokens))]
    assert texts(found) == [one.text for one in tokens]
    assert [segment.special for segment in found.segments] == [one.special for one in tokens]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, len(TEXT) - 1), max_size=20),
    st.lists(st.integers(1, len(TEXT) - 1), max_size=20),
)
def test_one_text_is_cut_where_both_cut_it(ours: list[int], theirs: list[int]) -> None:
    a, b = cut_at(TEXT, ours, head=["<s>"]), cut_at(TEXT, theirs)
    found = align(a, b)
    assert_sound(found, a, b)
    shared = sorted({0, *(set(ours) & set(theirs)), len(TEXT)})
    assert texts(found) == [TEXT[start:stop] for start, stop in pairwise(shared)]
    for segment in found.segments:
        assert "".join(one.text for one in a[slice(*segment.a)]) == segment.text
        assert "".join(one.text for one in b[slice(*segment.b)]) == segment.text


def test_spaces_that_one_side_leaves_out_belong_to_the_next_token() -> None:
    a = [token(0, "the", 0), token(1, " cat", 3), token(2, " s", 7), token(3, "at", 9)]
    b = [token(0, "the", 0), token(1, "cat", 4), token(2, "sat", 8)]
    found = align(a, b)
    assert found.by == "characters"
    assert spans(found) == [((0, 1), (0, 1)), ((1, 2), (1, 2)), ((2, 4), (2, 3))]


def test_what_one_side_leaves_out_within_a_segment_is_a_space_of_its_text() -> None:
    apart = [token(0, "the", 0), token(1, "cat", 4)]
    whole = [token(0, "the cat", 0)]
    assert texts(align(apart, whole)) == texts(align(whole, apart)) == ["the cat"]


def test_a_token_without_characters_lies_across_no_place() -> None:
    """As the space that some tokenizers put before a text: it belongs to the token after it."""
    a = [token(0, "the", 0), token(1, "", 3), token(2, " cat", 3)]
    b = [token(0, "the", 0), token(1, " cat", 3)]
    assert spans(align(a, b)) == [((0, 1), (0, 1)), ((1, 3), (1, 2))]


def test_pieces_of_one_character_stay_together_unless_both_have_the_same() -> None:
    pieces = [Token(i, 0, f"<{i}>", "北", 0, 1, False, 0, i + 1, 3, None) for i in range(3)]
    whole = [token(0, "北", 0)]
    assert spans(align(pieces, whole)) == [((0, 3), (0, 1))]
    assert texts(align(pieces, whole)) == ["北"]
    assert spans(align(pieces, pieces)) == [((i, i + 1), (i, i + 1)) for i in range(3)]


def test_special_tokens_align_by_their_place_and_not_by_name() -> None:
    a = cut_at("the cat", [3], head=["[CLS]"], tail=["[SEP]"])
    b = cut_at("the cat", [3], head=["<s>"])
    found = align(a, b)
    assert spans(found) == [((0, 1), (0, 1)), ((1, 2), (1, 2)), ((2, 3), (2, 3))]
    assert found.segments[0].special
    assert texts(found)[0] == "[CLS] / <s>"


def test_a_cut_text_aligns_where_both_have_it() -> None:
    whole = cut_at("the cat sat on", [3, 7, 11])
    rest = [token(0, " sat", 7), token(1, " on", 11)]
    found = align(whole, rest)
    assert found.by == "characters"
    assert spans(found) == [((2, 3), (0, 1)), ((3, 4), (1, 2))]


def test_different_texts_align_by_equal_stretches() -> None:
    a = cut_at("the cat saw the dog", [3, 7, 11, 15], head=["<s>"])
    b = cut_at("a bird saw the dog run", [1, 6, 10, 14, 18], head=["<s>"])
    found = align(a, b)
    assert found.by == "tokens"
    assert_sound(found, a, b)
    assert texts(found) == ["<s>", " saw", " the", " dog"]


def test_a_second_text_aligns_with_the_second_text() -> None:
    first, second = cut_at("one two", [3]), cut_at("one three", [3])
    pair = [*first, *(token(len(first) + at, one.text, one.start, segment=1) for at, one in enumerate(second))]
    assert spans(align(pair, first)) == [((0, 1), (0, 1)), ((1, 2), (1, 2))]
    found = align(pair, pair)
    assert spans(found) == [((i, i + 1), (i, i + 1)) for i in range(4)]
    assert found.by == "characters"


def test_nothing_in_common_gives_no_segment() -> None:
    assert align(cut_at("aa bb", [2]), cut_at("cc dd", [2])).segments == ()


def test_a_long_text_without_words_of_its_own_ends_in_time() -> None:
    a, b = cut_at("x" * 4096, list(range(4096))), cut_at("x" * 4000 + "y" * 96, list(range(4096)))
    started = time.perf_counter()
    found = align(a, b)
    assert time.perf_counter() - started < 5
    assert len(found.segments) == 4000


def test_tokens_that_are_everywhere_end_in_time() -> None:
    """Each stretch is one token, so difflib would search the rest anew two thousand times: 37 seconds."""
    a, b = (cut_at(f"c{other}" * 1000, list(range(2000))) for other in "AB")
    started = time.perf_counter()
    found = align(a, b)
    assert time.perf_counter() - started < 10  # 1.5 s on one thread of a busy machine
    assert_sound(found, a, b)
    assert set(texts(found)) == {"c"}


@settings(max_examples=200, deadline=None)
@given(st.text("abc", min_size=1, max_size=30), st.text("abd", min_size=1, max_size=30))
def test_what_there_are_steps_for_is_what_difflib_finds(a: str, b: str) -> None:
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    expected = {(block.a + at, block.b + at) for block in blocks for at in range(block.size)}
    found = list(stretches(a, b))
    assert {(ours + at, theirs + at) for ours, theirs, size in found for at in range(size)} == expected
    assert max((size for _, _, size in found), default=0) == (found[0][2] if found else 0), "the longest first"


def test_steps_that_run_out_leave_no_end_of_a_text_out(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = "abcdef-------ghijkl", "abcdef+++-------+++ghijkl"
    monkeypatch.setattr(alignment, "MOST_STEPS", 0)
    assert list(stretches(a, b)) == []
    once = sum(1 + b.count(letter) for letter in a)
    monkeypatch.setattr(alignment, "MOST_STEPS", once + 2 * (6 + 6))  # the dashes, then what lies on either side
    assert sorted(stretches(a, b)) == [(0, 0, 6), (6, 9, 7), (13, 19, 6)]


@pytest.fixture(scope="module")
def real() -> tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]:
    """Byte-level pieces with their spaces, and WordPiece without."""
    return smollm2(), minilm()


@pytest.mark.parametrize("text", [TEXT, "ok 💩💩 नमस्ते", "Tokenization of\r\n 1E1  2A", "İstanbul ﬁ ½ Ａｂ"])
def test_real_tokenizers_agree_on_the_characters(
    text: str, real: tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]
) -> None:
    a, b = (tokens_from_text(one, text) for one in real)
    found = align(a, b)
    assert found.by == "characters"
    assert_sound(found, a, b)
    covered = "".join(segment.text for segment in found.segments if not segment.special)
    assert "".join(covered.split()) == "".join(text.split())


def test_rows_still_sum_to_one_when_folded() -> None:
    ours, theirs = [4, 6, 9, 13, 20], [4, 9, 11, 20]
    a, b = cut_at(TEXT, ours), cut_at(TEXT, theirs)
    segments = align(a, b).segments
    weights = torch.rand(len(a), len(a)).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    hidden = weights.masked_fill(torch.ones_like(weights).triu(1) > 0, torch.nan)
    spans = [one.a for one in segments]
    folded = fold(reading(hidden), spans, Columns(spans), 2)
    torch.testing.assert_close(folded.nansum(-1), torch.ones(len(segments)).double(), atol=1e-6, rtol=0)
    assert folded[0, 1:].isnan().all()  # nothing of it is visible
    by_hand = weights[1:3, 3:5].sum(-1).mean()  # the second segment's two tokens as queries, and keys of the fourth
    rows, cols = [(1, 3)], [(3, 5)]
    assert float(fold(reading(weights), rows, Columns(cols), 9)[0, 0]) == pytest.approx(float(by_hand))


def reading(matrix: Tensor, asked: list[Span] | None = None) -> Callable[[Span, Span], Tensor]:
    """What reads rectangles of a matrix, noting the rows that are asked for."""

    def read(rows: Span, cols: Span) -> Tensor:
        if asked is not None:
            asked.append(rows)
        return matrix[slice(*rows), slice(*cols)]

    return read


def test_a_fold_is_read_in_parts_and_without_what_lies_between() -> None:
    matrix = torch.rand(50, 8, dtype=torch.float64).masked_fill(torch.rand(50, 8) < 0.3, torch.nan)
    rows, cols = [(2, 9), (9, 10), (12, 13), (40, 44)], [(1, 2), (3, 6), (6, 8)]
    seen = [[matrix[slice(*down), slice(*across)] for across in cols] for down in rows]
    expected = torch.tensor(
        [[float("nan") if bool(one.isnan().all()) else float(one.nansum()) / len(one) for one in line] for line in seen]
    )
    for most, reads in ((3, [(2, 5), (5, 8), (8, 10), (12, 13), (40, 43), (43, 44)]), (12, [(2, 13), (40, 44)])):
        asked: list[Span] = []
        found = fold(reading(matrix, asked), rows, Columns(cols), most)
        torch.testing.assert_close(found.float(), expected, rtol=1e-6, atol=1e-6, equal_nan=True)
        assert asked == reads
