"""Tokens cut from the user's own text.

A token's label is a slice of the pasted text, never the vocabulary's spelling of it: byte-level vocabularies write
" 北" as three pieces of which none is a character. Pieces that share a character share one span, and say which of how
many they are.

This module knows nothing about models, limits or how a label is drawn.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, TypeVar

import regex
from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from models.errors import ConfigError, EngineError, UnsupportedModel

Span = tuple[int, int]  # half-open [start, stop), in characters of the text unless said otherwise
Cut = Literal["cut_head", "cut_tail"]
T = TypeVar("T")

MAX_GROUP = (
    32  # characters that pieces may share; real ones have up to about ten code points (an emoji family has seven)
)
SPACE_MARK = "▁"  # U+2581, SentencePiece's spelling of a space
NO_OFFSETS = "this model's tokenizer gives no character offsets, so its tokens cannot be tied to the text"
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")  # SentencePiece's byte fallback


class TextNotEncodable(EngineError, ValueError):
    """The text has a lone surrogate: half of a character, which no encoding can carry. `position` says where."""

    def __init__(self, position: int) -> None:
        super().__init__(
            f"character {position} of the text is half of a surrogate pair and cannot be encoded; remove it"
        )
        self.position = position


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
) -> list[Token]:
    """All tokens of the text, never truncated or padded, in order, with offsets inside the text.

    With a second text its tokens follow, as the tokenizer builds pairs: segment 1, offsets inside the second text.
    Special tokens are of the segment that the tokenizer gives them. With `as_target` the text is cut as one to be
    written, which some translation models' tokenizers mark differently.

    Raises:  TextNotEncodable for lone surrogates, UnsupportedModel for tokenizers that give no offsets
    """
    _require_encodable(text)
    if text_pair is not None:
        _require_encodable(text_pair)
    texts = {"text_target": text} if as_target else {"text": text, "text_pair": text_pair}
    encoding = _encode(tokenizer, texts, add_special_tokens)
    ids, pieces, words, offsets = encoding.ids, encoding.tokens, encoding.word_ids, encoding.offsets  # each a new list
    specials = [bool(flag) for flag in encoding.special_tokens_mask]
    own_bytes = bytes_of_pieces(tokenizer, pieces)
    segments = _segments(encoding, specials) if text_pair is not None else [0] * len(ids)
    tokens: list[Token] = []
    for segment, cut_from in enumerate((text, text_pair)):
        at = [i for i, own in enumerate(segments) if own == segment]
        if cut_from is None or not at:
            continue
        these = Pieces(
            at, _of(ids, at), _of(pieces, at), _of(words, at), _of(specials, at), _of(own_bytes, at), segment
        )
        tokens += labelled(cut_from, these, _spans(cut_from, these, _of(offsets, at)))
    return sorted(tokens, key=lambda token: token.index)


def builds_pairs(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the tokenizer marks which of two texts each token comes from."""
    if not tokenizer.is_fast:
        return False
    encoding = _encode(tokenizer, {"text": "a", "text_pair": "b"}, True)
    kinds = dict(zip(encoding.sequence_ids, encoding.type_ids, strict=True))
    return kinds.get(0) == 0 and kinds.get(1) == 1


def labelled(text: str, these: Pieces, spans: Sequence[Span]) -> list[Token]:
    """The tokens with their labels: those that share a character of the text share its span."""
    tokens: list[Token] = []
    for group in _groups(spans, these.specials, _character_starts(text)):
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
    encoded = tokenizer(**texts, add_special_tokens=add_special_tokens, truncation=False, padding=False, verbose=False)
    encoding: Encoding = encoded.encodings[0]
    return encoding


def _of(values: Sequence[T], at: Sequence[int]) -> list[T]:
    return [values[i] for i in at]


def _segments(encoding: Encoding, specials: Sequence[bool]) -> list[int]:
    """Which text of a pair each token belongs to; for special tokens, the type that the tokenizer gives them."""
    owners = zip(specials, encoding.type_ids, encoding.sequence_ids, strict=True)
    return [int(kind if special or sequence is None else sequence) for special, kind, sequence in owners]


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's spelling of bytes: printable Latin-1 stands for itself, the others follow from U+0100 in order."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}


_ALPHABET = _byte_alphabet()


def bytes_of_pieces(tokenizer: PreTrainedTokenizerBase, pieces: Sequence[str]) -> list[bytes | None]:
    """Each piece's own bytes, None where its spelling does not say.

    Known for tokenizers whose decoder is byte-level (pieces are written in GPT-2's byte alphabet, added tokens in plain
    text) and for byte-fallback pieces such as <0xE5>.
    """
    byte_level = "ByteLevel(" in repr(tokenizer.backend_tokenizer.decoder)
    added = {token.content for token in tokenizer.added_tokens_decoder.values()}
    found: list[bytes | None] = []
    for piece in pieces:
        fallback = _BYTE_PIECE.fullmatch(piece)
        if fallback and not byte_level:
            found.append(bytes.fromhex(fallback[1]))
        elif byte_level and piece in added:
            found.append(piece.encode())
        elif byte_level and all(character in _ALPHABET for character in piece):
            found.append(bytes(_ALPHABET[character] for character in piece))
        else:
            found.append(None)
    return found


def _spans(text: str, these: Pieces, offsets: Sequence[Span]) -> list[Span]:
    """Each token's span, inside the text; empty for special tokens, which stand after the token before them.

    The pieces' bytes decide where they spell the text exactly (reported offsets may leave out spaces: RoBERTa, BART),
    otherwise the tokenizer's offsets.
    """
    specials = these.specials
    spans = spans_by_bytes(text, specials, these.own_bytes) or _clamped(len(text), these.pieces, offsets, specials)
    position = 0
    for i, special in enumerate(specials):
        if special:
            spans[i] = (position, position)
        position = max(position, spans[i][1])
    return spans


def spans_by_bytes(text: str, specials: Sequence[bool], own_bytes: Sequence[bytes | None]) -> list[Span] | None:
    """Spans in characters if the pieces' bytes, one after another, are the text; None if not."""
    data = text.encode()
    byte_starts = list(accumulate((len(character.encode()) for character in text), initial=0))
    position, spans = 0, []
    for special, piece in zip(specials, own_bytes, strict=True):
        if special:
            spans.append((0, 0))
            continue
        if piece is None:
            return None
        put_in = position == 0 and piece.startswith(b" ") and not data.startswith(piece)
        own = piece[1:] if put_in else piece  # some tokenizers put a space before the text
        if not data.startswith(own, position):
            return None
        end = position + len(own)
        first = bisect_right(byte_starts, position) - 1
        spans.append((first, max(first, bisect_left(byte_starts, end))))
        position = end
    return spans if position == len(data) else None


def _clamped(length: int, pieces: Sequence[str], offsets: Sequence[Span], specials: Sequence[bool]) -> list[Span]:
    """The tokenizer's offsets, forced into the text and into order; empty for a space mark that is not in the text."""
    spans: list[Span] = []
    earliest = 0
    for i, (given_start, given_end) in enumerate(offsets):
        start = min(max(given_start, earliest), length)
        end = min(max(given_end, start), length)
        following = offsets[i + 1][0] if i + 1 < len(offsets) and not specials[i + 1] else None
        if pieces[i] == SPACE_MARK and following == given_start:
            end = start  # the next piece begins at the same character: this one was put before it
        if not specials[i]:
            earliest = start
        spans.append((start, end))
    return spans


def _character_starts(text: str) -> set[int]:
    """Where characters as people see them begin (extended grapheme clusters), and the end of the text.

    A line end of two code points counts as two, and so does each code point of a cluster that is longer than MAX_GROUP.
    """
    starts = {len(text)}
    for match in regex.finditer(r"\X", text):
        apart = match.group() == "\r\n" or match.end() - match.start() > MAX_GROUP
        starts.update(range(match.start(), match.end()) if apart else (match.start(),))
    return starts


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
