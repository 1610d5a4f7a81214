"""Tokens cut from the user's own text.

A token's label is a slice of the pasted text, never the vocabulary's spelling of it: byte-level vocabularies write
" 北" as three pieces of which none is a character. Pieces that share a character share one span, and say which of how
many they are.

This module knows nothing about models, limits or how a label is drawn.
"""

from __future__ import annotations

import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from models.errors import Cancelled, ConfigError, EngineError, UnsupportedModel
from models.token_spans import (
    MAX_GROUP,
    Span,
    bytes_of_pieces,
    character_starts,
    clamped,
    spans_by_bytes,
    whole_characters,
)

Cut = Literal["cut_head", "cut_tail"]
T = TypeVar("T")

NO_OFFSETS = "this model's tokenizer gives no character offsets, so its tokens cannot be tied to the text"
_ENCODING = threading.Lock()  # tokenizers are not made for two threads at once; the rest of the work needs no lock
_LOOK_AGAIN = 4096  # tokens between two looks at whether anybody still waits


ShouldStop = Callable[[], bool]


class TextNotEncodable(EngineError, ValueError):
    """The text has a lone surrogate: half of a character, which no encoding can carry. `position` says where."""

    def __init__(self, position: int) -> None:
        super().__init__(
            f"character {position} of the text is half of a surrogate pair and cannot be encoded; remove it"
        )
        self.position = position


class CharacterUnknown(EngineError, ValueError):
    """The tokenizer has neither a token for a character nor one for unknown ones. `position` says where it is."""

    def __init__(self, position: int, character: str) -> None:
        name = unicodedata.name(character, "without a name")
        super().__init__(
            f"this model's tokenizer has no token for the character U+{ord(character):04X} ({name}), "
            f"character {position} of the text, and none for unknown ones; remove it"
        )
        self.position, self.character = position, character


@dataclass(frozen=True)
class Token:
    """One token. `text` is cut from the user's text by the character offsets [start, end).

    index   position in the sequence, special tokens included
    id      the tokenizer's number for it
    piece   the vocabulary's spelling, e.g. "Ġcat", "##s", "<0xE5>"
    text    the user's characters, with spaces; the piece for special tokens; "" for a space that the tokenizer added
    special added by the tokenizer, not in the text: start == end. A "[SEP]" that the user typed is an ordinary token
    word    number of the word it belongs to, as the tokenizer split the text; None for special tokens and where a
            model wrote the text
    part    1 … parts: which of the pieces that share `text`
    bytes   the piece's own bytes ("E5 8C") where parts > 1 and they are known, else None
    segment 1 if it belongs to the second text of a pair: its offsets then refer to that text
    """

    index: int
    id: int
    piece: str
    text: str
    start: int
    end: int
    special: bool
    word: int | None
    part: int
    parts: int
    bytes: str | None
    segment: int = 0

    def at(self, index: int) -> Token:
        """The same token at another place of the sequence."""
        return replace(self, index=index)


@dataclass(frozen=True)
class Pieces:
    """Consecutive tokens of one text, before their labels are known. `own_bytes` as `bytes_of_pieces` gives them."""

    indices: Sequence[int]
    ids: Sequence[int]
    pieces: Sequence[str]
    words: Sequence[int | None]
    specials: Sequence[bool]
    own_bytes: Sequence[bytes | None]
    segment: int = 0


def tokens_from_text(
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    *,
    text_pair: str | None = None,
    add_special_tokens: bool = True,
    as_target: bool = False,
    should_stop: ShouldStop = lambda: False,
) -> list[Token]:
    """All tokens of the text, never truncated or padded, in order, with offsets inside the text.

    With a second text its tokens follow, as the tokenizer builds pairs: segment 1, offsets inside the second text.
    Special tokens are of the segment that the tokenizer gives them. With `as_target` the text is cut as one to be
    written, which some translation models' tokenizers mark differently.

    Raises:  TextNotEncodable for lone surrogates, CharacterUnknown, UnsupportedModel for tokenizers that give no
             offsets, Cancelled once `should_stop` says so
    """
    _require_encodable(text)
    if text_pair is not None:
        _require_encodable(text_pair)
    texts = {"text_target": text} if as_target else {"text": text, "text_pair": text_pair}
    encoding = _encode(tokenizer, texts, add_special_tokens)
    ids, pieces, words, offsets = encoding.ids, encoding.tokens, encoding.word_ids, encoding.offsets  # each a new list
    specials = [bool(flag) for flag in encoding.special_tokens_mask]
    _go_on(should_stop)
    own_bytes = bytes_of_pieces(tokenizer, pieces)
    _go_on(should_stop)
    segments = _segments(encoding, specials) if text_pair is not None else [0] * len(ids)
    tokens: list[Token] = []
    for segment, cut_from in enumerate((text, text_pair)):
        at = [i for i, own in enumerate(segments) if own == segment]
        if cut_from is None or not at:
            continue
        these = Pieces(
            at, _of(ids, at), _of(pieces, at), _of(words, at), _of(specials, at), _of(own_bytes, at), segment
        )
        spans = _spans(cut_from, these, _of(offsets, at))
        tokens += labelled(cut_from, these, spans, should_stop)
    return sorted(tokens, key=lambda token: token.index)


def builds_pairs(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the tokenizer marks which of two texts each token comes from."""
    if not tokenizer.is_fast:
        return False
    encoding = _encode(tokenizer, {"text": "a", "text_pair": "b"}, True)
    kinds = dict(zip(encoding.sequence_ids, encoding.type_ids, strict=True))
    return kinds.get(0) == 0 and kinds.get(1) == 1


def labelled(text: str, these: Pieces, spans: Sequence[Span], should_stop: ShouldStop = lambda: False) -> list[Token]:
    """The tokens with their labels: those that share a character of the text share its span. Raises Cancelled."""
    tokens: list[Token] = []
    _go_on(should_stop)
    for number, group in enumerate(_groups(spans, these.specials, character_starts(text))):
        if number % _LOOK_AGAIN == 0:
            _go_on(should_stop)
        start, end = spans[group[0]][0], max(spans[i][1] for i in group)
        for part, i in enumerate(group, start=1):
            own = these.own_bytes[i]
            if own is None and spans[i] != (start, end):
                own = text[slice(*spans[i])].encode()
            tokens.append(
                Token(
                    index=these.indices[i],
                    id=these.ids[i],
                    piece=these.pieces[i],
                    text=these.pieces[i] if these.specials[i] else text[start:end],
                    start=start,
                    end=end,
                    special=these.specials[i],
                    word=these.words[i],
                    part=part,
                    parts=len(group),
                    bytes=own.hex(" ").upper() if own and len(group) > 1 else None,
                    segment=these.segment,
                )
            )
    return tokens


def truncate_tokens(tokens: Sequence[Token], limit: int, how: Cut) -> list[Token]:
    """At most `limit` tokens: special tokens at both ends stay, text tokens go from the head or the tail.

    Offsets still refer to the whole text; special tokens move to the edges of what is kept. A character whose pieces
    are cut apart keeps its label and its "2/3".

    Raises:  ConfigError if the special tokens leave no room for text
    """
    if len(tokens) <= limit:
        return list(tokens)
    first = next((i for i, token in enumerate(tokens) if not token.special), len(tokens))
    last = next((i for i in range(len(tokens), first, -1) if not tokens[i - 1].special), first)
    head, body, tail = tokens[:first], tokens[first:last], tokens[last:]
    room = limit - len(head) - len(tail)
    if room < 1:
        raise ConfigError(f"a limit of {limit} tokens leaves no room beside {len(head) + len(tail)} special tokens")
    body = body[-room:] if how == "cut_head" else body[:room]
    left, right = body[0].start, body[-1].end
    kept = [
        *(replace(token, start=left, end=left) for token in head),
        *body,
        *(replace(token, start=right, end=right) for token in tail),
    ]
    return [replace(token, index=i) for i, token in enumerate(kept)]


def _go_on(should_stop: ShouldStop) -> None:
    if should_stop():
        raise Cancelled("stopped while a text was cut into tokens")


def _require_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TextNotEncodable(error.start) from None


def _encode(tokenizer: PreTrainedTokenizerBase, texts: Mapping[str, str | None], add_special_tokens: bool) -> Encoding:
    """The `tokenizers.Encoding` of the text or pair, whole.

    Many checkpoints ship a tokenizer that truncates and pads (MiniLM's to 128): both are switched off in each call.
    """
    if not tokenizer.is_fast:
        raise UnsupportedModel(NO_OFFSETS)
    try:
        return _encoded(tokenizer, texts, add_special_tokens)
    except Exception as error:  # the library's own, of no type of its own, for more than one reason
        for text in filter(None, texts.values()):
            if (at := _first_unknown(tokenizer, text)) is not None:
                raise CharacterUnknown(at, text[at]) from error
        raise


def _encoded(tokenizer: PreTrainedTokenizerBase, texts: Mapping[str, str | None], add_special_tokens: bool) -> Encoding:
    with _ENCODING:
        encoded = tokenizer(
            **texts, add_special_tokens=add_special_tokens, truncation=False, padding=False, verbose=False
        )
    encoding: Encoding = encoded.encodings[0]
    return encoding


def _first_unknown(tokenizer: PreTrainedTokenizerBase, text: str) -> int | None:
    """Where the character is with which the text can no longer be encoded; None if it can be as it is."""

    def fails(length: int) -> bool:
        try:
            _encoded(tokenizer, {"text": text[:length]}, False)
        except Exception:  # noqa: BLE001  see _encode
            return True
        return False

    if not fails(len(text)):
        return None
    return bisect_left(range(1, len(text) + 1), True, key=fails)


def _of(values: Sequence[T], at: Sequence[int]) -> list[T]:
    return [values[i] for i in at]


def _segments(encoding: Encoding, specials: Sequence[bool]) -> list[int]:
    """Which text of a pair each token belongs to; for special tokens, the type that the tokenizer gives them."""
    owners = zip(specials, encoding.type_ids, encoding.sequence_ids, strict=True)
    return [int(kind if special or sequence is None else sequence) for special, kind, sequence in owners]


def _spans(text: str, these: Pieces, offsets: Sequence[Span]) -> list[Span]:
    """Each token's span, inside the text; empty for special tokens, which stand after the token before them.

    The pieces' bytes decide where they spell the text exactly (reported offsets may leave out spaces: RoBERTa, BART),
    otherwise the tokenizer's offsets, grown to whole characters.
    """
    specials = these.specials
    spans = spans_by_bytes(text, specials, these.own_bytes)
    if spans is None:
        spans = whole_characters(text, clamped(len(text), these.pieces, offsets, specials), specials)
    position = 0
    for i, special in enumerate(specials):
        if special:
            spans[i] = (position, position)
        position = max(position, spans[i][1])
    return spans


def _groups(spans: Sequence[Span], specials: Sequence[bool], character_starts: set[int]) -> Iterator[list[int]]:
    """Tokens in order, those together which share a character."""
    group: list[int] = []
    start = end = 0
    for i, (token_start, token_end) in enumerate(spans):
        shares = (token_start < end or token_start not in character_starts) and token_end > token_start
        if group and shares and not specials[i] and end > start and token_end - start <= MAX_GROUP:
            group.append(i)
            end = max(end, token_end)
            continue
        if group:
            yield group
        group, start, end = [i], token_start, token_end
    if group:
        yield group
