"""Which keys the scores of heads are about, row by row: counted once for a mask and a text, used by every layer.

    previous, self, next   the key one before the row, its own, one after
    first                  the first key
    local                  keys at most NEAR away
    special, punctuation   keys that are such tokens
    duplicate              earlier keys with the row's token
    induction              earlier keys right after an earlier key with the row's token (Olsson et al. 2022)

Special tokens have no duplicates. A row counts for a score if it sees a target and also a key that is none; chance is
the share of targets among the keys that it sees, which is what uniform attention gives. In attention to another
sequence only first, special and punctuation have a meaning.

A version leaves out some keys: none, the first, or the first and all special ones. Knows masks and tokens, no weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from models.errors import ShapeError
from models.masks import MaskLayout
from models.protocol import Span
from models.token_facts import TokenFacts

NEAR = 4  # distance up to which a key is local
SCORES = ("previous", "self", "next", "first", "special", "punctuation", "duplicate", "induction", "local")
VERSIONS = ("all", "first", "special")  # of the scores: by what is left out
OFFSETS = {"previous": (-1,), "self": (0,), "next": (1,), "local": tuple(range(-NEAR, NEAR + 1))}
PLACE = {name: place for place, name in enumerate(SCORES)}
OF_COLUMNS = ("special", "punctuation")
OF_PAIRS = ("duplicate", "induction")


@dataclass(frozen=True)
class Picked:
    """The targets of one score within a block: flat places with their rows where they are few, else all as a mask.

    Shapes:  flat, rows (n_targets), int64: row · cols + column, and the row, both counted from the block's corner;
             dense (rows, cols), boolean
    """

    flat: Tensor
    rows: Tensor
    dense: Tensor | None = None


class HeadTargets:
    """The targets of every score for one mask and one text.

    same_sequence  whether queries and keys are the same positions
    columns        by name, the indices of keys that are special or punctuation tokens, without the first key
    removed        by version, the indices of the keys that it leaves out
    """

    def __init__(self, mask: MaskLayout, keys: TokenFacts, *, same_sequence: bool) -> None:
        self.mask, self.facts, self.same_sequence = mask, keys, same_sequence
        if len(keys.ids) != mask.key_len:
            raise ShapeError(f"{len(keys.ids)} tokens do not fit a mask over {mask.key_len} keys")
        self.device = mask.starts.device
        self.ids = torch.tensor(keys.ids, device=self.device)
        self.visible = mask.visible_counts()
        self.columns = {"special": self._columns(keys.special), "punctuation": self._columns(keys.punctuation)}
        first = torch.zeros(1, dtype=torch.int64, device=self.device)
        special = self.columns["special"]
        self.removed = {"all": first[:0], "first": first, "special": torch.cat([first, special])}
        self.has_special = len(special) > 0
        self._picked: dict[tuple[Span, Span], dict[str, Picked]] = {}
        self._counted: dict[str, Tensor] = {}

    @property
    def versions(self) -> tuple[str, ...]:
        """Those that this text has: without a special token after the first key, leaving it out is leaving out none."""
        return VERSIONS if self.has_special else VERSIONS[:2]

    def picked(self, rows: Span, cols: Span) -> dict[str, Picked]:
        """The duplicate and induction targets within a block, found once."""
        if (rows, cols) not in self._picked:
            self._picked[rows, cols] = {
                name: _pick(targets) for name, targets in self._repeats(rows, cols).items() if name in self.known
            }
        return self._picked[rows, cols]

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Names of the scores that have a meaning here."""
        names = SCORES if self.same_sequence else ("first", *OF_COLUMNS)
        told = {"special": self.facts.special, "punctuation": self.facts.punctuation}
        return tuple(name for name in names if told.get(name, ()) is not None)

    @cached_property
    def known_columns(self) -> tuple[str, ...]:
        """Those of the scores about whole columns that have any beside the first key."""
        return tuple(name for name in OF_COLUMNS if name in self.known and len(self.columns[name]))

    @cached_property
    def first_is_target(self) -> Tensor:
        """Whether the first key is a target of a row: where it was left out, its weight has to be added.

        Shapes:  (SCORES, query_len), boolean
        """
        rows = torch.zeros(len(SCORES), self.mask.query_len, dtype=torch.bool, device=self.device)
        for name in self.known:
            rows[PLACE[name]] = self._counts(name, (0, 1)) > 0
        return rows

    def visible_in(self, version: str) -> Tensor:
        """How many keys each row sees, without those that a version leaves out.

        Shapes:  -> (query_len), int64
        """
        return self.visible - self._seen_of_columns(self.removed[version])

    def usable_rows(self, version: str) -> Tensor:
        """Rows that see at least two keys: with one, a weight says nothing.

        Shapes:  -> (query_len), boolean
        """
        return self.visible_in(version) >= 2

    def counted(self, version: str) -> Tensor:
        """Rows that see a target of a score and also a key that is none.

        Shapes:  -> (SCORES, query_len), boolean
        """
        counts = self._counts_of_all(version)
        return (counts > 0) & (counts < self.visible_in(version))

    def chances(self, version: str) -> Tensor:
        """The share of targets among the keys that a row sees: the score of uniform attention.

        Shapes:  -> (SCORES, query_len), float64
        """
        return self._counts_of_all(version) / self.visible_in(version).clamp(min=1).double()

    def mean_distances(self, version: str) -> Tensor:
        """Mean |query − key| over the keys that a row sees: what uniform attention gives.

        Shapes:  -> (query_len), float64
        """
        total = self.mask.mean_distances() * self.visible
        query_pos = torch.arange(self.mask.query_len, device=self.device)
        for column in self.removed[version]:
            total = total - (query_pos - column).abs() * self._seen_of_columns(column[None])
        return total / self.visible_in(version).clamp(min=1)

    def uniform_by_key(self, version: str, rows: Tensor) -> Tensor:
        """What each key gets in all when every row that counts spreads evenly over the keys that it sees.

        Shapes:  rows (n_heads, query_len), boolean -> (n_heads, key_len), float64
        """
        mask, share = self.mask, rows / self.visible_in(version).clamp(min=1).double()
        if mask.dense is not None:
            total = share @ mask.dense.double()
        else:
            edges = share.new_zeros(len(rows), mask.key_len + 1)
            edges.index_add_(1, mask.starts, share)
            edges.index_add_(1, mask.stops, -share)
            total = edges.cumsum(1)[:, :-1]
        total[:, self.removed[version]] = 0.0
        return total

    def _counts_of_all(self, version: str) -> Tensor:
        # (SCORES, query_len), int64: how many targets each row sees; 0 for scores without a meaning here
        if version not in self._counted:
            counts = torch.zeros(len(SCORES), self.mask.query_len, dtype=torch.int64, device=self.device)
            for name in self.known:
                counts[PLACE[name]] = self._counts(name, (0, self.mask.key_len))
                for column in self.removed[version].tolist():
                    counts[PLACE[name]] -= self._counts(name, (column, column + 1))
            self._counted[version] = counts
        return self._counted[version]

    def _counts(self, name: str, cols: Span) -> Tensor:
        # (query_len): visible targets of a score within some columns
        if name in OFFSETS:
            return self._seen_at(OFFSETS[name], cols)
        if name in OF_PAIRS:
            return self._seen_repeats(name, cols)
        chosen = self.removed["first"] if name == "first" else self._all_columns(name)
        return self._seen_of_columns(chosen[(chosen >= cols[0]) & (chosen < cols[1])])

    def _all_columns(self, name: str) -> Tensor:
        of_first = getattr(self.facts, name)
        first = self.removed["first"] if of_first and of_first[0] else self.removed["all"]
        return torch.cat([first, self.columns[name]])

    def _columns(self, which: Sequence[bool] | None) -> Tensor:
        flags = torch.tensor(which or (), dtype=torch.bool, device=self.device)
        flags[:1] = False
        return flags.nonzero()[:, 0]

    def _seen_of_columns(self, columns: Tensor) -> Tensor:
        if self.mask.dense is not None:
            return self.mask.dense[:, columns].sum(-1)
        before = torch.zeros(self.mask.key_len + 1, dtype=torch.int64, device=self.device)
        before[columns + 1] = 1
        before = before.cumsum(0)  # how many of the columns come before each key
        return before[self.mask.stops] - before[self.mask.starts]

    def _seen_at(self, offsets: Sequence[int], cols: Span) -> Tensor:
        query_pos = torch.arange(self.mask.query_len, device=self.device)
        total = torch.zeros_like(query_pos)
        for offset in offsets:
            key_pos = query_pos + offset
            seen = (key_pos >= self.mask.starts) & (key_pos < self.mask.stops)
            seen &= (key_pos >= cols[0]) & (key_pos < cols[1])
            if self.mask.dense is not None:
                seen &= self.mask.dense.gather(1, key_pos.clamp(0, self.mask.key_len - 1)[:, None])[:, 0]
            total += seen
        return total

    def _seen_repeats(self, name: str, cols: Span) -> Tensor:
        parts = []
        for first in range(0, self.mask.query_len, 256):  # rows looked at together: little memory at any length
            rows = (first, min(first + 256, self.mask.query_len))
            parts.append(self._repeats(rows, cols)[name].sum(-1))
        return torch.cat(parts)

    def _repeats(self, rows: Span, cols: Span) -> dict[str, Tensor]:
        # (rows, cols), boolean: the visible duplicate and induction targets; False beyond key_len
        query_pos = torch.arange(*rows, device=self.device)[:, None]
        key_pos = torch.arange(*cols, device=self.device)
        last = len(self.ids) - 1
        text = torch.ones_like(self.ids, dtype=torch.bool)
        if self.facts.special is not None:
            text = ~torch.tensor(self.facts.special, device=self.device)
        of_row = self.ids[query_pos]
        allowed = self.mask.visible(rows, cols) & (key_pos < query_pos) & text[query_pos]
        here, before = key_pos.clamp(max=last), (key_pos - 1).clamp(0, last)
        return {
            "duplicate": allowed & (self.ids[here] == of_row) & text[here],
            "induction": allowed & (self.ids[before] == of_row) & text[before] & (key_pos > 0),
        }


def _pick(targets: Tensor) -> Picked:
    # a mask of a block takes as long as a product with it; single places take about eight times as long each
    rows, cols = targets.nonzero(as_tuple=True)
    if len(rows) * 8 > targets.numel():
        return Picked(rows[:0], rows[:0], targets)
    return Picked(rows * targets.shape[1] + cols, rows)
