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
from models.masks import ROWS_AT_ONCE, MaskLayout
from models.protocol import Span
from models.repeats import Repeats
from models.token_facts import TokenFacts

NEAR = 4  # distance up to which a key is local
MIN_ROWS = 8  # with fewer that count there is no number
SCORES = ("previous", "self", "next", "first", "special", "punctuation", "duplicate", "induction", "local")
VERSIONS = ("all", "first", "special")  # of the scores: by what is left out
OFFSETS = {"previous": (-1,), "self": (0,), "next": (1,), "local": tuple(range(-NEAR, NEAR + 1))}
PLACE = {name: place for place, name in enumerate(SCORES)}
OF_COLUMNS = ("special", "punctuation")
OF_REPEATS = ("duplicate", "induction")


@dataclass(frozen=True)
class VersionTargets:
    """What one version counts, row by row.

    Shapes:  visible (query_len), int64; usable (query_len), boolean; counted, chances (SCORES, query_len), float64;
             mean_distances (query_len), float64; near_left (2 · NEAR + 1, query_len), boolean
    Values:  visible: keys that a row sees; usable: it sees two at least: with one, a weight says nothing; counted: 1 if
             it sees a target and also a key that is none, else 0; chances: the share of targets among the keys that it
             sees, 0 if it is not counted; mean_distances: mean |query − key| over the keys that it sees, which is what
             uniform attention gives; near_left: the key at this offset from −NEAR to NEAR is not left out
    """

    visible: Tensor
    usable: Tensor
    counted: Tensor
    chances: Tensor
    mean_distances: Tensor
    near_left: Tensor


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
        self.visible = mask.visible_counts()
        self.columns = {"special": self._columns(keys.special), "punctuation": self._columns(keys.punctuation)}
        first = torch.zeros(1, dtype=torch.int64, device=self.device)
        special = self.columns["special"]
        self.removed = {"all": first[:0], "first": first, "special": torch.cat([first, special])}
        self.has_special = len(special) > 0
        self.repeats = Repeats(mask, keys) if same_sequence else None
        self._of_version: dict[str, VersionTargets] = {}

    @property
    def versions(self) -> tuple[str, ...]:
        """Those that this text has: without a special token after the first key, leaving it out is leaving out none."""
        return VERSIONS if self.has_special else VERSIONS[:2]

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Names of the scores that have a meaning here."""
        names = SCORES if self.same_sequence else ("first", *OF_COLUMNS)
        told = {"special": self.facts.special, "punctuation": self.facts.punctuation}
        return tuple(name for name in names if told.get(name, ()) is not None)

    @cached_property
    def known_columns(self) -> tuple[str, ...]:
        """Those of the scores about whole columns that have any."""
        return tuple(name for name in OF_COLUMNS if name in self.known and len(self._all_columns(name)))

    @cached_property
    def first_repeats(self) -> Tensor:
        """Whether the first key is a duplicate of a row's token: what is collected of repeats leaves it out.

        Shapes:  (query_len), boolean
        """
        return self._counts("duplicate", (0, 1)) > 0

    def of(self, version: str) -> VersionTargets:
        """What a version counts, found once."""
        if version not in self._of_version:
            self._of_version[version] = self._find(version)
        return self._of_version[version]

    def columns_of(self, name: str, version: str) -> Tensor:
        """The indices of the special or punctuation keys that a version leaves in.

        Shapes:  -> (n), int64
        """
        columns = self._all_columns(name)
        return columns[~torch.isin(columns, self.removed[version])]

    def uniform_by_key(self, version: str, rows: Tensor) -> Tensor:
        """What each key gets in all when every row that counts spreads evenly over the keys that it sees.

        Shapes:  rows (n_heads, query_len), float64, 1 for a row that counts -> (n_heads, key_len), float64
        """
        mask, share = self.mask, rows / self.of(version).visible.clamp(min=1)
        if mask.dense is not None:
            total = share.new_zeros(len(rows), mask.key_len)
            for some in range(0, mask.query_len, ROWS_AT_ONCE):
                total += share[:, some : some + ROWS_AT_ONCE] @ mask.dense[some : some + ROWS_AT_ONCE].double()
        else:
            edges = share.new_zeros(len(rows), mask.key_len + 1)
            edges.index_add_(1, mask.starts, share)
            edges.index_add_(1, mask.stops, share, alpha=-1)
            total = edges.cumsum(1)[:, :-1]
        total[:, self.removed[version]] = 0.0
        return total

    def _find(self, version: str) -> VersionTargets:
        removed = self.removed[version]
        visible = self.visible - self._seen_of_columns(removed)
        counts = torch.zeros(len(SCORES), self.mask.query_len, dtype=torch.int64, device=self.device)
        for name in self.known:
            counts[PLACE[name]] = self._counts(name, (0, self.mask.key_len))
            for column in removed.tolist():
                counts[PLACE[name]] -= self._counts(name, (column, column + 1))
        counted = (counts > 0) & (counts < visible)
        query_pos = torch.arange(self.mask.query_len, device=self.device)
        near = query_pos + torch.arange(-NEAR, NEAR + 1, device=self.device)[:, None]  # (offsets, query_len)
        return VersionTargets(
            visible=visible,
            usable=visible >= 2,
            counted=counted.double(),
            chances=counts / visible.clamp(min=1).double() * counted,
            mean_distances=self._mean_distances(removed, visible),
            near_left=~torch.isin(near, removed),
        )

    def _mean_distances(self, removed: Tensor, visible: Tensor) -> Tensor:
        total = self.mask.mean_distances() * self.visible
        query_pos = torch.arange(self.mask.query_len, device=self.device)
        for column in removed:
            total = total - (query_pos - column).abs() * self._seen_of_columns(column[None])
        return total / visible.clamp(min=1)

    def _counts(self, name: str, cols: Span) -> Tensor:
        # (query_len): visible targets of a score within some columns
        if name in OFFSETS:
            return self._seen_at(OFFSETS[name], cols)
        if name in OF_REPEATS:
            assert self.repeats is not None
            return self.repeats.counts(name, cols)
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
