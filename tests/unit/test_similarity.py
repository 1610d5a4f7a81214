"""How alike heads are: distances equal a dense computation, copies of a head are found, the map does not wander."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from models import similarity as module
from models.attention import causal_mask, sliding_window_mask
from models.blockwise import AttentionInputs, blockwise_attention
from models.capture import Capture
from models.capture_builder import CaptureBuilder
from models.masks import MaskLayout
from models.similarity import (
    Similarity,
    alike_within_layers,
    cluster_order,
    head_distances,
    layout,
    similarity,
    usable_rows,
)

SITE, LAYERS, HEADS, N = "decoder.self", 3, 4, 200
SQUARES = 2e-6  # of squared distances: float32 products summed over 128 rows, against float64
NEARBY = 1.5e-3  # its square root, which is what equal heads come out at


def build(*masks: Tensor, sinks: bool = False, copies: dict[tuple[int, int], tuple[int, int]] | None = None) -> Capture:
    """A capture of random heads, of one mask or one for each layer; `copies` gives a head another's query and key."""
    layouts, builder = [MaskLayout.from_mask(mask) for mask in masks], CaptureBuilder()
    query_len, key_len = masks[0].shape
    queries, keys = torch.randn(LAYERS, HEADS, query_len, 8) * 2, torch.randn(LAYERS, HEADS, key_len, 8)
    for place, of in (copies or {}).items():
        queries[place], keys[place] = queries[of].clone(), keys[of].clone()
    for layer in range(LAYERS):
        logits = torch.linspace(-1, 3, HEADS) if sinks else None
        inputs = AttentionInputs(
            queries[layer], keys[layer], keys[layer], 8**-0.5, layouts[layer % len(layouts)], sink_logits=logits
        )
        builder.add(SITE, layer, inputs, blockwise_attention(inputs))
    return builder.build()


def dense(capture: Capture, rows: list[int]) -> Tensor:
    """Squared distances in float64, pair of heads by pair of heads, a sink as one more key."""
    parts = []
    for layer in range(LAYERS):
        weights = capture.weights(
            SITE, layer, (0, HEADS), (0, capture.sites[0].query_len), (0, capture.sites[0].key_len)
        )
        share = capture.sink_share(SITE, layer)
        more = torch.zeros(HEADS, weights.shape[1]) if share is None else share
        parts.append(torch.cat([weights, more[..., None]], -1)[:, rows].double())
    heads = torch.cat(parts)
    return torch.stack([torch.stack([1 - (p * q).sqrt().sum(-1).mean() for q in heads]) for p in heads])


WINDOW = causal_mask(N) & sliding_window_mask(N, window=20)
ALONE = causal_mask(N)  # up to the 40th each token sees itself alone
ALONE[:40] = torch.eye(N, dtype=torch.bool)[:40]


@pytest.mark.parametrize(
    ("masks", "sinks"),
    [
        ([causal_mask(N)], False),
        ([WINDOW], False),
        ([WINDOW, causal_mask(N), ALONE], False),
        ([torch.ones(N, 70, dtype=torch.bool)], False),
        ([causal_mask(N)], True),
    ],
    ids=["causal", "window", "mixed", "cross", "sinks"],
)
@pytest.mark.parametrize("in_memory", [20_000_000, 1])
def test_distances_are_those_of_a_dense_computation(
    masks: list[Tensor], sinks: bool, in_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VALUES_IN_MEMORY", in_memory)
    monkeypatch.setattr(module, "HEADS_AT_ONCE", 5)
    capture = build(*masks, sinks=sinks)
    site = capture.sites[0]
    rows = usable_rows(capture, site)[:: 1 if in_memory > 1 else 12]  # a column at a time is slow
    found = head_distances(capture, site, rows)
    torch.testing.assert_close(found.double() ** 2, dense(capture, rows).fill_diagonal_(0), rtol=0, atol=SQUARES)
    assert torch.equal(found, found.T)


def test_a_lost_row_is_seen() -> None:
    capture = build(causal_mask(N))
    rows = usable_rows(capture, capture.sites[0])
    found = head_distances(capture, capture.sites[0], rows[:-1])
    with pytest.raises(AssertionError):
        torch.testing.assert_close(found.double() ** 2, dense(capture, rows).fill_diagonal_(0), rtol=0, atol=SQUARES)


def test_rows_are_evenly_spaced_and_see_two_keys() -> None:
    capture = build(causal_mask(N))
    rows = usable_rows(capture, capture.sites[0])
    assert (len(rows), rows[0], rows[-1]) == (128, 1, N - 1)
    steps = {after - before for before, after in pairwise(rows)}
    assert steps == {1, 2}
    few, fewer = build(causal_mask(9)), build(causal_mask(8))
    assert usable_rows(few, few.sites[0]) == list(range(1, 9))
    assert usable_rows(fewer, fewer.sites[0]) == [], "as with all figures"


def test_rows_see_two_keys_in_every_layer() -> None:
    capture = build(causal_mask(N), ALONE, WINDOW)
    rows = usable_rows(capture, capture.sites[0])
    assert (len(rows), rows[0], rows[-1]) == (128, 40, N - 1)


@pytest.mark.parametrize(("weights", "rows"), [(20, 20), (1, 16), (1000, 128)])
def test_many_heads_of_a_long_text_are_compared_in_fewer_rows(
    weights: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = build(causal_mask(N))
    (site,) = capture.sites
    monkeypatch.setattr("models.similarity.WEIGHTS_READ", weights * site.n_layers * site.n_heads * site.key_len)
    found = usable_rows(capture, site)
    assert (len(found), found[0], found[-1]) == (rows, 1, N - 1)


def test_copies_of_a_head_are_found_and_put_side_by_side() -> None:
    capture = build(causal_mask(N), copies={(2, 3): (0, 1), (1, 2): (1, 0)})
    found = similarity(capture, capture.sites[0])
    pairs = {(one, other): distance for one, other, distance in found.duplicates}
    assert set(pairs) == {(1, 2 * HEADS + 3), (HEADS, HEADS + 2)}
    assert max(pairs.values()) <= NEARBY
    assert found.duplicates_in_all == 2
    assert sorted(found.order) == list(range(LAYERS * HEADS))
    for one, other in pairs:
        assert abs(found.order.index(one) - found.order.index(other)) == 1
        assert torch.dist(found.positions[one], found.positions[other]) <= NEARBY
    first, second, third = alike_within_layers(found.distances, HEADS)
    assert (first, third) == ([], [])
    assert [(one, other) for one, other, distance in second if distance <= NEARBY] == [(0, 2)]


def test_the_map_is_the_same_every_time_and_keeps_flat_distances() -> None:
    points = torch.randn(250, 2, dtype=torch.float64)
    distances = torch.cdist(points, points) / 10
    found = layout(distances)
    assert torch.equal(found, layout(distances))
    torch.testing.assert_close(torch.cdist(found, found), distances, rtol=0, atol=1e-7)  # torch.cdist is no better
    largest = found.gather(0, found.abs().argmax(0, keepdim=True))
    assert bool((largest > 0).all())  # the sign that scikit-learn fixes


@pytest.mark.parametrize("count", [1, 2, 3, 7, 250])
def test_heads_that_are_all_the_same_are_one_point(count: int) -> None:
    distances = torch.zeros(count, count)
    assert torch.equal(layout(distances), torch.zeros(count, 2, dtype=torch.float64))
    assert sorted(cluster_order(distances)) == list(range(count))


def test_heads_along_a_line_are_put_in_its_order() -> None:
    place = torch.rand(12)
    order = cluster_order((place[:, None] - place).abs())
    assert order in (place.argsort().tolist(), place.argsort(descending=True).tolist())


def test_two_heads_that_differ_from_a_group_stand_together() -> None:
    """Three in a row, 3 apart, and two that are 5.7 apart and in the mean 6.2 and 6.1 from the three.

    Each of the two is 5 from one end of the row, so a chain of nearest neighbours would have the row between them.
    """
    points = torch.tensor([[0.0, 0.0], [0.0, 5.0], [3.0, 0.0], [5.7, 5.0], [6.0, 0.0]])
    assert cluster_order(torch.cdist(points, points) / 10) in ([3, 1, 0, 2, 4], [4, 2, 0, 1, 3])


def test_two_heads_are_as_far_apart_as_they_are() -> None:
    found = layout(torch.tensor([[0.0, 0.4], [0.4, 0.0]]))
    assert float(torch.dist(found[0], found[1])) == pytest.approx(0.4)


def test_a_text_of_one_token_compares_nothing() -> None:
    capture = build(causal_mask(1))
    found: Similarity = similarity(capture, capture.sites[0])
    assert (found.rows, found.duplicates, found.duplicates_in_all) == ([], [], 0)
    assert bool(found.distances.fill_diagonal_(torch.nan).isnan().all())
    assert found.order == list(range(LAYERS * HEADS))
    assert torch.equal(found.positions, torch.zeros(LAYERS * HEADS, 2, dtype=torch.float64))
    assert alike_within_layers(found.distances, HEADS) == [[], [], []]


def test_only_the_nearest_are_listed_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DUPLICATES", 2)
    capture = build(causal_mask(N), copies={(0, 1): (0, 0), (0, 2): (0, 0)})
    found = similarity(capture, capture.sites[0])
    assert (len(found.duplicates), found.duplicates_in_all) == (2, 3)
