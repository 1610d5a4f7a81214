"""Where a text repeats itself under a mask: earlier keys with a row's token, and the keys right after such keys.

Special tokens have no repeats. Places are found block by block and kept only while they are few: a text of one token
has n²/2 of them. Knows masks and token ids, no weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from models.masks import MaskLayout
from models.protocol import Span
from models.token_facts import TokenFacts

KINDS = ("duplicate", "induction", "induction on special")  # the last: the key after is a special token
PLACES_KEPT = 8_000_000  # of all blocks and heads together, 32 MB; beyond, they are found anew for each layer
DENSE_FROM = 1 / 4  # places for each cell of a block; then products with masks are quicker than picking them out


@dataclass(frozen=True)
class Places:
    """The repeats within a block, without the first key: picked out where they are few, else marked.

    Shapes:  flat (n_heads · n_places), int32: places within the block's weights, by head, then kind, then row; starts
             (n_heads · kinds · rows), int32: where the places of each row begin; marked (kinds, rows, columns), boolean
    """

    flat: Tensor
    starts: Tensor
    marked: Tensor | None = None


class Repeats:
    """The repeats of one text under one mask over its own positions."""

    def __init__(self, mask: MaskLayout, facts: TokenFacts) -> None:
        device = mask.starts.device
        self._mask, self._ids = mask, torch.tensor(facts.ids, dtype=torch.int32, device=device)
        special = torch.tensor(facts.special or (False,) * len(facts.ids), dtype=torch.bool, device=device)
        self._text = ~special
        self.kinds = KINDS if bool(special[1:].any()) else KINDS[:2]
        self._kept: dict[tuple[Span, Span, int], Places] = {}
        self._n_kept = 0

    def places(self, rows: Span, cols: Span, n_heads: int) -> Places:
        """The repeats within a block of the weights of so many heads."""
        found = self._kept.get((rows, cols, n_heads))
        if found is None:
            found = self._find(rows, cols, n_heads)
            if self._n_kept + len(found.flat) <= PLACES_KEPT and found.marked is None:
                self._n_kept += len(found.flat)
                self._kept[rows, cols, n_heads] = found
        return found

    def counts(self, name: str, cols: Span) -> Tensor:
        """How many duplicate or induction keys each row sees within some columns.

        Shapes:  -> (query_len), int64
        """
        if self._mask.dense is not None:
            return self._counts_of_dense(name, cols)
        query_pos = torch.arange(len(self._ids), device=self._ids.device)
        first, stop = self._mask.starts.clamp(min=cols[0]), self._mask.stops.clamp(max=cols[1])
        stop = torch.minimum(stop, query_pos)  # earlier keys only
        if name == "induction":  # what repeats is the token before the key
            first, stop = (first - 1).clamp(min=0), stop - 1
        counts = self._earlier(stop) - self._earlier(first)
        return torch.where(self._text, counts, 0).clamp(min=0)

    def _earlier(self, stop: Tensor) -> Tensor:
        # (query_len): how many text tokens before `stop` are the row's
        size = len(self._ids) + 1
        return torch.searchsorted(self._sorted, self._ids.long() * size + stop.clamp(min=0))

    @cached_property
    def _sorted(self) -> Tensor:
        # text tokens by id, then by position, as one number each
        positions = self._text.nonzero()[:, 0]
        return (self._ids[positions].long() * (len(self._ids) + 1) + positions).sort().values

    def _counts_of_dense(self, name: str, cols: Span) -> Tensor:
        parts = []
        for first in range(0, self._mask.query_len, 256):  # rows looked at together: little memory at any length
            duplicate, induction = self._marked((first, min(first + 256, self._mask.query_len)), cols)
            parts.append((duplicate if name == "duplicate" else induction).sum(-1))
        return torch.cat(parts)

    def _find(self, rows: Span, cols: Span, n_heads: int) -> Places:
        marked = torch.stack(self._by_kind(rows, cols))
        if cols[0] == 0:
            marked[..., 0] = False
        n_kinds, n_rows, n_cols = marked.shape
        _kind, row, column = marked.nonzero(as_tuple=True)
        heads = torch.arange(n_heads, device=row.device)[:, None]
        if len(row) > DENSE_FROM * n_rows * n_cols:
            return Places(row[:0].int(), row[:0].int(), marked)
        starts = row.new_zeros(n_kinds * n_rows)
        starts[1:] = marked.sum(-1).view(-1).cumsum(0)[:-1]
        flat = heads * (n_rows * n_cols) + row * n_cols + column
        return Places(flat.view(-1).int(), (heads * len(row) + starts).view(-1).int())

    def _by_kind(self, rows: Span, cols: Span) -> list[Tensor]:
        duplicate, induction = self._marked(rows, cols)
        if len(self.kinds) == 2:
            return [duplicate, induction]
        of_text = self._text[torch.arange(*cols, device=self._ids.device).clamp(max=len(self._ids) - 1)]
        return [duplicate, induction & of_text, induction & ~of_text]

    def _marked(self, rows: Span, cols: Span) -> tuple[Tensor, Tensor]:
        # duplicate and induction keys, each (rows, cols), boolean; False beyond key_len
        key_pos = torch.arange(*cols, device=self._ids.device)
        here, before = key_pos.clamp(max=len(self._ids) - 1), (key_pos - 1).clamp(0, len(self._ids) - 1)
        ids = torch.where(self._text, self._ids, -1)  # equal to no row's
        of_row = torch.where(self._text, self._ids, -2)[slice(*rows), None]
        query_pos = torch.arange(*rows, device=self._ids.device)[:, None]
        allowed = self._mask.visible(rows, cols) & (key_pos < query_pos)
        repeated = ids[before].masked_fill_(key_pos == 0, -1)
        return allowed & (ids[here] == of_row), allowed & (repeated == of_row)
