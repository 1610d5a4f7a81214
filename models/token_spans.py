"""Which characters of a text each token stands for, and where its characters, as people see them, begin.

It takes pieces, their bytes and the offsets that a tokenizer reports; it knows nothing of what a token is otherwise.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import regex
from transformers import PreTrainedTokenizerBase

Span = tuple[int, int]  # half-open [start, stop), in characters of the text unless said otherwise

MAX_GROUP = (
    32  # characters that pieces may share; real ones have up to about ten code points (an emoji family has seven)
)
SPACE_MARK = "▁"  # U+2581, SentencePiece's spelling of a space
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")  # SentencePiece's byte fallback
# \X counts back to the beginning of a row of flag letters for each of them: a flag is matched without it.
_CHARACTER = regex.compile(r"\p{GCB=RI}{2}[\p{GCB=EX}\p{GCB=ZWJ}\p{GCB=SM}]*|\X")


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


def clamped(length: int, pieces: Sequence[str], offsets: Sequence[Span], specials: Sequence[bool]) -> list[Span]:
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


def whole_characters(text: str, spans: Sequence[Span], specials: Sequence[bool]) -> list[Span]:
    """The spans, each grown over what the tokenizer left out of a character that the token has a part of.

    A normalisation that composes reports the first of two code points ("e" of "é"), one that strips accents the letter
    alone. What another token begins with stays that token's.
    """
    characters = list(_characters(text))
    starts = [start for start, _ in characters]
    grown = list(spans)
    own = [i for i, span in enumerate(spans) if not specials[i] and span[0] < span[1]]
    reached = 0  # where the tokens so far end
    for place, i in enumerate(own):
        start, end = spans[i]
        following = spans[own[place + 1]][0] if place + 1 < len(own) else len(text)
        first = characters[bisect_right(starts, start) - 1]
        last = characters[bisect_right(starts, end - 1) - 1]
        start = min(start, max(first[0], reached))
        end = max(end, min(last[1], following))
        grown[i] = (start, end)
        reached = max(reached, end)
    return grown


def character_starts(text: str) -> set[int]:
    """Where characters as people see them begin (extended grapheme clusters), and the end of the text.

    A line end of two code points counts as two, and so does each code point of a cluster that is longer than MAX_GROUP.
    """
    starts = {len(text)}
    for start, end in _characters(text):
        starts.update(range(start, end) if end - start > MAX_GROUP else (start,))
    return starts


def _characters(text: str) -> Iterator[Span]:
    """Extended grapheme clusters in order; a line end of two code points counts as two. Linear in the text's length."""
    for match in _CHARACTER.finditer(text):
        start, end = match.span()
        if match.group() == "\r\n":
            yield (start, start + 1)
            start += 1
        yield (start, end)
