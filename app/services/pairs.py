"""Heads with their weight on marked query → key pairs, for JSON. It knows neither runs nor HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.pairs import Pair, pair_figures, pair_weights
from models.protocol import CaptureReader


def asked_pairs(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """The pairs as they were asked for: inclusive token indices."""
    return [{side: (span[0], span[1] - 1) for side, span in zip(("query", "key"), pair, strict=True)} for pair in pairs]


def heads_on_pairs(capture: CaptureReader, site: str, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Each head of a site, by layer, then head: {site, layer, head, pairs: its figures}. Raises RangeError."""
    n_heads = capture.site(site).n_heads
    return [
        {"site": site, "layer": number // n_heads, "head": number % n_heads, "pairs": figures}
        for number, figures in enumerate(pair_figures(pair_weights(capture, site, pairs)))
    ]
