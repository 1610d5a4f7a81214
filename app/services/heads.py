"""Heads and layers of a finished run as the API answers them. It knows neither runs nor HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from models.head_scores import distance_bins
from models.locality import layer_locality
from models.protocol import CaptureReader
from models.roles import role_of
from models.similarity import alike_within_layers


def heads_of(capture: CaptureReader, sites: Iterable[str], threshold: float) -> list[dict[str, Any]]:
    """Each head of the sites with its figures and role."""
    heads = [head for site in sites for head in capture.head_scores(site)]
    return [{**head, "role": role_of(head, threshold)} for head in heads]


def bins_of(capture: CaptureReader, sites: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
    """The ranges of distances that the bins of a site's heads stand for; none where it has no distances."""
    lengths = {one.site: one.query_len for one in capture.sites}
    return {site: [] if site.endswith(".cross") else distance_bins(lengths[site]) for site in sites}


def layers_of(capture: CaptureReader, site: str, distances: Tensor | None) -> dict[str, Any]:
    """How far each layer of a site reaches; given the distances of its heads, also which do nearly the same."""
    where = capture.site(site)
    masks = [capture.mask(site, layer) for layer in range(where.n_layers)]
    found = layer_locality(capture.figures(site), masks)
    if distances is not None:  # they are of whole rows, so they speak of all keys
        found["warnings"]["all"] += [
            {"code": "heads_alike", "layer": layer, "pairs": pairs}
            for layer, pairs in enumerate(alike_within_layers(distances, where.n_heads))
            if pairs
        ]
    return {"site": site, **found}
