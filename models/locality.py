"""How far each layer reaches: its mass by distance, averaged over its heads, beside what equal weights would give.

Two versions: all keys, and without the first key, which many heads look at whatever the text (then over the heads that
have something left). Verdicts sum up runs of layers of one kind, with their numbers; warnings name what wastes
capacity: high layers that are all local, or heads of a layer that do the same. What a layer is said to do over all keys
is said of what remains where the first key takes SINK_LARGE of its weight: that weight lies as far away as the row is
long, whatever the layer reads. Works on figures collected in the pass (`models/head_stats.py`); reads no weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from models.diagonals import sum_by_offset
from models.head_scores import binned, distance_bins, rounded, within
from models.head_targets import MIN_ROWS, NEAR
from models.masks import ROWS_AT_ONCE, MaskLayout

HELD_NEAR, ABOVE_CHANCE = 0.5, 2.0  # a layer is "near" if it holds so much within NEAR, and so many times the chance
FURTHER = 1.2  # and "far" if its mean distance is so many times that of equal weights; "even" if within that factor
# Under a causal mask the first key is twice as far away as equal weights are in the mean: this share of it beside equal
# weights is enough to make a layer "far".
SINK_LARGE = FURTHER - 1
HIGH = 3  # the last of so many equal parts of the layers are the high ones

Answer = dict[str, Any]


def layer_locality(figures: Mapping[str, Tensor], masks: Sequence[MaskLayout]) -> Answer:
    """Sum up the layers of a site whose queries and keys are the same positions.

    Shapes:  figures: as HeadCollector.figures gives them, layers first; masks: one a layer
    Values:  {"bins": half-open distances, "near": NEAR, "layers": [{"layer", "sink": mean mass on the first key or
             None, "of": the version that "all" is told of, and per version ("all", "first") either
             None or {distance: {mean, spread, low, high (over heads), uniform},
             window: {within_50, within_90, uniform_50, uniform_90}, near: {share, chance}, curve, uniform_curve (mass
             by bin), kind, heads}}],
             "verdicts" per version: [{code, layers: [first, last], of, sink, share, chance, mean, uniform, whole: the
             four over all keys where a verdict under "all" is of what remains, else None}]; code "sink" where next to
             nothing remains. "warnings" per version: [{code: "high_layers_local", layers, share, chance}]}
    """
    length = figures["by_distance"].shape[-1]
    expected = _Expected()
    layers: list[Answer] = []
    for number, mask in enumerate(masks):
        sink = _sink({name: values[number, 1] for name, values in figures.items()})
        answer: Answer = {"layer": number, "sink": sink}
        for at, version in enumerate(("all", "first")):
            found = {name: values[number, at] for name, values in figures.items()}
            answer[version] = _layer(found, expected.curve(mask, found["row_share"], version == "first"))
        answer["of"] = "first" if sink is not None and sink >= SINK_LARGE else "all"
        layers.append(answer)
    verdicts = {"all": _verdicts(layers, None), "first": _verdicts(layers, "first")}
    return {
        "bins": distance_bins(length),
        "near": NEAR,
        "layers": layers,
        "verdicts": verdicts,
        "warnings": {"all": _warnings(layers, None), "first": _warnings(layers, "first")},
    }


class _Expected:
    """Curves of equal weights; most layers share a mask and the rows that count."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], tuple[Tensor, Tensor]] = {}

    def curve(self, mask: MaskLayout, rows: Tensor, without_first: bool) -> Tensor:
        # (query_len): see uniform_by_distance
        known = self._known.get((id(mask), without_first))
        if known is None or not torch.equal(known[0], rows):
            known = (rows, uniform_by_distance(mask, rows, without_first=without_first))
            self._known[id(mask), without_first] = known
        return known[1]


def uniform_by_distance(mask: MaskLayout, rows: Tensor, *, without_first: bool = False) -> Tensor:
    """Mass at each |query − key| when every row spreads evenly over the keys that it sees.

    Shapes:  rows (query_len), float64, what each row counts for -> (query_len), float64
    """
    n = mask.query_len
    if mask.dense is not None:
        return _uniform_of_dense(mask.dense, rows, without_first=without_first)
    query_pos = torch.arange(n)
    starts = mask.starts.clamp(min=1) if without_first else mask.starts
    stops = torch.maximum(mask.stops, starts)
    share = rows / (stops - starts).clamp(min=1)
    edges = torch.zeros(n + 2, dtype=torch.float64)
    back = (query_pos - torch.minimum(stops - 1, query_pos), query_pos - starts)  # from the nearest to the furthest
    ahead = (torch.maximum(starts, query_pos + 1) - query_pos, stops - 1 - query_pos)
    for nearest, furthest in (back, ahead):
        some = share * (furthest >= nearest)  # none of a row without keys
        edges.index_add_(0, nearest.clamp(0, n), some)
        edges.index_add_(0, (furthest + 1).clamp(0, n + 1), -some)
    return edges.cumsum(0)[:n]


def _uniform_of_dense(mask: Tensor, rows: Tensor, *, without_first: bool) -> Tensor:
    n, total = len(rows), torch.zeros(2 * len(rows) - 1, dtype=torch.float64)  # by key − query + n − 1
    for first in range(0, n, ROWS_AT_ONCE):
        seen = mask[first : first + ROWS_AT_ONCE].double()
        if without_first:
            seen[:, 0] = 0.0
        share = rows[first : first + ROWS_AT_ONCE] / seen.sum(-1).clamp(min=1)
        offset, sums = sum_by_offset(seen[None], share[None, None], first, looks_back=False)
        total[offset + n - 1 : offset + n - 1 + sums.shape[2]] += sums[0, 0]
    by_distance = total[:n].flip(0)
    by_distance[1:] += total[n:]
    return by_distance


def _layer(figures: Mapping[str, Tensor], uniform: Tensor) -> Answer | None:
    # heads with enough rows, and with numbers: a pass that gave none fails its card
    told = (figures["entropy"][2] >= MIN_ROWS) & figures["entropy"][0].isfinite()
    if not bool(told.any()):
        return None
    mass = figures["by_distance"][told].double()  # (heads, distances)
    steps = torch.arange(mass.shape[1], dtype=torch.float64)
    means, curve = mass @ steps, mass.mean(0)
    layer = {
        "distance": {
            "mean": means.mean(),
            "spread": means.std(correction=0),
            "low": means.min(),
            "high": means.max(),
            "uniform": uniform @ steps,
        },
        "window": {
            f"{name}_{round(share * 100)}": int(within(values[None], share))
            for name, values in (("within", curve), ("uniform", uniform))
            for share in (0.5, 0.9)
        },
        "near": {"share": curve[: NEAR + 1].sum(), "chance": uniform[: NEAR + 1].sum()},
        "curve": binned(curve[None])[0],
        "uniform_curve": binned(uniform[None])[0],
        "heads": int(told.sum()),
    }
    plain = _plain(layer)
    return {**plain, "kind": _kind(plain)}


def _kind(layer: Answer) -> str:
    near, distance = layer["near"], layer["distance"]
    if near["share"] >= HELD_NEAR and near["share"] >= ABOVE_CHANCE * near["chance"]:
        return "near"
    if distance["mean"] >= FURTHER * distance["uniform"]:
        return "far"
    return "even" if distance["mean"] * FURTHER >= distance["uniform"] else "between"


def _sink(without_first: Mapping[str, Tensor]) -> float | None:
    # the mean over heads of the mass that leaving out the first key takes away
    shares, rows = without_first["removed"]
    told = (rows >= MIN_ROWS) & shares.isfinite()
    return rounded(float(shares[told].mean())) if bool(told.any()) else None


def _told(layer: Answer, version: str | None) -> tuple[str, str] | None:
    # what a layer does and which version says so: the asked one, or the one that its sink leaves
    of = version or layer["of"]
    if layer[of] is not None:
        return layer[of]["kind"], of
    return ("sink", of) if version is None and of == "first" and layer["all"] is not None else None


def _verdicts(layers: Sequence[Answer], version: str | None) -> list[Answer]:
    verdicts = []
    for told, run in groupby(layers, key=lambda layer: _told(layer, version)):
        if told is None:  # layers without figures part those around them
            continue
        members, (code, of) = list(run), told
        apart = of == "first" and version is None
        left = None if code == "sink" else _averages([layer[of] for layer in members])
        whole = _averages([layer["all"] for layer in members]) if apart else None
        verdicts.append(
            {
                "code": code,
                "layers": [members[0]["layer"], members[-1]["layer"]],
                "of": of,
                "sink": rounded(sum(layer["sink"] for layer in members) / len(members)) if apart else None,
                **(left or whole or {}),
                "whole": whole,
            }
        )
    return verdicts


def _averages(found: Sequence[Answer]) -> Answer:
    places = {"share": "near", "chance": "near", "mean": "distance", "uniform": "distance"}
    return {name: rounded(sum(layer[part][name] for layer in found) / len(found)) for name, part in places.items()}


def _warnings(layers: Sequence[Answer], version: str | None) -> list[Answer]:
    high = layers[len(layers) - len(layers) // HIGH :]
    told = [_told(layer, version) for layer in high]
    if not high or any(one is None or one[0] != "near" for one in told):
        return []
    averages = _averages([layer[one[1]] for layer, one in zip(high, told, strict=True) if one is not None])
    numbers = {name: averages[name] for name in ("share", "chance")}
    return [{"code": "high_layers_local", "layers": [high[0]["layer"], high[-1]["layer"]], **numbers}]


def _plain(values: Mapping[str, Any]) -> Answer:
    # tensors become rounded numbers and lists
    return {name: _plain(value) if isinstance(value, Mapping) else _number(value) for name, value in values.items()}


def _number(value: Tensor | int) -> int | float | list[float]:
    if isinstance(value, int):
        return value
    return rounded(value.item()) if value.dim() == 0 else [rounded(one) for one in value.tolist()]
