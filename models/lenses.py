"""Lenses: other numbers than the weights themselves, read from what a run keeps of one head.

    raw         A(i, j), the weight
    sink_free   A(i, j) / Σ A(i, k) over k > 0: without the first token, each row brought back to 1
    value       A(i, j) · ‖v(j)‖, with the head's value vectors
    output      ‖A(i, j) · v(j) · W_O‖, with the head's part of the output projection (Kobayashi et al. 2020)
    rollout     R(l) = (Ā(l) + I) / 2 · R(l − 1), R(−1) = I, with Ā the mean over the heads of layer l (Abnar and
                Zuidema 2020)

A lens gives exact numbers for any rows and columns of a head; sums over units and pooling come after it, in
`models/lens_windows.py`. It knows neither units nor how a window is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.errors import LensUnavailable
from models.head_sums import LEFT
from models.protocol import CaptureReader, SiteDescription, Span

Lens = Literal["raw", "sink_free", "value", "output", "rollout"]
LENSES: tuple[Lens, ...] = get_args(Lens)
ROLLOUT_TOKENS = 1024  # a product of matrices per layer: at 8,192 tokens of 30 layers it would take an hour
ROLLOUT_ROWS = 256  # rows of all heads that are averaged at once
NO_PROJECTION = (
    "the output projection of this layer is not known: it was not found beside the attention, or is not handed the "
    "heads' outputs as they are"
)

FORMULAS: dict[Lens, str] = {  # {of}: of which layer and head, where the cell is made of several
    "raw": "A{of}(i, j)",
    "sink_free": "A{of}(i, j) / Σₖ A{of}(i, k), j, k > 0",
    "value": "A{of}(i, j) · ‖v{of}(j)‖",
    "output": "‖A{of}(i, j) · v{of}(j) · W_O{of}‖",
    # Id, since I is a unit of the query
    "rollout": "R(i, j), R = R(l) = ½ (Ā(l) + Id) · R(l − 1), R(−1) = Id, Ā = 1/H · Σₕ Aₕ",
}


@dataclass(frozen=True)
class Place:
    """One head of a capture."""

    site: str
    layer: int
    head: int


class HeadLens:
    """One lens on one head. Immutable."""

    largest = 1.0  # what no cell exceeds: the end of the colour scale

    def __init__(self, capture: CaptureReader, place: Place) -> None:
        self.capture, self.place = capture, place
        self.mask = capture.mask(place.site, place.layer)

    def part(self, rows: Span, cols: Span) -> tuple[Tensor, Tensor]:
        """Give some rows and columns.

        Shapes:  -> values (rows, cols), 0 where hidden; visible (rows, cols), boolean
        """
        return self.weights(rows, cols), self.mask.visible(rows, cols)

    def rows_shown(self, rows: Span) -> Tensor:
        """Tell which rows have anything to show at all.

        Shapes:  -> (rows), boolean
        """
        return self.mask.visible_counts()[slice(*rows)] > 0

    def removed(self, rows: Span) -> Tensor | None:
        """Give the share of each row that the lens leaves out, None for a lens that leaves out nothing.

        Shapes:  -> (rows)
        """
        return None

    def weights(self, rows: Span, cols: Span) -> Tensor:
        """Give the weights themselves; columns that all these rows hide are never computed.

        Shapes:  -> (rows, cols)
        """
        seen = self.mask.key_range(rows)
        inner = min(max(cols[0], seen[0]), cols[1]), max(min(cols[1], seen[1]), cols[0])
        if inner[0] >= inner[1]:
            return torch.zeros(rows[1] - rows[0], cols[1] - cols[0])
        head = self.place.head
        exact = self.capture.weights(self.place.site, self.place.layer, (head, head + 1), rows, inner)[0]
        return pad(exact, (inner[0] - cols[0], cols[1] - inner[1]))


class SinkFree(HeadLens):
    """The weights without the first token's column, each row brought back to a sum of 1."""

    def __init__(self, capture: CaptureReader, place: Place) -> None:
        super().__init__(capture, place)
        first = capture.row_stats(place.site)["first"][place.layer, place.head]
        self._first = first
        self._left = _row_totals(capture, place, first) - first  # (query_len)

    def part(self, rows: Span, cols: Span) -> tuple[Tensor, Tensor]:
        """Give some rows and columns; the first column is hidden.

        Shapes:  -> values (rows, cols), visible (rows, cols), boolean
        """
        weights, visible = super().part(rows, cols)
        visible = visible & self.rows_shown(rows)[:, None]
        if cols[0] == 0:
            visible[:, 0] = False
        left = self._left[slice(*rows), None].clamp(min=LEFT)
        return (weights / left).masked_fill(~visible, 0.0), visible

    def rows_shown(self, rows: Span) -> Tensor:
        """Tell which rows have something left.

        Shapes:  -> (rows), boolean
        """
        return super().rows_shown(rows) & (self._left[slice(*rows)] >= LEFT)

    def removed(self, rows: Span) -> Tensor:
        """Give the weight on the first token.

        Shapes:  -> (rows)
        """
        return self._first[slice(*rows)]


class Scaled(HeadLens):
    """The weights times one length per key."""

    def __init__(self, capture: CaptureReader, place: Place, lengths: Tensor) -> None:
        """Shapes:  lengths (key_len)."""
        super().__init__(capture, place)
        self._lengths = lengths
        self.largest = float(lengths.max())

    def part(self, rows: Span, cols: Span) -> tuple[Tensor, Tensor]:
        """Give some rows and columns.

        Shapes:  -> values (rows, cols), visible (rows, cols), boolean
        """
        weights, visible = super().part(rows, cols)
        return weights * self._lengths[slice(*cols)], visible


class Rollout(HeadLens):
    """What reaches each token from each token of the input, over all layers up to this one and their residuals."""

    def __init__(self, capture: CaptureReader, place: Place, rolled: Tensor) -> None:
        """Shapes:  rolled (query_len, query_len), NaN where no path leads."""
        super().__init__(capture, place)
        self._rolled = rolled

    def part(self, rows: Span, cols: Span) -> tuple[Tensor, Tensor]:
        """Give some rows and columns.

        Shapes:  -> values (rows, cols), visible (rows, cols), boolean
        """
        values = self._rolled[slice(*rows), slice(*cols)]
        return values.nan_to_num(0.0), ~values.isnan()

    def rows_shown(self, rows: Span) -> Tensor:
        """Tell which rows have anything to show: all, since the residual is always there.

        Shapes:  -> (rows), boolean
        """
        return torch.ones(rows[1] - rows[0], dtype=torch.bool)


RolledUpTo = Callable[[CaptureReader, str, int], Tensor]  # capture, site, layer -> as `rollout` gives it


def lens_on(capture: CaptureReader, place: Place, lens: Lens, rolled: RolledUpTo | None = None) -> HeadLens:
    """One lens on one head. `rolled` gives the rollout, from a cache perhaps.

    Raises:  LensUnavailable where it cannot be seen through the lens
    """
    if lens == "raw":
        return HeadLens(capture, place)
    if lens == "sink_free":
        return SinkFree(capture, place)
    if lens == "rollout":
        return Rollout(capture, place, (rolled or rollout)(capture, place.site, place.layer))
    return Scaled(capture, place, key_lengths(capture, place, lens))


def key_lengths(capture: CaptureReader, place: Place, lens: Lens) -> Tensor:
    """What `value` and `output` multiply the weights on each key with: ‖v(j)‖ or ‖v(j) · W_O‖.

    Shapes:  -> (key_len)
    Raises:  LensUnavailable where the output projection is not known
    """
    tensors, prefix = capture.tensors(), f"{place.site}.{place.layer}."
    if lens == "value":
        value, described = tensors[prefix + "value"], capture.site(place.site)
        own = value[place.head * value.shape[0] // described.n_heads]  # (key_len, d_value); layers may group heads each
        lengths: Tensor = torch.linalg.vector_norm(own, dim=-1)
        return lengths
    norms = tensors.get(prefix + "output_norms")
    if norms is None:
        raise LensUnavailable(NO_PROJECTION, "projection")
    return norms[place.head]


def check_rollout(described: SiteDescription) -> None:
    """Raise LensUnavailable where there is no rollout."""
    if not described.site.endswith(".self"):
        raise LensUnavailable(
            "rollout follows one text through its layers, and here queries and keys are two texts", "two_texts"
        )
    if described.query_len > ROLLOUT_TOKENS:
        raise LensUnavailable(
            f"rollout multiplies whole matrices layer by layer and is computed up to {ROLLOUT_TOKENS} tokens; this run "
            f"has {described.query_len}",
            "too_long",
            count=described.query_len,
            limit=ROLLOUT_TOKENS,
        )


def rollout(capture: CaptureReader, site: str, layer: int, *, below: Tensor | None = None, first: int = 0) -> Tensor:
    """Attention rollout over the layers 0 … layer.

    Args:    below: the rollout over the layers before `first`, where it is known
    Shapes:  below (query_len, query_len) -> (query_len, query_len), float32
    Values:  rows sum to 1 where the weights' rows do; NaN where no path leads from the key to the query
    Raises:  LensUnavailable, RangeError
    Source:  Abnar and Zuidema 2020, §3 with A = 0.5 W + 0.5 I
    """
    described = capture.site(site)
    check_rollout(described)
    length = described.query_len
    rolled = torch.eye(length) if below is None else below.nan_to_num(0.0)
    reached = torch.eye(length, dtype=torch.bool) if below is None else ~below.isnan()
    for at in range(first, layer + 1):
        mask = capture.mask(site, at)
        mixed = torch.eye(length)
        for start in range(0, length, ROLLOUT_ROWS):
            rows = (start, min(start + ROLLOUT_ROWS, length))
            cols = mask.key_range(rows)
            if cols[0] < cols[1]:
                weights = capture.weights(site, at, (0, described.n_heads), rows, cols)
                mixed[slice(*rows), slice(*cols)] += weights.mean(0).float()
        rolled = (mixed / 2) @ rolled
        step = mask.visible((0, length), (0, length))
        if mask.kind.kind in ("causal", "full") and not bool((reached & ~step).any()):
            reached = step  # such a mask leads nowhere new when it is taken twice
        else:
            reached = ((step.float() + torch.eye(length)) @ reached.float()) > 0
    return rolled.masked_fill(~reached, torch.nan)


def _row_totals(capture: CaptureReader, place: Place, like: Tensor) -> Tensor:
    """What each row of a head sums to: 1, or less where a sink logit takes part of it."""
    share = capture.sink_share(place.site, place.layer)
    return torch.ones_like(like) if share is None else 1 - share[place.head]
