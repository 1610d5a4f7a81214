"""Windows through a lens and over units: exact numbers of tokens, summed over units, then pooled into cells.

A unit is a run of whole tokens (`models/units.py`). For a query unit I and a key unit J a cell is

    (1 / |I|) Σ over i ∈ I  Σ over j ∈ J  of what the lens gives for (i, j)

keys summed and queries averaged, so rows that sum to 1 still do. Rows that the lens leaves empty are not averaged in.
A cell in which nothing is visible is NaN. Everything is streamed over parts of the rows. Over several heads or layers
each head's picture is made first, then their mean or maximum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.capture import WEIGHTS_AT_ONCE, WEIGHTS_REDUCED, check_span
from models.errors import LensUnavailable
from models.lenses import FORMULAS, HeadLens, Lens, Place, RolledUpTo, lens_on
from models.pooling import PooledCells, fit_steps, into_cells, split_aligned
from models.protocol import CaptureReader, Index, Pool, Span, Window
from models.units import TextUnit


class Axis:
    """The units along one axis: unit i holds the tokens bounds[i] ≤ t < bounds[i + 1]."""

    def __init__(self, bounds: Sequence[int]) -> None:
        self.bounds = list(bounds)

    @classmethod
    def of_tokens(cls, length: int) -> Axis:
        """Every token a unit of its own."""
        return cls(range(length + 1))

    @classmethod
    def of_units(cls, units: Sequence[TextUnit]) -> Axis:
        """These units."""
        return cls([0, *(unit.stop for unit in units)])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def plain(self) -> bool:
        """Whether every unit is one token."""
        return len(self) == self.bounds[-1]

    def tokens(self, units: Span) -> Span:
        """The tokens of some units."""
        return self.bounds[units[0]], self.bounds[units[1]]

    def numbers(self, tokens: Span, first: int) -> Tensor:
        """Tell which unit each token belongs to, counted from the unit `first`.

        Shapes:  -> (tokens), int64
        """
        bounds = torch.tensor(self.bounds)
        return torch.searchsorted(bounds, torch.arange(*tokens), right=True) - 1 - first


@dataclass(frozen=True)
class LensRequest:
    """Which window: rows and cols count units, None for all of them."""

    site: str
    layer: Index
    head: Index
    lens: Lens
    rows: Span | None
    cols: Span | None
    max_cells: int
    pool: Pool


@dataclass(frozen=True)
class LensWindow:
    """A window through a lens.

    largest  what no cell exceeds: the end of the colour scale
    removed  the share of each row cell that the lens leaves out, (row cells); None for lenses that leave out nothing
    formula  what a cell is, in signs
    """

    window: Window
    largest: float
    removed: Tensor | None
    formula: str


def lens_window(
    capture: CaptureReader, request: LensRequest, rows: Axis, cols: Axis, rolled: RolledUpTo | None = None
) -> LensWindow:
    """One window, pooled by the smallest steps that need at most max_cells cells.

    Values:  NaN where nothing is visible; exact when both steps are 1
    Raises:  RangeError; LensUnavailable where the lens shows nothing, or over too many heads at once
    """
    row_span = check_span("rows", request.rows or (0, len(rows)), len(rows))
    col_span = check_span("cols", request.cols or (0, len(cols)), len(cols))
    lenses = _lenses(capture, request, rows.tokens(row_span), cols.tokens(col_span), rolled)
    steps = fit_steps(row_span, col_span, request.max_cells)
    by_layer: list[tuple[Tensor, Tensor]] = []
    for heads in lenses:
        pictures = [unit_window(lens, rows, cols, row_span, col_span, steps, request.pool) for lens in heads]
        rows_shown = [_cells_shown(lens, rows, row_span, steps[0]) for lens in heads]
        by_layer.append(_reduced(pictures, rows_shown, request.head))
    cells_of_all, _ = _reduced([cells for cells, _ in by_layer], [shown for _, shown in by_layer], request.layer)
    every = [lens for heads in lenses for lens in heads]
    removed = [removed_by_cell(lens, rows, row_span, steps[0]) for lens in every]
    known = [values for values in removed if values is not None]
    return LensWindow(
        Window(row_span, col_span, *steps, request.pool, cells_of_all.float()),
        max(lens.largest for lens in every),
        torch.stack(known).mean(0) if known else None,
        formula(request.lens, request.layer, request.head, plain=rows.plain and cols.plain),
    )


def formula(lens: Lens, layer: Index, head: Index, *, plain: bool) -> str:
    """What a cell is, in signs: over several layers or heads, over units, through the lens."""
    over, of = "", ""
    if lens != "rollout":  # it names its layers and heads itself
        for index, number, sign in ((layer, "L", "ₗ"), (head, "H", "ₕ")):
            if isinstance(index, str):
                over += f"1/{number} · Σ{sign} " if index == "mean" else f"max{sign} "
                of += sign
    units = "" if plain else "1/|I| · Σ(i ∈ I) Σ(j ∈ J) "
    return over + units + FORMULAS[lens].format(of=of)


def unit_window(
    lens: HeadLens, rows: Axis, cols: Axis, row_span: Span, col_span: Span, steps: tuple[int, int], pool: Pool
) -> Tensor:
    """One head through a lens, over units, pooled into cells aligned to unit 0.

    Shapes:  -> (row cells, col cells), NaN where nothing is visible
    """
    at_once = max(1, WEIGHTS_AT_ONCE // (cols.tokens(col_span)[1] - cols.tokens(col_span)[0]))

    def reach(first: int) -> int:
        return bisect_right(rows.bounds, rows.bounds[first] + at_once) - 1

    cells = PooledCells(row_span, col_span, steps, pool)
    for part in split_aligned(row_span, steps[0], reach):
        cells.add(part, *_unit_sums(lens, rows, cols, part, col_span))
    return cells.pooled()


def removed_by_cell(lens: HeadLens, rows: Axis, row_span: Span, row_step: int) -> Tensor | None:
    """Give the mean share that the lens leaves out of the rows of each cell.

    Shapes:  -> (row cells); None for lenses that leave out nothing
    """
    tokens = rows.tokens(row_span)
    removed = lens.removed(tokens)
    if removed is None:
        return None
    units = rows.numbers(tokens, row_span[0])
    sums = removed.new_zeros(2, row_span[1] - row_span[0])
    sums[0].index_add_(0, units, removed)
    sums[1].index_add_(0, units, torch.ones_like(removed))
    cells = into_cells(torch.stack([sums[0] / sums[1], torch.ones_like(sums[1])]), 1, row_span[0], row_step).sum(-1)
    return cells[0] / cells[1]


def _lenses(
    capture: CaptureReader, request: LensRequest, rows: Span, cols: Span, rolled: RolledUpTo | None
) -> list[list[HeadLens]]:
    """The lens on each head that is asked for, by layer; rollout looks at all heads of its layers anyway."""
    described = capture.site(request.site)
    if request.lens == "rollout":
        if isinstance(request.layer, str):
            raise LensUnavailable("rollout ends at one layer: name it, instead of the mean or maximum", "needs_layer")
        return [[lens_on(capture, Place(request.site, request.layer, 0), "rollout", rolled)]]
    layers = range(described.n_layers) if isinstance(request.layer, str) else (request.layer,)
    heads = range(described.n_heads) if isinstance(request.head, str) else (request.head,)
    n_heads = len(layers) * len(heads)
    n_weights = n_heads * (rows[1] - rows[0]) * (cols[1] - cols[0])
    if n_heads > 1 and n_weights > WEIGHTS_REDUCED:
        raise LensUnavailable(
            f"over {n_heads} heads this window would read {n_weights} weights and the limit is {WEIGHTS_REDUCED}: "
            "name one head, or a smaller range of rows and cols",
            "too_many_heads",
            count=n_weights,
            limit=WEIGHTS_REDUCED,
        )
    return [[lens_on(capture, Place(request.site, layer, head), request.lens) for head in heads] for layer in layers]


def _unit_sums(lens: HeadLens, rows: Axis, cols: Axis, part: Span, col_span: Span) -> tuple[Tensor, Tensor]:
    """Sum keys and average queries of some row units.

    Shapes:  -> values (row units, col units), 0 where hidden; visible (row units, col units), boolean
    """
    tokens, columns = rows.tokens(part), cols.tokens(col_span)
    if tokens[1] - tokens[0] == part[1] - part[0] and columns[1] - columns[0] == col_span[1] - col_span[0]:
        values, visible = lens.part(tokens, columns)
        return values, visible & lens.rows_shown(tokens)[:, None]
    shape = (part[1] - part[0], columns[1] - columns[0])
    sums, seen, shown = torch.zeros(shape, dtype=torch.float64), torch.zeros(shape), torch.zeros(shape[0])
    at_once = max(1, WEIGHTS_AT_ONCE // shape[1])
    for start in range(tokens[0], tokens[1], at_once):
        here = (start, min(start + at_once, tokens[1]))
        values, visible = lens.part(here, columns)
        units, rows_shown = rows.numbers(here, part[0]), lens.rows_shown(here)
        sums.index_add_(0, units, values.double())
        seen.index_add_(0, units, (visible & rows_shown[:, None]).float())
        shown.index_add_(0, units, rows_shown.float())
    keys = cols.numbers(columns, col_span[0])
    across, seen_across = (
        sums.new_zeros(col_span[1] - col_span[0], shape[0]),
        seen.new_zeros(col_span[1] - col_span[0], shape[0]),
    )
    across.index_add_(0, keys, sums.T)
    seen_across.index_add_(0, keys, seen.T)
    return (across / shown.clamp(min=1)).T, (seen_across > 0).T


def _cells_shown(lens: HeadLens, rows: Axis, row_span: Span, row_step: int) -> Tensor:
    # (row cells), boolean: whether any row of the cell has anything to show
    tokens = rows.tokens(row_span)
    units = torch.zeros(row_span[1] - row_span[0])
    units.index_add_(0, rows.numbers(tokens, row_span[0]), lens.rows_shown(tokens).float())
    return into_cells(units, 0, row_span[0], row_step).sum(1) > 0


def _reduced(cells: list[Tensor], shown: list[Tensor], how: Index) -> tuple[Tensor, Tensor]:
    """The mean or maximum of several pictures; a single layer or head is the only one.

    Shapes:  cells (row cells, col cells) each, NaN where hidden; shown (row cells) each -> the same, once
    Values:  what one picture hides counts as 0 where another shows it; a row that a picture does not show at all counts
             not
    """
    stacked, rows = torch.stack(cells), torch.stack(shown)
    hidden = stacked.isnan().all(0)
    values = stacked.nan_to_num(0.0)
    reduced = values.sum(0) / rows.sum(0).clamp(min=1)[:, None] if how == "mean" else values.amax(0)
    return reduced.masked_fill(hidden, torch.nan), rows.any(0)
