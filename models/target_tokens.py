"""Tokens of a text that a model wrote: there is no text to cut them from until their ids are decoded.

The label of a token is a slice of the decoded text, as for a text that a user pasted. This module knows nothing of how
a model writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from models.token_spans import Span, bytes_of_pieces, spans_by_bytes
from models.tokens import Pieces, Token, labelled

SCRAP = "\N{REPLACEMENT CHARACTER}"  # what bytes that are no character decode to


def special_token(tokenizer: PreTrainedTokenizerBase, token_id: int) -> Token:
    """A token that stands for no text, such as the one with which a decoder begins; index 0."""
    piece = str(tokenizer.convert_ids_to_tokens(token_id))
    return Token(0, token_id, piece, piece, 0, 0, True, None, 1, 1, None)


def tokens_from_ids(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> list[Token]:
    """Tokens of what these ids spell, numbered from 0, with offsets into that text; special ids stay special tokens."""
    special_ids = _special_ids(tokenizer)
    specials = [token_id in special_ids for token_id in ids]
    pieces = [str(tokenizer.convert_ids_to_tokens(token_id)) for token_id in ids]
    own_bytes = bytes_of_pieces(tokenizer, pieces)
    text = _decoded(tokenizer, ids, specials)
    spans = spans_by_bytes(text, specials, own_bytes) or _spans_by_decoding(tokenizer, text, ids, specials)
    position = 0
    for i, special in enumerate(specials):
        if special:
            spans[i] = (position, position)
        position = max(position, spans[i][1])
    return labelled(text, Pieces(range(len(ids)), ids, pieces, [None] * len(ids), specials, own_bytes), spans)


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    added = tokenizer.added_tokens_decoder.items()
    return {*tokenizer.all_special_ids, *(token_id for token_id, token in added if token.special)}


def _decoded(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], specials: Sequence[bool]) -> str:
    kept = [token_id for token_id, special in zip(ids, specials, strict=True) if not special]
    return str(tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def _spans_by_decoding(
    tokenizer: PreTrainedTokenizerBase, text: str, ids: Sequence[int], specials: Sequence[bool]
) -> list[Span]:
    """The characters that each token touches: those by which the decoded text grows when the token is added.

    Half a character decodes to something that is not in the whole text: the token then touches the next character. If
    the other half never comes, all of its bytes stand for one replacement character.
    """
    spans: list[Span] = []
    sure = 0  # characters of the text that the tokens so far spell whole
    for count, special in enumerate(specials, start=1):
        if special:
            spans.append((sure, sure))
            continue
        before = sure
        so_far = _decoded(tokenizer, ids[:count], specials[:count])
        sure = max(before, _common(so_far, text))
        touches_next = len(so_far) > sure and sure < len(text)
        same_scrap = sure == before > 0 and not touches_next and so_far.endswith(SCRAP)
        spans.append((before - 1 if same_scrap else before, sure + 1 if touches_next else sure))
    return spans


def _common(left: str, right: str) -> int:
    """How many characters two texts begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
