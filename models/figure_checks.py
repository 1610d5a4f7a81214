"""Checks of what is told about weights: overviews, row figures and head figures, against weights that are read back.

Some of it is an identity that holds in every cell and head, and costs next to nothing; a few cells and the sampled rows
of every head are compared with exact windows. This module knows neither models nor how a card is worded.
"""

from __future__ import annotations

import torch
from torch import Tensor

from models.capture import Capture
from models.capture_checks import ReadRows
from models.card import Check
from models.checks import bounded, nan_is_worst, worse
from models.head_sums import LEFT
from models.head_targets import PLACE
from models.masks import MaskLayout
from models.protocol import SiteDescription, Span

# All of it is read from the same float32 weights; sums of up to 64 cells of some thousand weights differ in their last
# digits. Seen: 6e-6. A figure × 0.999 would still show.
FIGURES = 5e-4
TINY = 1e-6  # below which a difference is not put in relation to what it is a difference of
CELLS = 3
TINY_LOG = 1e-37  # inside w ln w, which is 0 for w = 0


def overviews_check(capture: Capture, seed: int) -> Check:
    """Compare overviews with weights: every row of cells as a whole, and a few cells of every head exactly."""
    errors = {"sums": 0.0, "largest": 0.0, "cells": 0.0}
    for described in capture.sites:
        for layer in range(described.n_layers):
            sums, largest = _whole_rows(capture, described, layer)
            errors["sums"], errors["largest"] = worse(errors["sums"], sums), worse(errors["largest"], largest)
        errors["cells"] = worse(errors["cells"], _few_cells(capture, described, seed))
    detail = {"errors": errors, "cells_per_head": CELLS}
    return bounded("overviews", max(errors.values(), key=nan_is_worst), FIGURES, detail)


def _whole_rows(capture: Capture, described: SiteDescription, layer: int) -> tuple[float, float]:
    # The means of a row of cells, times the weights in them, are the sums of its rows; its largest is their largest.
    site, steps = described.site, (described.row_step, described.col_step)
    rows = {name: values[layer] for name, values in capture.row_stats(site).items()}
    share = capture.sink_share(site, layer)
    total = (rows["row_sum"] > 0).to(rows["row_sum"].dtype)  # (n_heads, query_len): 0 without keys
    if share is not None:
        total = total - share
    counts = capture.mask(site, layer).cell_counts(*steps)
    mean = capture.overview(site, "mean")[layer]
    in_rows = _by_cell(total, steps[0]).sum(-1)
    error = float(((mean * counts).sum(-1) - in_rows).abs().div(in_rows.clamp(min=1.0)).max())
    if share is not None:
        return error, 0.0  # which score was the largest key's is not kept where a sink may be above it
    top = torch.where(rows["row_sum"] > 0, 1 / rows["row_sum"].clamp(min=TINY), 0.0)
    largest = capture.overview(site, "max")[layer].amax(-1)
    of_rows = _by_cell(top, steps[0]).amax(-1)
    return error, float((largest - of_rows).abs().div(of_rows.clamp(min=TINY)).max())


def _by_cell(rows: Tensor, step: int) -> Tensor:
    # (n_heads, query_len) -> (n_heads, cells, step), padded with 0
    padded = torch.nn.functional.pad(rows, (0, -rows.shape[1] % step))
    cells: Tensor = padded.unflatten(1, (-1, step))
    return cells


def _few_cells(capture: Capture, described: SiteDescription, seed: int) -> float:
    site, layers, heads = described.site, (0, described.n_layers), (0, described.n_heads)
    pictures = {pool: capture.overview(site, pool) for pool in ("max", "mean")}
    found: dict[str, list[Tensor]] = {"max": [], "mean": []}
    shown: dict[str, list[Tensor]] = {"max": [], "mean": []}
    for row, col in _chosen_cells(described, seed):
        rows = _span(row, described.row_step, described.query_len)
        cols = _span(col, described.col_step, described.key_len)
        weights = capture.weights_of_layers(site, layers, heads, rows, cols).flatten(2)
        visible = [capture.mask(site, layer).visible(rows, cols).sum() for layer in range(*layers)]
        found["max"].append(weights.amax(-1))
        found["mean"].append(weights.sum(-1) / torch.stack(visible).clamp(min=1)[:, None])
        for pool, picture in pictures.items():
            shown[pool].append(picture[:, :, row, col])
    error = 0.0
    for pool in pictures:
        exact, drawn = torch.stack(found[pool]), torch.stack(shown[pool]).to(found[pool][0].dtype)
        scale = exact.amax(0).clamp(min=TINY)  # of each head: its largest cell among these
        error = worse(error, float(((drawn - exact).abs() / scale).max()))
    return error


def _chosen_cells(described: SiteDescription, seed: int) -> list[tuple[int, int]]:
    # the last rows with the first keys, where sinks are; the end of the diagonal; one drawn anew
    n_rows, n_cols = (
        -(-length // step)
        for length, step in (
            (described.query_len, described.row_step),
            (described.key_len, described.col_step),
        )
    )
    drawn = torch.rand(2, generator=torch.Generator().manual_seed(seed)).tolist()
    row = int(drawn[0] * n_rows)
    return [(n_rows - 1, 0), (n_rows - 1, n_cols - 1), (row, int(drawn[1] * min(row + 1, n_cols)))]


def _span(cell: int, step: int, length: int) -> Span:
    return cell * step, min((cell + 1) * step, length)


def figures_check(read: list[ReadRows], capture: Capture) -> Check:
    """Compare row figures with the rows that were read back, and head figures with the rows' figures."""
    errors: dict[str, float] = {}
    for rows in read:
        site, layer = rows.module.site, rows.module.layer
        stats = {name: values[layer] for name, values in capture.row_stats(site).items()}
        found = _of_rows(rows, stats)
        figures = {name: values[layer] for name, values in capture.figures(site).items()}
        if figures:
            found |= _of_heads(figures, stats, capture.mask(site, layer), capture.sink_share(site, layer))
            found["most_read"] = _most_read(figures, capture, rows, stats)
        for name, error in found.items():
            errors[name] = worse(errors.get(name, 0.0), error)
    worst = max(errors, key=lambda name: nan_is_worst(errors[name]), default="")
    detail = {"worst": worst, "errors": errors}
    return bounded("figures", errors.get(worst, 0.0), FIGURES, detail)


def _of_rows(rows: ReadRows, stats: dict[str, Tensor]) -> dict[str, float]:
    weights, at = rows.weights.double(), torch.tensor(rows.module.rows)
    total = weights.sum(-1)
    exact = {"first": weights[..., 0], "entropy": -(weights * weights.clamp(min=TINY_LOG).log()).sum(-1)}
    if "distance" in stats:
        away = (at[:, None] - torch.arange(weights.shape[-1])).abs().double()
        exact["distance"] = (weights * away).sum(-1)
        exact["self"] = weights[:, torch.arange(len(at)), at]
        before = weights[:, torch.arange(len(at)), (at - 1).clamp(min=0)]
        exact["previous"] = before.masked_fill(at == 0, 0.0)
    # a mean distance is a difference of float32 sums over positions, whose last digits grow with the text
    least = {"distance": max(1.0, weights.shape[-1] / 500)}
    errors = {
        name: float(((stats[name][:, at].double() - values).abs() / values.abs().clamp(min=least.get(name, 1.0))).max())
        for name, values in exact.items()
    }
    top = stats["top_key"][:, at].long()
    at_top = weights.gather(-1, top.clamp(min=0)[..., None])[..., 0]
    short = (weights.amax(-1) - at_top).masked_fill((top < 0) & (total == 0), 0.0)
    return errors | {"top_key": float(short.max())}


def _of_heads(
    figures: dict[str, Tensor], stats: dict[str, Tensor], mask: MaskLayout, share: Tensor | None
) -> dict[str, float]:
    # what the figures over all keys must be by the rows' figures; of each score that has them: score, chance, rows
    n, visible = mask.query_len, mask.visible_counts().cpu()
    left = torch.ones(len(stats["first"]), n, dtype=torch.float64) if share is None else 1.0 - share.double()
    usable = (visible >= 2) * (left >= LEFT).double()
    n_rows = usable.sum(-1)
    entropy = (stats["entropy"].double() / left.clamp(min=LEFT) + left.clamp(min=LEFT).log()) * usable
    errors = {"mean_entropy": _apart(figures["entropy"][0, 0], entropy.sum(-1) / n_rows.clamp(min=1))}
    keys = {"first": torch.zeros(n, dtype=torch.int64)}
    if "self" in stats:
        keys |= {"self": torch.arange(n), "previous": torch.arange(-1, n - 1)}
    for name, key in keys.items():
        rows = _sees(mask, key) * usable
        chance = rows / visible.clamp(min=1)
        of_score = torch.stack([(stats[name].double() * rows).sum(-1), chance.sum(-1)]) / rows.sum(-1).clamp(min=1)
        exact = torch.stack([*of_score, rows.sum(-1)])
        errors[f"score_{name}"] = _apart(figures["scores"][0, PLACE[name]], exact)
    if "by_distance" in figures:
        some = figures["scores"].new_tensor(1.0) * (n_rows > 0)
        errors["by_distance"] = _apart(figures["by_distance"][0].double().sum(-1), some)
        shares = figures["row_share"].sum(-1)
        errors["row_share"] = float((shares * (1 - shares)).abs().max())  # 1, or 0 without rows
        far = (usable @ mask.mean_distances().cpu()) / n_rows.clamp(min=1)
        errors["uniform_distance"] = _apart(figures["uniform_distance"][0], far)
    if len(figures["removed"]) > 1:
        seen = (visible >= 2).double()
        first = stats["first"].double() @ seen / seen.sum().clamp(min=1)
        errors["removed"] = _apart(figures["removed"][1, 0], first)
    return errors


def _sees(mask: MaskLayout, keys: Tensor) -> Tensor:
    # (query_len), float64: 1 where query i sees keys[i]
    if mask.dense is not None:
        seen = mask.dense.cpu()[torch.arange(len(keys)), keys.clamp(min=0)] & (keys >= 0)
    else:
        seen = (mask.starts.cpu() <= keys) & (keys < mask.stops.cpu()) & (keys >= 0)
    return seen.double()


def _most_read(figures: dict[str, Tensor], capture: Capture, rows: ReadRows, stats: dict[str, Tensor]) -> float:
    # the column of the most-read key, of one head of each module: another head in each layer
    module, n_heads = rows.module, len(stats["first"])
    head = (module.layer + module.rows[len(module.rows) // 2]) % n_heads
    share, key, _chance, n_rows = (float(number) for number in figures["concentration"][0, :, head])
    if n_rows == 0:
        return abs(share)
    key_at = int(key)
    if not 0 <= key_at < rows.weights.shape[-1] or key_at != key:
        return float("inf")
    described = capture.site(module.site)
    column = capture.weights(
        module.site, module.layer, (head, head + 1), (0, described.query_len), (key_at, key_at + 1)
    )
    usable = (capture.mask(module.site, module.layer).visible_counts().cpu() >= 2).double()
    sinks = capture.sink_share(module.site, module.layer)
    if sinks is not None:
        usable = usable * (1.0 - sinks[head] >= LEFT).double()
    return abs(share - float((column[0, :, 0].double() * usable).sum() / n_rows))


def _apart(told: Tensor, exact: Tensor) -> float:
    return float(((told.double() - exact).abs() / exact.abs().clamp(min=1.0)).max())
