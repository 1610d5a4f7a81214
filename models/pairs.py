"""Query → key pairs: how much every head of a site links the tokens that a reader marked, and what chance would give.

    weight     mean over the queries of a pair of the sum of their weights on its keys
    chance     mean over the same queries of keys of the pair that they see / keys that they see: the weight of uniform
               attention
    corrected  (mean weight − mean chance) / (1 − mean chance), means over the pairs

Read through the capture: only the rows and columns that the pairs name are computed, layers together as far as they fit
in memory. This module knows nothing of tokens, of how a pair is written, or of what is done with the ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from models.capture import check_span
from models.errors import RangeError
from models.masks import MaskLayout
from models.protocol import CaptureReader, SiteDescription, Span

AT_ONCE = 4096  # weights of a head that are computed together although not all of them are asked for
MOST_WEIGHTS = 256_000_000  # over all heads, a few seconds of computing
NUMBERS_IN_MEMORY = 4_000_000  # of the weights read at once, or of what each pair takes of them: 32 MB in float64
DIGITS = 9  # of all figures: as many as tell float32 weights apart
POWERS_OF_TEN = torch.tensor([10.0**n for n in range(23)], dtype=torch.float64)  # all that float64 holds exactly
SMALLEST_ROUNDED = 1e-13  # what is much less would need a larger power of ten


class Pair(NamedTuple):
    """Some neighbouring queries and some neighbouring keys, each a half-open span."""

    query: Span
    key: Span

    def __str__(self) -> str:
        """As people write it: inclusive, 30-31:5-6."""
        sides = ((start, stop - 1) for start, stop in self)
        return ":".join(f"{first}" if first == last else f"{first}-{last}" for first, last in sides)


class PairWeights(NamedTuple):
    """What every head of a site puts on each pair.

    Shapes:  weights (n_layers, n_heads, n_pairs), chances (n_layers, n_pairs), float64
    Values:  0…1, weights but for float32 rounding; NaN in both where the layer's mask hides all of the pair
    """

    weights: Tensor
    chances: Tensor


def pair_weights(capture: CaptureReader, site: str, pairs: Sequence[Pair]) -> PairWeights:
    """Read the weights of all heads on some pairs, exactly.

    Shapes:  see PairWeights
    Values:  keys summed, queries averaged; a query that sees no key at all counts as 0
    Raises:  RangeError, also for a pair that every layer's mask hides and for spans that hold too many weights
    """
    described = capture.site(site)
    _check_spans(described, pairs)
    _check_size(described, max(_area(pair) for pair in pairs))  # groups name the rows and columns of their pairs
    groups = list(_grouped(pairs))
    _check_size(described, sum(group.size for group in groups))
    _check_visible(capture, described, pairs)
    weights = torch.zeros(described.n_layers, described.n_heads, len(pairs), dtype=torch.float64)
    chances = torch.zeros(described.n_layers, len(pairs), dtype=torch.float64)
    known: dict[int, Tensor] = {}
    for layer in range(described.n_layers):
        mask = capture.mask(site, layer)
        if id(mask) not in known:
            known[id(mask)] = torch.stack([_chance(mask, pair) for pair in pairs])
        chances[layer] = known[id(mask)]
    for group in groups:
        _add_group(capture, described, group, weights)
    weights /= torch.tensor([pair.query[1] - pair.query[0] for pair in pairs])
    return PairWeights(weights.masked_fill(chances.isnan()[:, None], torch.nan), chances)


def pair_figures(found: PairWeights) -> list[dict[str, Any]]:
    """Sum the pairs up for each head.

    Values:  by layer, then head: {"weights", "chances": one per pair, NaN where masked; "mean", "chance": over all
             pairs, masked ones as 0; "corrected": NaN where the weight is forced}; all NaN where all are masked
    """
    hidden = found.chances.isnan().all(-1)  # (n_layers)
    means = found.weights.nan_to_num(0.0).mean(-1).masked_fill(hidden[:, None], torch.nan)
    chance = found.chances.nan_to_num(0.0).mean(-1).masked_fill(hidden, torch.nan)
    room = 1 - chance
    corrected = (means - chance[:, None]) / room.masked_fill(room < 1e-9, torch.nan)[:, None]  # 0 but for rounding
    of_layers = (to_digits(values).tolist() for values in (found.chances, chance))
    of_heads = (to_digits(values).tolist() for values in (found.weights, means, corrected))
    return [
        {"weights": weights, "chances": chances, "mean": mean, "chance": mean_chance, "corrected": over_chance}
        for chances, mean_chance, *heads in zip(*of_layers, *of_heads, strict=True)
        for weights, mean, over_chance in zip(*heads, strict=True)
    ]


def to_digits(values: Tensor) -> Tensor:
    """Round to DIGITS digits, so that they are short to write.

    Shapes:  any, float64 -> same
    Values:  NaN stays, as does what is smaller than SMALLEST_ROUNDED
    """
    exponents = values.abs().log10().floor()
    scale = POWERS_OF_TEN[(DIGITS - 1 - exponents).nan_to_num(0.0).clamp(0, len(POWERS_OF_TEN) - 1).long()]
    return torch.where(values.abs() < SMALLEST_ROUNDED, values, (values * scale).round() / scale)


# ------------------------------------------------------------------------------------------------------------ one group


class _Group(NamedTuple):
    """Pairs that are computed together: each with its place among all, and the rows and columns that they need."""

    pairs: tuple[tuple[int, Pair], ...]
    rows: frozenset[int]
    cols: frozenset[int]

    def with_pair(self, number: int, pair: Pair) -> _Group:
        """The group and one more pair."""
        return _Group((*self.pairs, (number, pair)), self.rows | {*range(*pair.query)}, self.cols | {*range(*pair.key)})

    @property
    def size(self) -> int:
        return len(self.rows) * len(self.cols)


NO_PAIRS = _Group((), frozenset(), frozenset())


def _grouped(pairs: Sequence[Pair]) -> Iterator[_Group]:
    # Together as long as that is small, or wastes little: ten single tokens are one product, two sentences are two.
    group = NO_PAIRS
    for number, pair in enumerate(pairs):
        larger = group.with_pair(number, pair)
        if group.pairs and larger.size > max(AT_ONCE, sum(_area(one) for _, one in larger.pairs)):
            yield group
            larger = NO_PAIRS.with_pair(number, pair)
        group = larger
    yield group


def _area(pair: Pair) -> int:
    """How many weights of one head a pair is about."""
    return (pair.query[1] - pair.query[0]) * (pair.key[1] - pair.key[0])


def _add_group(capture: CaptureReader, described: SiteDescription, group: _Group, weights: Tensor) -> None:
    # weights (n_layers, n_heads, n_pairs): adds what the group's pairs get, a part of the rows at a time
    heads, all_rows, cols = (0, described.n_heads), sorted(group.rows), sorted(group.cols)
    numbers = [number for number, _ in group.pairs]
    keys = _inside(cols, [pair.key for _, pair in group.pairs]).T  # (cols, pairs)
    of_row = described.n_heads * max(len(cols), len(numbers))
    step = max(1, NUMBERS_IN_MEMORY // of_row)
    for first in range(0, len(all_rows), step):
        rows = all_rows[first : first + step]
        queries = _inside(rows, [pair.query for _, pair in group.pairs]).T  # (rows, pairs)
        at_once = max(1, NUMBERS_IN_MEMORY // (of_row * len(rows)))
        for layer in range(0, described.n_layers, at_once):
            layers = (layer, min(layer + at_once, described.n_layers))
            exact = capture.weights_of_layers(described.site, layers, heads, rows, cols).double()
            weights[slice(*layers), :, numbers] += ((exact @ keys) * queries).sum(-2)


def _inside(indices: list[int], spans: Sequence[Span]) -> Tensor:
    # (spans, indices): 1 where the index is in the span, else 0
    place, ends = torch.tensor(indices), torch.tensor(spans)
    return ((place >= ends[:, :1]) & (place < ends[:, 1:])).double()


def _chance(mask: MaskLayout, pair: Pair) -> Tensor:
    seen = _keys_seen(mask, pair)
    of_all = mask.visible_counts()[slice(*pair.query)]
    return torch.where(seen.any(), (seen / of_all.clamp(min=1).double()).mean(), torch.nan)


def _keys_seen(mask: MaskLayout, pair: Pair) -> Tensor:
    # (queries), int64: how many keys of the pair each of its queries sees; of a run of keys its two ends tell
    if mask.dense is not None:
        return mask.visible(pair.query, pair.key).sum(-1)
    starts, stops = mask.starts[slice(*pair.query)], mask.stops[slice(*pair.query)]
    return (stops.clamp(max=pair.key[1]) - starts.clamp(min=pair.key[0])).clamp(min=0)


# ------------------------------------------------------------------------------------------------------------- refusals


def _check_spans(described: SiteDescription, pairs: Sequence[Pair]) -> None:
    queries, keys = described.query_len, described.key_len
    valid = f"query:key, queries 0 to {queries - 1}, keys 0 to {keys - 1}, in a-b with a <= b"
    for pair in pairs:
        for span, length in zip(pair, (queries, keys), strict=True):
            try:
                check_span("pairs", span, length)
            except RangeError:
                raise RangeError("pairs", pair, valid) from None


def _check_visible(capture: CaptureReader, described: SiteDescription, pairs: Sequence[Pair]) -> None:
    masks = {id(mask): mask for mask in (capture.mask(described.site, i) for i in range(described.n_layers))}
    for pair in pairs:
        if any(bool(_keys_seen(mask, pair).any()) for mask in masks.values()):
            continue
        ranges = [mask.key_range(pair.query) for mask in masks.values()]
        seen = [(first, last) for first, last in ranges if last > first]
        if not seen:
            raise RangeError("pairs", pair, "a query that may attend to any key at all")
        first, last = min(start for start, _ in seen), max(stop for _, stop in seen) - 1
        raise RangeError("pairs", pair, f"a key that its query may attend to, among {first} to {last}")


def _check_size(described: SiteDescription, of_one_head: int) -> None:
    needed = of_one_head * described.n_layers * described.n_heads
    if needed > MOST_WEIGHTS:
        raise RangeError("pairs", f"{needed} weights", f"spans of at most {MOST_WEIGHTS} weights over all heads")
