"""Which mask a configuration says a layer has, and the check of what the modules were really handed.

A window longer than the text that is compared with the model's own kernel shows in no output there, so each layer's
mask is compared with the configuration's own words. Runs nothing; the attribute names are transformers'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from models.capture import Capture
from models.card import Check
from models.checks import bounded
from models.masks import MaskLayout

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
# Rotary factors that are worked out anew from the length of the text: an excerpt is computed with others.
LENGTH_DEPENDENT = ("dynamic", "longrope")
# Layers whose indexer hands over the keys that each query may attend to: so many, or all there are.
SELECTED = "index_topk"
# Configurations with this choose keys by the text itself once it is longer than so many tokens, by rules of their own.
CHOSEN_BY_TEXT = "keep_window_size"
# Words for layers of which each family has a meaning of its own: nothing is expected then.
UNKNOWN = ("attention_layers", "attention_window", "attn_layers")


@dataclass(frozen=True)
class ExpectedMask:
    """What a configuration says of one layer's mask.

    causal  no key after the query
    window  keys up to the query that a causal layer sees, or the configuration's window of a layer that sees both sides
    chunk   keys are seen only within the same run of so many tokens
    chosen  each query sees so many of the keys that it may see, chosen by the text
    """

    causal: bool
    window: int | None = None
    chunk: int | None = None
    chosen: int | None = None

    def __str__(self) -> str:
        """In plain English, for API users."""
        base = "causal" if self.causal else "full"
        if self.window is not None:
            return f"{base}, window of {self.window}"
        if self.chosen is not None:
            return f"{base}, {self.chosen} keys chosen for each query"
        return base if self.chunk is None else f"{base}, chunks of {self.chunk}"

    def fits(self, seen: MaskLayout) -> bool:
        """Whether a mask is this one, key by key; of chosen keys only their number and place are known."""
        if self.chosen is not None:
            at = torch.arange(seen.query_len, device=seen.starts.device)
            there = at + 1 if self.causal else torch.full_like(at, seen.key_len)
            counts = seen.visible_counts()
            return torch.equal(counts, there.clamp(max=self.chosen)) and bool((seen.stops <= there).all())
        if seen.dense is not None:
            return False
        if self.causal or self.window is None:
            return self._is(seen, self.window)
        # Families count the two sides of a window in three ways: |i − j| ≤ w, < w, and ≤ half of it.
        return any(self._is(seen, reach + 1) for reach in (self.window, self.window - 1, self.window // 2))

    def _is(self, seen: MaskLayout, window: int | None) -> bool:
        at = torch.arange(seen.query_len, device=seen.starts.device)
        starts = torch.zeros_like(at)
        stops = at + 1 if self.causal else torch.full_like(at, seen.key_len)
        if window is not None:
            starts = (at + 1 - window).clamp(min=0)
            stops = stops if self.causal else (at + window).clamp(max=seen.key_len)
        if self.chunk is not None:
            starts = torch.maximum(starts, at // self.chunk * self.chunk)
            stops = torch.minimum(stops, (at // self.chunk + 1) * self.chunk)
        return torch.equal(seen.starts, starts) and torch.equal(seen.stops, stops)


def expected_mask(config: Any, site: str, layer: int, length: int) -> ExpectedMask | None:  # noqa: ANN401  of any family
    """What a transformers configuration says of one layer's mask; None where it is not known what it says.

    length: of the text, for layers that choose keys by themselves in longer ones
    """
    if site == "decoder.cross":
        return ExpectedMask(causal=False)
    config = _of_site(config, site)
    if getattr(config, "is_heterogeneous", False):  # sizes that differ by layer are in a configuration for each
        config = config.per_layer_config[layer]
    # Gemma 4 says "vision" where only pictures are read both ways
    causal = site == "decoder.self" and getattr(config, "use_bidirectional_attention", None) not in (True, "all")
    if any(getattr(config, name, None) for name in UNKNOWN):
        return None
    if (_size(config, CHOSEN_BY_TEXT) or length) < length:
        return None
    chosen = _size(config, SELECTED)
    if chosen is not None and chosen < length:
        return ExpectedMask(causal, chosen=chosen)
    kinds = getattr(config, "layer_types", None)
    window = _size(config, "sliding_window")
    if kinds and layer < len(kinds):
        kind: Literal["full_attention", "sliding_attention", "chunked_attention"] | str = kinds[layer]
    else:
        applied = window is not None and _flag(config, "use_sliding_window", default=True)
        kind = SLIDING if applied else FULL
    if kind == FULL:
        return ExpectedMask(causal)
    chunk = _size(config, "attention_chunk_size")
    if kind == CHUNKED and chunk is not None:
        return ExpectedMask(causal, chunk=chunk)
    return ExpectedMask(causal, window=window) if kind == SLIDING and window is not None else None


def depends_on_length(config: Any, compared: int) -> bool:  # noqa: ANN401  of any family
    """Whether the first positions of a text, so many as are compared, depend on its length.

    By rotary factors that are worked out from it; or because keys are chosen, where equal scores are chosen from by the
    number of keys there are.
    """
    if (_size(_of_site(config, "decoder.self"), SELECTED) or compared) < compared:
        return True
    found = []
    for part in (config, *(getattr(config, name, None) for name in ("text_config", "encoder", "decoder"))):
        said = getattr(part, "rope_parameters", None) or getattr(part, "rope_scaling", None) or {}
        kinds = [said, *(each for each in said.values() if isinstance(each, dict))]
        found += [kind.get("rope_type", kind.get("type")) for kind in kinds]
    return any(kind in LENGTH_DEPENDENT for kind in found)


def masks_check(capture: Capture, expected: Callable[[str, int, int], ExpectedMask | None]) -> Check:
    """Compare each layer's mask with what is expected of it, called with site, layer and number of keys."""
    wrong, unknown = [], []
    said: dict[str, list[str]] = {}
    for described in capture.sites:
        for layer in range(described.n_layers):
            mask = expected(described.site, layer, described.key_len)
            if mask is None:
                unknown.append(f"{described.site} {layer}")
                continue
            said.setdefault(str(mask), []).append(f"{described.site} {layer}")
            if not mask.fits(capture.mask(described.site, layer)):
                seen = described.masks[layer]
                words = seen.kind if seen.window is None else f"{seen.kind}, {seen.window}"
                wrong.append({"site": described.site, "layer": layer, "expected": str(mask), "seen": words})
    detail: dict[str, Any] = {"expected": said, "wrong": wrong[:8]}
    if unknown and not wrong:
        reason = "the configuration does not say in known words which keys these layers see"
        return Check("masks", "not_compared", None, None, {**detail, "unknown": unknown, "reason": reason})
    return bounded("masks", len(wrong), 0, detail)


def _of_site(config: Any, site: str) -> Any:  # noqa: ANN401  of any family
    # a part of its own for encoder or decoder, or for the text of a model that reads more than text
    part = getattr(config, "encoder" if site.startswith("encoder") else "decoder", None)
    if getattr(config, "is_encoder_decoder", False) and hasattr(part, "num_hidden_layers"):
        config = part
    inner = getattr(config, "text_config", None)
    return config if inner is None else inner


def _flag(config: Any, name: str, *, default: bool = False) -> bool:  # noqa: ANN401  of any family
    value = getattr(config, name, None)
    return default if value is None else bool(value)


def _size(config: Any, name: str) -> int | None:  # noqa: ANN401  of any family
    value = getattr(config, name, None)
    return value if type(value) is int and value > 0 else None
