"""Our Transformer and transformers' GPT-2 on the same tokens, compared stage by stage: where they part.

    embeddings
    per layer   attention_norm  query  key  value  scores  weights  attention_output
                feed_forward_norm  feed_forward  residual
    final_norm
    logits

Both passes are run as they are and only listened to: hooks on their modules give most stages. Our scores and weights
are noted between the functions of `models/attention.py`; transformers' are the input and output of the call by which
its own explicit attention makes weights of scores. Nothing of the reference is written again here.

This module knows nothing of where the weights come from, nor of the service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import GPT2LMHeadModel, GPT2Model

from models.attention import attention_scores, attention_weights, weighted_sum
from models.errors import Cancelled, CaptureError, ShapeError, UnsupportedModel
from models.layers import TransformerLayer
from models.multi_head import Attend, MultiHeadAttention
from models.protocol import AttentionModel, ShouldStop
from models.transformer import Transformer

# Largest difference / largest value of transformers' side, up to which two passes count as the same arithmetic in
# another order. Seen in the 124M shape with random weights, at the worst stage: float32 1.3e-6 as initialised, 6.1e-5
# with query and key times 6 (mean top weight 0.88); float64 3.2e-14 with both times 4 (0.74). The bounds leave room for
# trained weights and long texts; the faults that the tests plant give 1e-2 and more, in either type.
TOLERANCES = {torch.float32: 1e-3, torch.float64: 1e-10}
LONGEST = 1024  # tokens: GPT-2's own limit; scores and weights of a head grow with the square
HELD_BYTES = 1 << 30  # of one side's stages; layers that do not fit are compared in a further pass

IN_LAYER = (
    "attention_norm",
    "query",
    "key",
    "value",
    "scores",
    "weights",
    "attention_output",
    "feed_forward_norm",
    "feed_forward",
    "residual",
)
Theirs = GPT2LMHeadModel | GPT2Model  # without an output layer there are no logits to compare
Note = Callable[[str, int | None, Tensor], None]  # (stage, layer, what was computed)


@dataclass(frozen=True)
class Stage:
    """One place that both passes go through.

    stage     what is compared: one of IN_LAYER, embeddings, final_norm, logits
    layer     None outside of the layers
    absolute  largest difference of any two numbers; relative: the same / largest value of transformers' side
    over      whether `relative` is over the tolerance; a NaN is
    """

    stage: str
    layer: int | None
    absolute: float
    relative: float
    over: bool

    @property
    def name(self) -> str:
        """The only stage of this name: "layers.3.query", "logits"."""
        return self.stage if self.layer is None else f"layers.{self.layer}.{self.stage}"


@dataclass(frozen=True)
class Comparison:
    """All stages in the order of the pass."""

    dtype: str
    tolerance: float
    stages: tuple[Stage, ...]

    @property
    def first_over(self) -> Stage | None:
        """Where the passes part: later stages are fed with what is wrong here, so they say nothing."""
        return next((stage for stage in self.stages if stage.over), None)


@torch.no_grad()
def compare_stages(
    ours: Transformer,
    theirs: Theirs,
    token_ids: Sequence[int],
    *,
    should_stop: ShouldStop = lambda: False,
) -> Comparison:
    """Run both on the same tokens and compare what they compute on the way.

    `theirs` computes attention with transformers' explicit function for that time, and as before afterwards.

    Raises:  ShapeError above LONGEST tokens; CaptureError if a stage was not seen; Cancelled between layers
    """
    if not 1 <= len(token_ids) <= LONGEST:
        raise ShapeError(
            f"stages are compared for 1 to {LONGEST} tokens, got {len(token_ids)}: the scores and weights of every "
            "head are held side by side, and they grow with the square of the tokens"
        )
    ids = torch.tensor([list(token_ids)], device=ours.output.weight.device)
    dtype = ours.output.weight.dtype
    for model in (ours, theirs):
        nn.Module.train(model, mode=False)
    found: dict[tuple[str, int | None], Stage] = {}
    for layers in _groups(ours, len(token_ids)):
        found |= _compare(ours, theirs, ids, layers, should_stop)
    order = [("embeddings", None), *((stage, n) for n in range(ours.config.n_layers) for stage in IN_LAYER)]
    order += [("final_norm", None), *([("logits", None)] if isinstance(theirs, GPT2LMHeadModel) else [])]
    if missing := [f"{stage} {layer}" for stage, layer in order if (stage, layer) not in found]:
        raise CaptureError(f"{len(missing)} stages were not seen, the first of them {missing[0]}")
    return Comparison(str(dtype).removeprefix("torch."), TOLERANCES[dtype], tuple(found[place] for place in order))


def compare_models(
    ours: AttentionModel, theirs: AttentionModel, token_ids: Sequence[int], should_stop: ShouldStop
) -> Comparison:
    """The same for two models as the service holds them. Raises UnsupportedModel if they are not a GPT-2 and ours."""
    own, reference = getattr(ours, "model", None), getattr(theirs, "model", None)
    if not isinstance(own, Transformer) or not isinstance(reference, Theirs):
        raise UnsupportedModel("stages are compared between our Transformer and transformers' GPT-2")
    return compare_stages(own, reference, token_ids, should_stop=should_stop)


def difference(stage: str, layer: int | None, ours: Tensor, theirs: Tensor) -> Stage:
    """Measure one stage.

    Shapes:  the same for both; query, key and value with their heads side by side
    """
    if ours.shape != theirs.shape:
        raise CaptureError(f"{stage} of layer {layer} is {tuple(ours.shape)} here and {tuple(theirs.shape)} there")
    absolute = float((ours - theirs).abs().max())
    relative = absolute / (float(theirs.abs().max()) or 1.0)
    return Stage(stage, layer, absolute, relative, not relative <= TOLERANCES[ours.dtype])


def _groups(model: Transformer, n_tokens: int) -> list[range]:
    # layers whose stages are held at the same time
    config = model.config
    numbers = n_tokens * (2 * config.n_heads * n_tokens + 8 * config.d_model)
    step = max(1, HELD_BYTES // (numbers * model.output.weight.dtype.itemsize))
    return [range(first, min(first + step, config.n_layers)) for first in range(0, config.n_layers, step)]


def _compare(
    ours: Transformer, theirs: Theirs, ids: Tensor, layers: range, should_stop: ShouldStop
) -> dict[tuple[str, int | None], Stage]:
    """Compare some of the layers, and what is outside of the layers with the first of them."""
    held: dict[tuple[str, int | None], Tensor] = {}
    found: dict[tuple[str, int | None], Stage] = {}

    def wanted(layer: int | None) -> bool:
        if should_stop():
            raise Cancelled("the comparison was cancelled")
        return layer in layers or (layer is None and layers.start == 0)

    def hold(stage: str, layer: int | None, tensor: Tensor) -> None:
        if wanted(layer):
            held[stage, layer] = tensor

    def compare(stage: str, layer: int | None, tensor: Tensor) -> None:
        if wanted(layer) and (stage, layer) in held:
            reference = held.pop((stage, layer))
            if stage == "scores":  # cells that ours hides are left out; hidden there and not here is a difference
                shown = tensor != -torch.inf
                tensor, reference = tensor[shown], reference[shown]
            found[stage, layer] = difference(stage, layer, tensor, reference)

    with _explicit(theirs), _theirs_noted(theirs, hold):
        theirs(input_ids=ids, use_cache=False)
    attend = _noting(compare, {id(layer.self_attention): n for n, layer in enumerate(_layers(ours))})
    with _ours_noted(ours, compare):
        ours(ids, attend=attend)
    return found


@contextmanager
def _explicit(model: Theirs) -> Iterator[None]:
    # transformers' own explicit attention for the time being
    before = str(model.config._attn_implementation)  # noqa: SLF001  transformers gives no public name to it
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _layers(model: Transformer) -> list[TransformerLayer]:
    assert model.decoder is not None  # GPT-2's shape is a decoder
    return [layer for layer in model.decoder.layers if isinstance(layer, TransformerLayer)]


def _noting(note: Note, layers: dict[int, int]) -> Attend:
    """Explicit attention that tells its scores and weights."""

    def attend(
        module: MultiHeadAttention,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None,
        position_bias: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        scores = attention_scores(query, key, module.scaling, position_bias=position_bias)
        weights = attention_weights(scores, attn_mask)
        layer = layers[id(module)]
        note("scores", layer, scores if attn_mask is None else scores.masked_fill(~attn_mask, -torch.inf))
        note("weights", layer, weights)
        return weighted_sum(weights, value), weights

    return attend


@contextmanager
def _ours_noted(model: Transformer, note: Note) -> Iterator[None]:
    assert model.decoder is not None  # GPT-2's shape is a decoder
    places: list[tuple[Any, str, int | None]] = [(model.decoder_input, "embeddings", None)]
    for n, layer in enumerate(_layers(model)):
        attention = layer.self_attention
        places += [
            (layer.self_attention_norm, "attention_norm", n),
            (attention.query, "query", n),
            (attention.key, "key", n),
            (attention.value, "value", n),
            (attention.output, "attention_output", n),
            (layer.feed_forward_norm, "feed_forward_norm", n),
            (layer.feed_forward, "feed_forward", n),
            (layer, "residual", n),
        ]
    places += [(model.decoder.final_norm, "final_norm", None), (model.output, "logits", None)]
    with _hooked([(module, _teller(note, (stage,), n)) for module, stage, n in places]):
        yield


@contextmanager
def _theirs_noted(model: Theirs, note: Note) -> Iterator[None]:
    body = model if isinstance(model, GPT2Model) else model.transformer
    hooks: list[tuple[nn.Module, Any]] = [(body.drop, _teller(note, ("embeddings",), None))]
    blocks: Any = body.h
    for n, block in enumerate(blocks):
        hooks += [
            (block.ln_1, _teller(note, ("attention_norm",), n)),
            (block.attn.c_attn, _teller(note, ("query", "key", "value"), n)),
            (block.attn.c_proj, _teller(note, ("attention_output",), n)),
            (block.ln_2, _teller(note, ("feed_forward_norm",), n)),
            (block.mlp, _teller(note, ("feed_forward",), n)),
            (block, _teller(note, ("residual",), n)),
        ]
    hooks.append((body.ln_f, _teller(note, ("final_norm",), None)))
    if isinstance(model, GPT2LMHeadModel):
        hooks.append((model.lm_head, _teller(note, ("logits",), None)))
    with _hooked(hooks), _SoftmaxNoted(note):
        yield


class _SoftmaxNoted(TorchFunctionMode):
    """Tells what goes into and comes out of transformers' softmax, which it calls once in each layer."""

    def __init__(self, note: Note) -> None:
        super().__init__()
        self._note, self._layer = note, 0

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        output = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") == "softmax":
            self._note("scores", self._layer, args[0])
            assert isinstance(output, Tensor)
            self._note("weights", self._layer, output)
            self._layer += 1
        return output


def _teller(note: Note, stages: tuple[str, ...], layer: int | None) -> Callable[[object, object, Tensor], None]:
    # a hook that tells a module's output; several stages are side by side in it, in equal parts
    def tell(_module: object, _inputs: object, output: Tensor) -> None:
        for stage, part in zip(stages, output.chunk(len(stages), -1), strict=True):
            note(stage, layer, part)

    return tell


@contextmanager
def _hooked(hooks: Sequence[tuple[nn.Module, Callable[..., None]]]) -> Iterator[None]:
    handles = [module.register_forward_hook(hook) for module, hook in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
