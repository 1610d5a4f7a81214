"""Windows of a capture: pooled and exact, whole and partial, of one head and over heads; refused where out of range."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from models.attention import attention_scores, attention_weights, causal_mask, sliding_window_mask
from models.blockwise import AttentionInputs, blockwise_attention
from models.capture import VERSION, Capture
from models.capture_builder import CaptureBuilder
from models.errors import ConfigError, RangeError
from models.masks import MaskLayout
from models.pooling import fit_steps
from models.protocol import Pool, Span

SITE, LAYERS, HEADS, N = "decoder.self", 2, 4, 150
ROUNDING = 1e-6  # the same float32 weights, computed for another rectangle


def build(n: int = N, window: int | None = None) -> tuple[Capture, Tensor]:
    """A capture of random heads, and all their weights (layers, heads, n, n) with NaN for what is hidden."""
    mask = causal_mask(n) if window is None else causal_mask(n) & sliding_window_mask(n, window=window)
    layout, builder, everything = MaskLayout.from_mask(mask), CaptureBuilder(), []
    for layer in range(LAYERS):
        query, key, value = torch.randn(HEADS, n, 8) * 3, torch.randn(2, n, 8), torch.randn(2, n, 8)
        inputs = AttentionInputs(query, key, value, 8**-0.5, layout)
        builder.add(SITE, layer, inputs, blockwise_attention(inputs))
        weights = attention_weights(attention_scores(query, key, 8**-0.5), mask)
        everything.append(weights.masked_fill(~mask, torch.nan))
    return builder.build(), torch.stack(everything)


def pooled(exact: Tensor, rows: tuple[int, int], cols: tuple[int, int], step: int, pool: Pool) -> list[list[float]]:
    """Cell by cell, as one would with pencil and paper."""
    cells = []
    for top in range(rows[0] // step * step, rows[1], step):
        line = []
        for left in range(cols[0] // step * step, cols[1], step):
            inside = exact[max(top, rows[0]) : min(top + step, rows[1]), max(left, cols[0]) : min(left + step, cols[1])]
            seen = inside[~inside.isnan()]
            line.append(float("nan") if not len(seen) else float(seen.max() if pool == "max" else seen.mean()))
        cells.append(line)
    return cells


def assert_same(window: Tensor, expected: Tensor) -> None:
    assert window.shape == expected.shape
    torch.testing.assert_close(window, expected, rtol=0, atol=ROUNDING, equal_nan=True)


@pytest.mark.parametrize("window", [None, 20])
def test_a_small_window_is_exact(window: int | None) -> None:
    capture, exact = build(window=window)
    found = capture.window(SITE, 1, 3, (10, 90), (5, 70), 65_536, "max")
    assert (found.row_step, found.col_step) == (1, 1)
    assert_same(found.weights, exact[1, 3, 10:90, 5:70])


def test_an_exact_window_is_read_in_parts_and_makes_no_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of one weight each took three times as long as the weights themselves."""
    capture, exact = build(window=20)
    monkeypatch.setattr("models.capture.PooledCells", None)
    monkeypatch.setattr("models.capture.WEIGHTS_AT_ONCE", 7 * N)
    assert_same(capture.window(SITE, 1, 3, (3, N), None, N * N, "mean").weights, exact[1, 3, 3:])


@pytest.mark.parametrize(
    ("pool", "rows", "cols"), list(product(("max", "mean"), ((0, N), (7, 131), (149, 150)), ((0, N), (50, 149))))
)
def test_a_large_window_is_pooled_in_aligned_cells(pool: Pool, rows: tuple[int, int], cols: tuple[int, int]) -> None:
    capture, exact = build()
    found = capture.window(SITE, 0, 2, rows, cols, 200, pool)
    assert found.weights.numel() <= 200
    if rows == (149, 150):
        assert (found.row_step, found.col_step) == (1, 1)  # one row of at most 200 keys stays as it is
    assert_same(found.weights, torch.tensor(pooled(exact[0, 2], rows, cols, found.col_step, pool)))


@pytest.mark.parametrize(("pool", "rows_at_once"), list(product(("max", "mean"), (1, 7))))
def test_pooling_in_parts_equals_pooling_at_once(
    pool: Pool, rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where all rows lie in one cell: no more of them are read together."""
    capture, exact = build()
    read, right = [], Capture.weights

    def weights(self: Capture, site: str, layer: int, heads: Span, rows: Span, cols: Span) -> Tensor:
        read.append(rows[1] - rows[0])
        return right(self, site, layer, heads, rows, cols)

    monkeypatch.setattr(Capture, "weights", weights)
    monkeypatch.setattr("models.capture.WEIGHTS_AT_ONCE", rows_at_once * N)
    for max_cells in (1, 100):
        found = capture.window(SITE, 0, 0, (5, N), None, max_cells, pool)
        assert_same(found.weights, torch.tensor(pooled(exact[0, 0], (5, N), (0, N), found.col_step, pool)))
    assert max(read) == rows_at_once


def test_steps_are_the_smallest_that_fit() -> None:
    assert fit_steps((0, 256), (0, 256), 65_536) == (1, 1)
    assert fit_steps((0, 257), (0, 256), 65_536) == (2, 2)
    assert fit_steps((0, 4096), (0, 4096), 65_536) == (16, 16)
    assert fit_steps((3, 4), (0, 4096), 65_536) == (1, 1)
    assert fit_steps((3, 4), (0, 4096), 1000) == (1, 5)  # 820 cells; a step of 4 would need 1,024


@pytest.mark.parametrize(("layer", "head"), [(0, "mean"), (1, "max"), ("mean", 2), ("max", "mean"), ("mean", "mean")])
def test_over_heads_and_layers_exact_when_unpooled(layer: int | str, head: int | str) -> None:
    capture, exact = build()
    found = capture.window(SITE, layer, head, (0, 40), (0, 40), 65_536, "max")  # type: ignore[arg-type]
    expected = exact[:, :, :40, :40]
    for axis, how in ((1, head), (0, layer)):
        if isinstance(how, int):
            expected = expected.select(axis, how)
        else:
            expected = expected.mean(axis) if how == "mean" else expected.amax(axis)
    assert_same(found.weights, expected)


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize(("layer", "head"), [(0, "mean"), (1, "max"), ("mean", 2), ("max", "mean")])
def test_over_heads_pooled_is_each_head_pooled_then_reduced(layer: int | str, head: int | str, pool: Pool) -> None:
    capture, exact = build()
    rows, cols = (4, 150), (0, 149)
    found = capture.window(SITE, layer, head, rows, cols, 400, pool)  # type: ignore[arg-type]
    assert (found.rows, found.cols) == (rows, cols)
    assert found.weights.numel() <= 400
    every = torch.stack(
        [torch.tensor([pooled(one, rows, cols, found.col_step, pool) for one in heads]) for heads in exact]
    )
    for axis, how in ((1, head), (0, layer)):
        if isinstance(how, int):
            every = every.select(axis, how)
        else:
            every = every.mean(axis) if how == "mean" else every.amax(axis)
    assert_same(found.weights, every)


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize("max_cells", [400, 4000])
def test_over_very_many_weights_comes_from_the_overview(
    pool: Pool, max_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture, exact = build()
    monkeypatch.setattr("models.capture.WEIGHTS_REDUCED", 0)
    found = capture.window(SITE, 0, "mean", (4, 100), (0, 149), max_cells, pool)
    assert (found.rows, found.cols) == ((3, 102), (0, 150))  # widened to the overview's cells of 3 × 3, and said so
    assert found.weights.numel() <= max_cells
    assert found.row_step % 3 == 0
    every = torch.tensor([pooled(one, found.rows, found.cols, found.col_step, pool) for one in exact[0]])
    assert_same(found.weights, every.mean(0))


def test_a_stored_capture_reads_the_same() -> None:
    capture, _ = build(window=30)
    again = Capture.from_tensors(capture.tensors(), capture.metadata())
    assert again.sites == capture.sites
    assert torch.equal(
        again.window(SITE, 1, 1, None, None, 400, "max").weights.nan_to_num(),
        capture.window(SITE, 1, 1, None, None, 400, "max").weights.nan_to_num(),
    )
    with pytest.raises(ConfigError, match=f"version {VERSION + 1}"):
        Capture.from_tensors(capture.tensors(), {**capture.metadata(), "version": VERSION + 1})


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("site", ("encoder.self", 0, 0, None, None)),
        ("layer", (SITE, 2, 0, None, None)),
        ("layer", (SITE, "min", 0, None, None)),
        ("head", (SITE, 0, -1, None, None)),
        ("rows", (SITE, 0, 0, (5, 5), None)),
        ("cols", (SITE, 0, 0, None, (100, 151))),
    ],
)
def test_out_of_range_names_the_valid_range(name: str, place: tuple[object, ...]) -> None:
    capture, _ = build()
    with pytest.raises(RangeError) as raised:
        capture.window(*place, 100, "max")  # type: ignore[call-arg, arg-type]
    assert raised.value.name == name
    assert raised.value.valid in str(raised.value)
