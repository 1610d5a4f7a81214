"""Parts of a window against all of it at once: cells, counts, and how much is looked at together."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models import masks
from models.masks import MaskLayout
from models.pooling import PooledCells, cell_count, split_aligned
from models.protocol import Rows

N = 90


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 40), st.integers(1, 90), st.integers(1, 50), st.integers(1, 60))
def test_parts_lie_in_one_cell_or_end_where_one_does(first: int, length: int, step: int, at_once: int) -> None:
    """The last part too: filled up to whole cells, one that crosses a border takes memory for both."""
    span = (first, first + length)
    parts = list(split_aligned(span, step, lambda start: start + at_once))
    assert (parts[0][0], parts[-1][1]) == span
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    for start, stop in parts:
        assert 0 < stop - start <= at_once
        assert stop % step == 0 or cell_count((start, stop), step) == 1


def scattered() -> MaskLayout:
    """A mask whose queries' keys are no runs; some rows see nothing."""
    mask = torch.rand(N, N, generator=torch.Generator().manual_seed(1)) < 0.4
    mask[[0, 41]] = False
    layout = MaskLayout.from_mask(mask)
    assert layout.dense is not None
    return layout


@pytest.mark.parametrize(("rows", "cols"), [((0, N), (0, N)), ((7, 61), (13, 90)), ((50, 51), (3, 4))])
@pytest.mark.parametrize("steps", [(1, 1), (7, 7), (100, 100), (1, 9)])
def test_a_dense_mask_is_counted_a_few_rows_at_a_time(
    rows: tuple[int, int], cols: tuple[int, int], steps: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of booleans are made of int64: of all rows together eight times the mask."""
    monkeypatch.setattr(masks, "ROWS_AT_ONCE", 16)
    seen, right = [], MaskLayout.visible

    def visible(self: MaskLayout, part: Rows, across: Rows) -> torch.Tensor:
        seen.append(len(range(*part)))
        return right(self, part, across)

    layout = scattered()
    assert layout.dense is not None
    monkeypatch.setattr(MaskLayout, "visible", visible)
    found = layout.cell_counts(*steps, rows, cols)
    assert found.dtype == torch.int64
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            (top, bottom), (left, right_end) = (
                (max((span[0] // step + at) * step, span[0]), min((span[0] // step + at + 1) * step, span[1]))
                for span, step, at in ((rows, steps[0], i), (cols, steps[1], j))
            )
            assert found[i, j] == layout.dense[top:bottom, left:right_end].sum()
    assert max(seen) <= 16


def test_mean_distances_of_a_dense_mask_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "ROWS_AT_ONCE", 16)
    layout = scattered()
    assert layout.dense is not None
    found = layout.mean_distances()
    for i, row in enumerate(layout.dense):
        keys = row.nonzero()[:, 0]
        assert float(found[i]) == (float((keys - i).abs().sum()) / len(keys) if len(keys) else 0.0)
    assert layout.mean_distances() is found


def test_what_is_visible_is_counted_as_it_is_added() -> None:
    visible = torch.rand(N, N) < 0.5
    numbers = torch.rand(N, N, dtype=torch.float64) * visible
    cells = PooledCells((0, N), (0, N), (20, 20), "mean")
    for part in split_aligned((0, N), 20, lambda start: start + 13):
        cells.add(part, numbers[slice(*part)], visible[slice(*part)])
    block = numbers[20:40, 80:90]
    # sums of 200 float64 numbers below 1, in another order
    assert float(cells.pooled()[1, 4]) == pytest.approx(float(block.sum() / visible[20:40, 80:90].sum()), abs=1e-12)
