"""Units that are larger than tokens: characters, words, sentences, each a run of whole tokens.

The text is rebuilt from the tokens' own texts and offsets; what no token holds (spaces, for some tokenizers) is a
space. Words and sentences end where Unicode says (UAX #29), and inside Chinese text where a segmenter finds words. A
token that reaches over a boundary is never cut: it belongs to the unit in which its first character lies that is not
a space. This module knows nothing of weights; `models/lens_windows.py` sums them over units.
"""

from __future__ import annotations

import threading
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, get_args

import regex
from uniseg.sentencebreak import SentenceBreak, sentence_boundaries, sentence_break
from uniseg.wordbreak import WordBreak, word_boundaries, word_break

from models.tokens import Token

Unit = Literal["token", "character", "word", "sentence"]
UNITS: tuple[Unit, ...] = get_args(Unit)
MOST_AT_ONCE = 4000  # characters that are looked at together; a sentence that is longer in itself ends there
MOST_CHINESE = 1000  # the same in a run of Chinese characters without a stop
_HAN = regex.compile(r"\p{Han}+")
_PARAGRAPH = regex.compile("[^\r\n\x85\u2028\u2029]*(?:\r\n|[\r\n\x85\u2028\u2029])?")  # each ends all units
_CHINESE = "Chinese"  # a class of our own: words inside a run of them are not Unicode's to find
# Characters of one of these classes never have a boundary between them, and how many they are makes no difference: a
# run of them counts as one character.
_ONE_SENTENCE = frozenset(
    {
        SentenceBreak.SP,
        SentenceBreak.CLOSE,
        SentenceBreak.LOWER,
        SentenceBreak.UPPER,
        SentenceBreak.OLETTER,
        SentenceBreak.NUMERIC,
        SentenceBreak.OTHER,
    }
)
_NO_SENTENCE = frozenset({SentenceBreak.EXTEND, SentenceBreak.FORMAT})  # counts as what it follows (rule SB5)
_ONE_WORD = frozenset({WordBreak.ALETTER, WordBreak.NUMERIC, WordBreak.KATAKANA, WordBreak.WSEGSPACE, _CHINESE})


@dataclass(frozen=True)
class TextUnit:
    """One unit: the tokens first ≤ i < stop.

    text        its characters, the spaces between its tokens included; the piece for a special token
    start, end  its characters in the text (in the second text of a pair for segment 1)
    special     whether it is a special token
    """

    index: int
    text: str
    first: int
    stop: int
    start: int
    end: int
    special: bool
    segment: int = 0


class Segmenter:
    """Cuts texts into units. It loads the dictionary of Chinese words when it meets the first Chinese text.

    Any method may be called from several threads at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chinese: Any = None

    def units(self, tokens: Sequence[Token], unit: Unit) -> tuple[TextUnit, ...]:
        """The units of one side of a run, in order: every token belongs to exactly one.

        Source:  Unicode Standard Annex #29, Text Segmentation; jieba for Chinese words
        """
        owners = self._owners(tokens, unit) if unit in ("word", "sentence") else _own_pieces(tokens)
        firsts = [i for i in range(len(tokens)) if i == 0 or owners[i] != owners[i - 1] or unit == "token"]
        texts = {segment: _rebuilt(tokens, segment) for segment in {token.segment for token in tokens}}
        spans = pairwise([*firsts, len(tokens)])
        return tuple(_unit(index, tokens[first:stop], first, texts) for index, (first, stop) in enumerate(spans))

    def ends(self, text: str, unit: Literal["word", "sentence"]) -> list[int]:
        """Where the words or sentences of a text end, in characters, the last at its end; empty for an empty text."""
        if unit == "sentence":
            return _ends(text, sentence_boundaries, sentence_break, _ONE_SENTENCE, _NO_SENTENCE)
        found = set(_ends(text, word_boundaries, _word_class, _ONE_WORD))
        for run in _HAN.finditer(text):
            found.update(run.start() + end for end in self._chinese_ends(run.group()))
        return sorted(found)

    def _owners(self, tokens: Sequence[Token], unit: Literal["word", "sentence"]) -> list[tuple[int, int]]:
        """For each token what it belongs to: (segment, number of the word or sentence), or a number of its own."""
        owners: list[tuple[int, int]] = []
        sides = {segment: _rebuilt(tokens, segment) for segment in {token.segment for token in tokens}}
        ends = {segment: self.ends(text, unit) for segment, (text, _base) in sides.items()}
        for token in tokens:
            if token.special:
                owners.append((-1, token.index))
                continue
            text, base = sides[token.segment]
            at = token.start - base
            own = text[at : token.end - base]
            at += len(own) - len(own.lstrip())
            if at == token.end - base:  # only spaces: its first character decides
                at = token.start - base
            owners.append((token.segment, bisect_right(ends[token.segment], min(at, max(0, len(text) - 1)))))
        return owners

    def _chinese_ends(self, run: str) -> Iterator[int]:
        """Where the words of a run of Chinese characters end, without its very end."""
        start = 0
        while start < len(run):
            part = run[start : start + MOST_CHINESE]
            words = list(self._dictionary().cut(part)) if len(part) > 1 else [part]
            if "".join(words) != part:
                words = [part]
            if start + len(part) < len(run) and len(words) > 1:
                words.pop()  # it may go on
            for word in words:
                start += len(word)
                if start < len(run):
                    yield start

    def _dictionary(self) -> Any:  # noqa: ANN401  jieba has no types
        with self._lock:
            if self._chinese is None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of its own imports and spellings
                    import jieba  # 60 MB, only where there is Chinese text
                cutter = jieba.Tokenizer()
                # its own way reads a cache from the folder of temporary files, which anybody may write
                cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
                cutter.initialized = True
                self._chinese = cutter
            return self._chinese


def _own_pieces(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """For each token which character it is of: pieces that share a character share a number."""
    owners: list[tuple[int, int]] = []
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else None
        shares = before is not None and not token.special and token.part > 1 and token.part == before.part + 1
        same = before is not None and (before.segment, before.start, before.end) == (
            token.segment,
            token.start,
            token.end,
        )
        owners.append(owners[-1] if shares and same else (0, i))
    return owners


def _unit(index: int, tokens: Sequence[Token], first: int, texts: dict[int, tuple[str, int]]) -> TextUnit:
    head, stop = tokens[0], first + len(tokens)
    start, end = head.start, max(token.end for token in tokens)
    whole, base = texts[head.segment]
    text = head.text if head.special else whole[start - base : end - base]
    return TextUnit(index, text, first, stop, start, end, head.special, head.segment)


def _rebuilt(tokens: Sequence[Token], segment: int) -> tuple[str, int]:
    """The text that these tokens hold, and the place of its first character in the whole text."""
    own = [token for token in tokens if token.segment == segment and not token.special]
    if not own:
        return "", 0
    base = min(token.start for token in own)
    characters = [" "] * (max(token.end for token in own) - base)
    for token in own:
        if len(token.text) == token.end - token.start:
            characters[token.start - base : token.end - base] = token.text
    return "".join(characters), base


def _word_class(character: str) -> object:
    return _CHINESE if _HAN.match(character) else word_break(character)


def _ends(
    text: str,
    boundaries: Callable[[str], Iterable[int]],
    class_of: Callable[[str], Any],
    one: frozenset[Any],
    ignored: frozenset[Any] = frozenset(),
) -> list[int]:
    # The library's time grows with the square of a run of spaces, and with that of the text, so: runs in which nothing
    # can end count once, what never counts is left out, and long texts are cut.
    class_of = lru_cache(maxsize=None)(class_of)
    ends: list[int] = []
    for paragraph in _PARAGRAPH.finditer(text):
        kept: list[int] = []
        before = None
        for i, own in enumerate(map(class_of, paragraph.group())):
            if i and (own in ignored or (own == before and own in one)):
                continue
            kept.append(i)
            before = own
        found = _ends_in_parts([paragraph.group()[i] for i in kept], boundaries)
        places = [*kept, len(paragraph.group())]
        ends += [paragraph.start() + places[end] for end in found]
    return ends


def _ends_in_parts(characters: Sequence[str], boundaries: Callable[[str], Iterable[int]]) -> Iterator[int]:
    # A part goes on where the last but one of its units ends, so that what follows an end is always seen with it.
    first = 0
    while first < len(characters):
        part = characters[first : first + MOST_AT_ONCE]
        found = [end for end in boundaries("".join(part)) if end]
        if first + len(part) < len(characters) and len(found) > 2:
            found = found[:-2]
        yield from (first + end for end in found)
        first += found[-1]
