"""Lenses and units against dense float64 computations from eager weights, and against the models' own projections."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from models import lens_windows, lenses
from models.errors import LensUnavailable, RangeError
from models.huggingface import HuggingFaceModel
from models.lens_windows import Axis, LensRequest, LensWindow, lens_window
from models.lenses import Lens
from models.own import OwnModel
from models.protocol import CaptureReader, Pool, Span
from tests.parity.own import random_ids as own_ids
from tests.parity.own import small_model
from tests.parity.references import eager_attentions
from tests.parity.tiny import looked_into, random_ids

LENGTH = 70
UNITS = Axis([0, 1, 4, 5, 11, 12, 13, 40, 41, 60, 70])  # runs of one to 27 tokens
EXACT = 1e-9  # float64 weights against float64 weights; models with float32 inside differ more, see FLOAT32
FLOAT32 = 1e-5
PROJECTIONS = {
    "gpt2": lambda model, layer: model.transformer.h[layer].attn.c_proj,
    "llama": lambda model, layer: model.model.layers[layer].self_attn.o_proj,
    "gemma2": lambda model, layer: model.model.layers[layer].self_attn.o_proj,
    "gpt_oss": lambda model, layer: model.model.layers[layer].self_attn.o_proj,
    "bert": lambda model, layer: model.encoder.layer[layer].attention.output.dense,
}


def seen(family: str) -> tuple[HuggingFaceModel, CaptureReader, Tensor]:
    """A tiny float64 model, its capture, and the eager weights of all layers (n_layers, n_heads, n, n)."""
    model = looked_into(family, torch.float64)
    ids = random_ids(LENGTH)
    (weights,) = eager_attentions(model.model, ids).values()
    return model, model.run(ids).capture, torch.stack(list(weights)).double()


def ask(capture: CaptureReader, lens: Lens, down: Axis, across: Axis, **changes: Any) -> LensWindow:
    """One window of head 1 of layer 2, unless told otherwise."""
    site = capture.sites[0].site
    options: dict[str, Any] = {"layer": 2, "head": 1, "rows": None, "cols": None, "max_cells": 65_536, "pool": "max"}
    return lens_window(capture, LensRequest(site=site, lens=lens, **{**options, **changes}), down, across)


def dense_lens(lens: Lens, weights: Tensor, layer: int, head: int, lengths: Tensor) -> Tensor:
    """The lens with pencil and paper: (n, n), NaN where hidden."""
    own = weights[layer, head]
    visible = torch.tril(torch.ones_like(own, dtype=torch.bool)) if bool((own.triu(1) == 0).all()) else own == own
    if lens == "rollout":
        rolled = torch.eye(len(own), dtype=own.dtype)
        for each in weights[: layer + 1]:
            rolled = (0.5 * each.mean(0) + 0.5 * torch.eye(len(own), dtype=own.dtype)) @ rolled
        return rolled.masked_fill(~visible, torch.nan)
    if lens == "sink_free":
        rest = own.clone()
        rest[:, 0] = 0
        left = rest.sum(-1, keepdim=True)
        visible[:, 0] = False
        return (rest / left).masked_fill(~visible | (left < 0.01), torch.nan)
    return (own * lengths).masked_fill(~visible, torch.nan)


def over_units(dense: Tensor, rows: Axis, cols: Axis) -> Tensor:
    """Keys summed, queries averaged over the rows that show anything; NaN where nothing is visible."""
    shown = ~dense.isnan().all(-1)
    cells = torch.full((len(rows), len(cols)), torch.nan, dtype=dense.dtype)
    for i, j in product(range(len(rows)), range(len(cols))):
        inside = dense[slice(*rows.tokens((i, i + 1))), slice(*cols.tokens((j, j + 1)))]
        kept = inside[shown[slice(*rows.tokens((i, i + 1)))]]
        if bool((~kept.isnan()).any()):
            cells[i, j] = kept.nansum(-1).mean()
    return cells


def lengths_of(capture: CaptureReader, lens: Lens, model: nn.Module, family: str) -> Tensor:
    """‖v‖, or ‖v · W_O‖ by calling the model's own projection on the head's part alone: (key_len)."""
    site = capture.sites[0]
    value = capture.tensors()[f"{site.site}.2.value"][1 * site.n_kv_heads // site.n_heads]
    if lens == "value":
        return value.square().sum(-1).sqrt()
    joined = torch.zeros(LENGTH, site.n_heads * value.shape[1], dtype=value.dtype)
    joined[:, value.shape[1] : 2 * value.shape[1]] = value
    projection = PROJECTIONS[family](model, 2)
    with torch.no_grad():
        lengths: Tensor = torch.linalg.vector_norm(projection(joined) - projection(torch.zeros_like(joined)), dim=-1)
    return lengths


def largest_of(pictures: Tensor, axis: int) -> Tensor:
    """The largest of what is visible; NaN where nothing is."""
    return pictures.nan_to_num(-1.0).amax(axis).masked_fill(pictures.isnan().all(axis), torch.nan)


def assert_same(found: Tensor, expected: Tensor, bound: float) -> None:
    torch.testing.assert_close(found.double(), expected, rtol=bound, atol=bound, equal_nan=True)


@pytest.mark.parametrize("lens", ["raw", "sink_free", "value", "output", "rollout"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_every_lens_over_every_unit_is_the_dense_computation(family: str, lens: Lens) -> None:
    model, capture, weights = seen(family)
    lengths = lengths_of(capture, lens, model.model, family) if lens in ("value", "output") else torch.ones(LENGTH)
    dense = dense_lens(lens, weights, 2, 1, lengths)
    plain = Axis.of_tokens(LENGTH)
    for rows, cols in product((plain, UNITS), repeat=2):
        found = ask(capture, lens, rows, cols)
        assert_same(found.window.weights, over_units(dense, rows, cols), FLOAT32)
        assert found.largest == (pytest.approx(float(lengths.max())) if lens in ("value", "output") else 1.0)
        assert float(found.window.weights.nan_to_num(0).max()) <= found.largest * (1 + 1e-6)
        if lens in ("raw", "sink_free", "rollout"):
            sums = found.window.weights.nan_to_num(0).sum(-1)
            assert_same(sums[sums > 0], torch.ones(int((sums > 0).sum()), dtype=torch.float64), FLOAT32)
            assert int((sums == 0).sum()) <= (lens == "sink_free" and family != "bert")


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize("lens", ["raw", "sink_free", "output"])
def test_pooled_windows_pool_the_unit_sums(lens: Lens, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    _, capture, _ = seen("llama")
    exact = ask(capture, lens, UNITS, UNITS).window.weights
    for at_once in (1_000_000, 150, 1):
        monkeypatch.setattr(lens_windows, "WEIGHTS_AT_ONCE", at_once)
        found = ask(capture, lens, UNITS, UNITS, rows=(1, 10), cols=(0, 9), max_cells=12, pool=pool).window
        step = found.row_step
        assert (step, found.weights.numel() <= 12) == (3, True)
        for i, j in product(range(found.weights.shape[0]), range(found.weights.shape[1])):
            cell = exact[max(1, i * step) : min(10, (i + 1) * step), j * step : min(9, (j + 1) * step)]
            kept = cell[~cell.isnan()]
            expected = (kept.max() if pool == "max" else kept.mean()) if len(kept) else torch.tensor(torch.nan)
            assert_same(found.weights[i, j], expected.double(), 1e-6)


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize("axis", [Axis.of_tokens(LENGTH), UNITS], ids=["tokens", "units"])
def test_a_large_cell_is_read_a_few_rows_at_a_time(axis: Axis, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    _, capture, _ = seen("llama")
    whole = [ask(capture, "value", axis, axis, max_cells=cells, pool=pool).window.weights for cells in (1, 6)]
    read, part = [], lenses.Scaled.part

    def noted(self: lenses.Scaled, rows: Span, cols: Span) -> tuple[Tensor, Tensor]:
        read.append((rows[1] - rows[0]) * (cols[1] - cols[0]))
        return part(self, rows, cols)

    monkeypatch.setattr(lenses.Scaled, "part", noted)
    monkeypatch.setattr(lens_windows, "WEIGHTS_AT_ONCE", 5 * LENGTH)
    for cells, expected in zip((1, 6), whole, strict=True):
        found = ask(capture, "value", axis, axis, max_cells=cells, pool=pool).window.weights
        assert_same(found, expected.double(), 1e-6)
    assert max(read) == 5 * LENGTH


@pytest.mark.parametrize("family", list(PROJECTIONS))
def test_the_projection_is_the_models_own(family: str) -> None:
    model, capture, _ = seen(family)
    lengths = lengths_of(capture, "output", model.model, family)
    norms = capture.tensors()[f"{capture.sites[0].site}.2.output_norms"]
    assert norms.shape == (capture.sites[0].n_heads, LENGTH)
    assert_same(norms[1], lengths, EXACT)
    weight = capture.weights(capture.sites[0].site, 2, (1, 2), (60, 61), (58, 59)).item()
    found = ask(capture, "output", Axis.of_tokens(LENGTH), Axis.of_tokens(LENGTH), rows=(60, 61), cols=(58, 59))
    assert found.window.weights.item() == pytest.approx(weight * float(lengths[58]), rel=1e-6)


def test_both_texts_of_an_encoder_decoder_have_projections() -> None:
    model = looked_into("t5", torch.float64)
    capture = model.run(random_ids(30), target_ids=random_ids(20, seed=1)).capture
    for site, block, layer in (
        ("encoder.self", "encoder", 0),
        ("decoder.self", "decoder", 0),
        ("decoder.cross", "decoder", 1),
    ):
        value = capture.tensors()[f"{site}.1.value"]  # (n_heads, key_len, d_value)
        attention = getattr(model.model, block).block[1].layer[layer]
        projection = (attention.EncDecAttention if site == "decoder.cross" else attention.SelfAttention).o
        joined = torch.zeros(value.shape[1], value.shape[0] * value.shape[2], dtype=value.dtype)
        joined[:, -value.shape[2] :] = value[-1]
        norms = capture.tensors()[f"{site}.1.output_norms"]
        assert_same(norms[-1], torch.linalg.vector_norm(projection(joined), dim=-1).detach(), EXACT)


def test_our_own_models_have_projections() -> None:
    model = small_model("decoder", torch.float64, n_kv_heads=2)
    capture = (
        OwnModel(model, None, family="own", weight_precision="float64", revision="small")
        .run(own_ids(LENGTH)[0].tolist())
        .capture
    )
    value = capture.tensors()["decoder.self.1.value"]
    projection: Any = next(
        m for n, m in model.named_modules() if n.endswith(("1.attention.output", "1.self_attention.output"))
    )
    joined = torch.zeros(LENGTH, 48, dtype=torch.float64)
    joined[:, 36:] = value[1]
    norms = capture.tensors()["decoder.self.1.output_norms"]
    reference = torch.linalg.vector_norm(projection(joined) - projection(torch.zeros_like(joined)), dim=-1).detach()
    assert_same(norms[3], reference, EXACT)


@pytest.mark.parametrize("how", ["changed", "called twice", "not called", "two"])
def test_a_projection_that_is_not_handed_the_heads_as_they_are_is_not_believed(how: str) -> None:
    model = looked_into("llama")
    attention: Any = model.model.model.layers[1].self_attn
    if how == "changed":
        attention.o_proj.register_forward_pre_hook(lambda _module, args: (args[0] * 0.5,))
    elif how == "called twice":
        attention.o_proj.register_forward_hook(lambda module, args, _output: nn.Linear.forward(module, args[0]))
        attention.register_forward_hook(
            lambda module, _args, output: (module.o_proj(output[0].new_ones(1, LENGTH, 48)), *output[1:])
        )
    elif how == "not called":
        attention.o_proj = nn.Sequential(attention.o_proj)
        attention.dense = nn.Linear(48, 48)
    else:
        attention.dense = nn.Linear(48, 48)
    capture = model.run(random_ids(LENGTH)).capture
    kept = {name for name in capture.tensors() if name.endswith("output_norms")}
    assert kept == {"decoder.self.0.output_norms", "decoder.self.2.output_norms"}
    with pytest.raises(LensUnavailable, match="output projection"):
        ask(capture, "output", UNITS, UNITS, layer=1)
    ask(capture, "output", UNITS, UNITS, layer=0)


@pytest.mark.parametrize(("layer", "head"), [("mean", 0), (1, "max"), ("max", "mean"), ("mean", "mean")])
@pytest.mark.parametrize("lens", ["raw", "sink_free", "value"])
def test_over_heads_and_layers_each_head_comes_first(lens: Lens, layer: int | str, head: int | str) -> None:
    _, capture, _ = seen("gpt2")
    every = torch.stack(
        [
            torch.stack([ask(capture, lens, UNITS, UNITS, layer=i, head=j).window.weights for j in range(6)])
            for i in range(3)
        ]
    )
    for axis, how in ((1, head), (0, layer)):
        if isinstance(how, int):
            every = every.select(axis, how)
        else:
            every = every.nanmean(axis) if how == "mean" else largest_of(every, axis)
    found = ask(capture, lens, UNITS, UNITS, layer=layer, head=head)
    assert_same(found.window.weights, every.double(), 1e-6)


@pytest.mark.parametrize(("cells", "step"), [(90, 1), (16, 3)])
@pytest.mark.parametrize(("layer", "head"), [(2, 1), (2, "mean"), ("mean", 1), ("max", "mean")])
def test_what_is_left_out_and_the_end_of_the_scale_are_those_of_every_head_shown(
    layer: int | str, head: int | str, cells: int, step: int
) -> None:
    _, capture, weights = seen("gpt2")
    layers, of_head = (slice(None) if isinstance(which, str) else slice(which, which + 1) for which in (layer, head))
    first = weights[layers, of_head, :, 0].mean((0, 1))
    of_unit = [first[slice(*UNITS.tokens((at, at + 1)))].mean() for at in range(len(UNITS))]
    of_cell = [torch.stack(of_unit[max(1, at) : at + step]).mean() for at in range(1 // step * step, 10, step)]
    asked: dict[str, Any] = {"layer": layer, "head": head, "rows": (1, 10), "max_cells": cells}
    found = ask(capture, "sink_free", UNITS, UNITS, **asked)
    assert (found.window.row_step, found.largest) == (step, 1.0)
    assert found.removed is not None
    assert_same(found.removed, torch.stack(of_cell), FLOAT32)
    site, kept = capture.sites[0].site, capture.tensors()
    lengths = torch.stack([kept[f"{site}.{at}.value"].square().sum(-1).sqrt() for at in range(3)])
    assert ask(capture, "value", UNITS, UNITS, **asked).largest == pytest.approx(float(lengths[layers, of_head].max()))


def test_what_the_sink_took_is_told_and_a_row_without_more_is_hidden() -> None:
    _, capture, weights = seen("gpt2")
    first = weights[2, 1, :, 0]
    found = ask(capture, "sink_free", Axis.of_tokens(LENGTH), UNITS)
    assert found.removed is not None
    assert_same(found.removed, first, FLOAT32)
    assert found.removed[0] == 1.0
    assert bool(found.window.weights[0].isnan().all())
    by_units = ask(capture, "sink_free", UNITS, UNITS, rows=(1, 10)).removed
    assert by_units is not None
    means = torch.stack([first[slice(*UNITS.tokens((i, i + 1)))].mean() for i in range(1, 10)])
    assert_same(by_units, means, FLOAT32)


def test_rollout_goes_on_from_a_layer_below_and_is_refused_where_it_means_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, capture, _ = seen("gpt2")
    site = capture.sites[0].site
    below = lenses.rollout(capture, site, 0)
    further = lenses.rollout(capture, site, 2, below=below, first=1)
    torch.testing.assert_close(further, lenses.rollout(capture, site, 2), rtol=0, atol=1e-6, equal_nan=True)
    assert not torch.allclose(
        further.nan_to_num(0), lenses.rollout(capture, site, 2, below=below).nan_to_num(0), atol=1e-3
    )
    with pytest.raises(LensUnavailable, match="ends at one layer"):
        ask(capture, "rollout", UNITS, UNITS, layer="mean")
    monkeypatch.setattr(lenses, "ROLLOUT_TOKENS", LENGTH - 1)
    with pytest.raises(LensUnavailable, match="up to 69 tokens; this run has 70"):
        ask(capture, "rollout", UNITS, UNITS)
    seq2seq = looked_into("t5").run(random_ids(9), target_ids=random_ids(7, seed=1)).capture
    with pytest.raises(LensUnavailable, match="two texts"):
        lenses.rollout(seq2seq, "decoder.cross", 0)


def test_a_window_of_sliding_attention_rolls_out_further_than_it_looks() -> None:
    _, capture, weights = seen("mistral")
    rolled = lenses.rollout(capture, capture.sites[0].site, 2)
    assert rolled[40].isfinite().nonzero().min() == 40 - 3 * 3  # three layers of the last four keys
    assert_same(rolled.nan_to_num(0), dense_lens("rollout", weights, 2, 0, torch.ones(1)).nan_to_num(0), FLOAT32)


def test_a_sink_logit_takes_its_part_before_the_first_token_does() -> None:
    _, capture, weights = seen("gpt_oss")
    found = ask(capture, "sink_free", Axis.of_tokens(LENGTH), Axis.of_tokens(LENGTH), layer=0).window.weights
    expected = dense_lens("sink_free", weights, 0, 1, torch.ones(1))
    window = weights[0, 1] > 0
    assert_same(found.nan_to_num(0)[window], expected.nan_to_num(0)[window], FLOAT32)


def test_too_many_heads_at_once_and_ranges_beyond_the_units_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _, capture, _ = seen("gpt2")
    with pytest.raises(RangeError, match="start < stop ≤ 10"):
        ask(capture, "raw", UNITS, UNITS, rows=(0, 11))
    monkeypatch.setattr(lens_windows, "WEIGHTS_REDUCED", 6 * LENGTH * LENGTH - 1)
    with pytest.raises(LensUnavailable, match="over 6 heads this window would read 29400 weights"):
        ask(capture, "raw", UNITS, UNITS, head="mean")
    ask(capture, "raw", UNITS, UNITS, head="mean", rows=(1, 10))


def test_planted_faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    model, capture, weights = seen("llama")
    lengths = lengths_of(capture, "output", model.model, "llama")
    dense = over_units(dense_lens("output", weights, 2, 1, lengths), UNITS, UNITS)
    numbers = Axis.numbers
    monkeypatch.setattr(Axis, "numbers", lambda axis, tokens, first: numbers(axis, tokens, first).clamp(max=3))
    with pytest.raises(AssertionError):
        assert_same(ask(capture, "output", UNITS, UNITS).window.weights, dense, FLOAT32)
    monkeypatch.undo()
    monkeypatch.setattr(lenses, "key_lengths", lambda *_: lengths.flip(0))
    with pytest.raises(AssertionError):
        assert_same(ask(capture, "output", UNITS, UNITS).window.weights, dense, FLOAT32)
