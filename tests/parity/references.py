"""The other side of each comparison: transformers' explicit attention and torch's own kernel, on the same model.

Two more functions are registered with transformers. Both return what transformers' own function returns, so the pass is
theirs; beside it they note the explicit weights, and one of them hands query and key to our recorder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask

from models.capture import Capture
from models.huggingface import HuggingFaceModel
from models.protocol import CaptureReader
from models.recorder import ModuleCall, Recorder
from models.token_facts import TokenFacts


@dataclass
class Notes:
    """What a pass of transformers' own showed: explicit weights (n_heads, query_len, key_len) by call, hidden state."""

    weights: list[Tensor] = field(default_factory=list)
    hidden: Tensor | None = None
    recorder: Recorder | None = None


_notes: ContextVar[Notes] = ContextVar("notes")


def _explicit(module: nn.Module, *tensors: Tensor | None, **options: Any) -> tuple[Tensor, Tensor]:
    # every interface model keeps its own explicit attention beside it, under this name
    eager = sys.modules[type(module).__module__].eager_attention_forward
    result: tuple[Tensor, Tensor] = eager(module, *tensors, **options)
    return result


def eager_noting(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor]:
    """transformers' explicit attention; our recorder, if any, gets the same query and key."""
    notes = _notes.get()
    output, weights = _explicit(module, query, key, value, attention_mask, **options)
    notes.weights.append(weights[0])
    if notes.recorder is not None:
        scaling = options.get("scaling")
        position_bias = options.get("position_bias")
        notes.recorder.attend(
            ModuleCall(
                module=module,
                query=query[0],
                key=key[0],
                value=value[0],
                scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
                mask=None if attention_mask is None else attention_mask[0],
                position_bias=None if position_bias is None else position_bias[0],
                softcap=options.get("softcap"),
                sink_logits=options.get("s_aux"),
            )
        )
    return output, weights


def sdpa_noting(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """torch's kernel, as transformers calls it; beside it the explicit weights of the same query and key."""
    _output, weights = _explicit(module, query, key, value, attention_mask, **options)
    _notes.get().weights.append(weights[0])
    output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    return output, None


for name, function in (("eager_noting", eager_noting), ("sdpa_noting", sdpa_noting)):
    AttentionInterface.register(name, function)
    AttentionMaskInterface.register(name, eager_mask)


@contextmanager
def attention_set_to(model: PreTrainedModel, name: str) -> Iterator[None]:
    """The model with another attention function for a while."""
    before = model.config._attn_implementation
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


@torch.no_grad()
def noted_pass(model: PreTrainedModel, name: str, token_ids: Sequence[int], recorder: Recorder | None = None) -> Notes:
    """One pass of a decoder or encoder with one of the two functions above."""
    notes = Notes(recorder=recorder)
    token = _notes.set(notes)
    try:
        with attention_set_to(model, name):
            notes.hidden = model.base_model(torch.tensor([list(token_ids)])).last_hidden_state[0]
    finally:
        _notes.reset(token)
    return notes


def eager_and_ours(
    looked_into: HuggingFaceModel, token_ids: Sequence[int], facts: TokenFacts | None = None
) -> tuple[list[Tensor], Capture]:
    """Weights of an eager pass, and our capture of the same query and key, with figures where facts are given."""
    model = looked_into.model
    recorder = Recorder(
        {id(module): name for name, module in model.named_modules()},
        looked_into.expected,
        on_layer=lambda _done, _total: None,
        should_stop=lambda: False,
        facts=None if facts is None else dict.fromkeys(looked_into.expected, facts),
    )
    notes = noted_pass(model, "eager_noting", token_ids, recorder)
    return notes.weights, recorder.capture()


@torch.no_grad()
def eager_attentions(
    model: PreTrainedModel, token_ids: Sequence[int], target_ids: Sequence[int] | None = None
) -> dict[str, list[Tensor]]:
    """transformers' own `output_attentions` with its eager attention: site -> layers of weights."""
    inputs = {"input_ids": torch.tensor([list(token_ids)])}
    if target_ids is not None:
        inputs["decoder_input_ids"] = torch.tensor([list(target_ids)])
    with attention_set_to(model, "eager"):
        output = model(**inputs, output_attentions=True)
    if target_ids is None:
        site = "decoder.self" if any(getattr(m, "is_causal", False) for m in model.modules()) else "encoder.self"
        return {site: [layer[0] for layer in output.attentions]}
    return {
        "encoder.self": [layer[0] for layer in output.encoder_attentions],
        "decoder.self": [layer[0] for layer in output.decoder_attentions],
        "decoder.cross": [layer[0] for layer in output.cross_attentions],
    }


def all_weights(capture: CaptureReader, site: str, layer: int) -> Tensor:
    """Every weight of one module, read back through the capture: (n_heads, query_len, key_len)."""
    assert isinstance(capture, Capture)
    described = next(known for known in capture.sites if known.site == site)
    return capture.weights(site, layer, (0, described.n_heads), (0, described.query_len), (0, described.key_len))


def largest_difference(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """Over all layers; raises if there are not as many on both sides."""
    return max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
