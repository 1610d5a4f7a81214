"""What one pass records: for every attention module it attends, checks a sample, keeps the capture, reports progress.

The transformers side (`models/huggingface.py`) hands it tensors of one text; it knows masks, blocks, captures and
checks, but neither model classes nor configurations.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from models.attention import MASKED
from models.blocks import Workspace
from models.blockwise import AttentionInputs, AttentionSummary, blockwise_attention
from models.capture import Capture
from models.capture_builder import CaptureBuilder
from models.checks import SDPA, ModuleRecord, PassRecord, count_non_finite, output_error, sampled_rows, sdpa_reference
from models.errors import Cancelled, CaptureError, UnsupportedModel
from models.head_targets import HeadTargets
from models.masks import BiasLayout, MaskLayout
from models.projections import output_norms
from models.protocol import OnLayer, ShouldStop
from models.token_facts import TokenFacts

Made = TypeVar("Made")
Compute = Callable[[AttentionInputs, Workspace], AttentionSummary]


@dataclass(frozen=True)
class ModuleCall:
    """One call of an attention function by a model, as transformers makes it, for one text.

    Shapes:  query (n_heads, query_len, d_head), key (n_kv_heads, key_len, d_head), value (n_kv_heads, key_len,
             d_value), in the model's dtype; mask (1 or n_heads, query_len, key_len), boolean or additive, or None;
             position_bias the same, additive; sink_logits (n_heads); output_projection (n_heads · d_value, d_model) or
             None
    """

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    scaling: float
    mask: Tensor | None = None
    position_bias: Tensor | None = None
    softcap: float | None = None
    sink_logits: Tensor | None = None
    output_projection: Tensor | None = None
    dropout: float = 0.0
    selects: bool = False  # the model chose keys for each query; the mask holds the choice


class Recorder:
    """Follows one pass: the model calls `attend`, module after module; `capture` and `record` then hold it."""

    def __init__(
        self,
        names: dict[int, str],
        expected: dict[str, int],
        *,
        on_layer: OnLayer,
        should_stop: ShouldStop,
        keep: bool = True,
        facts: Mapping[str, TokenFacts] | None = None,
        compute: Compute = blockwise_attention,
    ) -> None:
        """Nothing is recorded yet.

        names: id of each sub-module -> its qualified name; expected: site -> its modules; keep: build a capture; facts:
        site -> what is known of the tokens that its keys are of; without it no figures of heads are taken
        """
        self._names, self._on_layer, self._should_stop, self._compute = names, on_layer, should_stop, compute
        self._workspace = Workspace()
        self._builder = CaptureBuilder() if keep else None
        self._masks = _SharedTensors[tuple[MaskLayout, BiasLayout | None]]()
        self._biases = _SharedTensors[BiasLayout | None]()
        self._facts = facts or {}
        self._targets: dict[tuple[int, str], HeadTargets] = {}  # each holds its mask, so that the id stays its own
        self._sums: dict[tuple[int, int], tuple[BiasLayout, BiasLayout, BiasLayout]] = {}
        self.record = PassRecord(dict(expected))

    def attend(self, call: ModuleCall) -> Tensor:
        """Attend for one module.

        Shapes:  -> (n_heads, query_len, d_value), in the model's dtype
        Raises:  Cancelled between modules; CaptureError if a causal module hands over no mask
        """
        if self._should_stop():
            raise Cancelled("the run was cancelled")
        name = self._names.get(id(call.module), type(call.module).__name__)
        site = site_of(name, tuple(self.record.expected))
        layer = sum(module.site == site for module in self.record.modules)
        inputs = self._inputs(call, site)
        summary = self._compute(inputs, self._workspace)
        self.record.modules.append(self._sample(call, inputs, summary, name, site, layer))
        if self._builder is not None:
            self._builder.add(site, layer, *_on_host(inputs, summary), _output_norms(call, inputs.value))
        self._on_layer(len(self.record.modules), sum(self.record.expected.values()))
        return summary.output.to(call.query.dtype)

    def forget_projection(self, module: nn.Module) -> None:
        """Keep nothing of what a module's output projection gave: it turned out not to be its own."""
        name = self._names.get(id(module), type(module).__name__)
        for seen in self.record.modules:
            if seen.name == name and self._builder is not None:
                self._builder.drop_output_norms(seen.site, seen.layer)

    def capture(self) -> Capture:
        """The capture of the pass. Raises ConfigError if the layers are not complete."""
        assert self._builder is not None
        return self._builder.build()

    def _inputs(self, call: ModuleCall, site: str) -> AttentionInputs:
        dtype = torch.float64 if call.query.dtype == torch.float64 else torch.float32  # half precision is raised
        query_len, key_len = call.query.shape[1], call.key.shape[1]
        if call.mask is None:
            if getattr(call.module, "is_causal", False) and query_len > 1:
                raise CaptureError(
                    f"{type(call.module).__name__} is causal but handed over no mask: its picture would be wrong"
                )
            mask, bias = self._masks.get_or_make(None, (query_len, key_len), lambda: _no_mask(call))
        else:
            given = call.mask
            mask, bias = self._masks.get_or_make(given, (query_len, key_len), lambda: _split_mask(given, dtype))
        if call.position_bias is not None:
            extra = call.position_bias
            position_bias = self._biases.get_or_make(extra, (query_len, key_len), lambda: _layout_of_bias(extra, dtype))
            bias = self._sum(bias, position_bias)
        return AttentionInputs(
            query=call.query.to(dtype),
            key=call.key.to(dtype),
            value=call.value.to(dtype),
            scaling=call.scaling,
            mask=mask,
            softcap=call.softcap,
            bias=bias,
            sink_logits=None if call.sink_logits is None else call.sink_logits.detach().to(dtype),
            same_sequence=not site.endswith(".cross"),
            targets=self._targets_of(mask, site),
        )

    def _targets_of(self, mask: MaskLayout, site: str) -> HeadTargets | None:
        if site not in self._facts:
            return None
        if (id(mask), site) not in self._targets:
            same = not site.endswith(".cross")
            self._targets[id(mask), site] = HeadTargets(mask, self._facts[site], same_sequence=same)
        return self._targets[id(mask), site]

    def _sum(self, one: BiasLayout | None, other: BiasLayout | None) -> BiasLayout | None:
        if one is None or other is None:
            return one or other
        place = (id(one), id(other))
        if place not in self._sums:
            everything = ((0, one.query_len), (0, one.key_len))
            total = BiasLayout.from_bias(one.block(*everything) + other.block(*everything))
            self._sums[place] = (one, other, total)
        return self._sums[place][2]

    def _sample(
        self, call: ModuleCall, inputs: AttentionInputs, summary: AttentionSummary, name: str, site: str, layer: int
    ) -> ModuleRecord:
        rows = sampled_rows(inputs.query.shape[1])
        mask_rows = None if call.mask is None else _may_attend(call.mask[0, rows])
        if inputs.softcap is None:
            reference, kernel = sdpa_reference(inputs, rows, mask_rows), SDPA
        else:
            reference, kernel = _own_eager(call, inputs, rows, mask_rows), "the model's own eager function"
        if mask_rows is not None:  # torch gives NaN where a row has no key; here such a row is 0
            reference = reference.masked_fill(~mask_rows.any(-1)[None, :, None], 0.0)
        return ModuleRecord(
            name=name,
            site=site,
            layer=layer,
            named_layer=layer_of(name),
            rows=rows,
            sampled_mask=None if mask_rows is None else mask_rows.cpu(),
            output_error=output_error(summary.output[:, rows], reference, inputs.value),
            non_finite=count_non_finite(summary.output) + count_non_finite(summary.rows["row_sum"]),
            in_training=call.module.training,
            dropout=call.dropout,
            reference=kernel,
        )


def site_of(name: str, sites: Sequence[str]) -> str:
    """Tell a module's site from its qualified name, among the sites that the model has."""
    if len(sites) == 1:
        return sites[0]
    if re.search(r"cross_?att|encoder_attn|EncDecAttention", name, re.IGNORECASE):
        return "decoder.cross"
    return "decoder.self" if re.search(r"(^|\.)decoder\.", name) else "encoder.self"


def layer_of(name: str) -> int | None:
    """Read the layer from a module's qualified name: its first number, or None (of ALBERT, which counts in groups).

    Where a layer holds two attention modules in a list (LongCat), each counts: `layers.3.self_attn.1` is the eighth.
    """
    found = re.search(r"\.(\d+)\.(?:self_attn\.([01])$)?", name)
    if found is None or "layer_groups." in name:
        return None
    return int(found[1]) if found[2] is None else 2 * int(found[1]) + int(found[2])


class _SharedTensors(Generic[Made]):
    """What was made of a mask or bias, by the tensor itself: layers that share one share the result."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[Tensor | None, Made]] = {}

    def get_or_make(self, tensor: Tensor | None, lengths: tuple[int, int], make: Callable[[], Made]) -> Made:
        """What `make` gave when this tensor (or another view of the same numbers) was met first."""
        place: tuple[object, ...] = lengths
        if tensor is not None:
            place = (*lengths, tensor.data_ptr(), tensor.shape, tensor.stride())
        if place not in self._made:
            self._made[place] = (tensor, make())  # holding the tensor keeps its address from being used again
        return self._made[place][1]


def _on_host(inputs: AttentionInputs, summary: AttentionSummary) -> tuple[AttentionInputs, AttentionSummary]:
    # Kept tensors are copies: the model may reuse the memory of its own, and a GPU's memory is for the next layer.
    kept = {
        name: getattr(inputs, name).cpu().clone(memory_format=torch.contiguous_format)
        for name in ("query", "key", "value")
    }
    sinks = None if inputs.sink_logits is None else inputs.sink_logits.cpu()
    rows = {name: values.cpu() for name, values in summary.rows.items()}
    rows["top_key"] = rows["top_key"].to(torch.int32)
    overviews: dict[str, Any] = {name: getattr(summary, name).cpu() for name in ("overview_max", "overview_mean")}
    overviews["figures"] = {name: values.cpu() for name, values in summary.figures.items()}
    return replace(inputs, **kept, sink_logits=sinks), replace(
        summary, output=summary.output.new_empty(0), rows=rows, **overviews
    )


def _output_norms(call: ModuleCall, value: Tensor) -> Tensor | None:
    projection = call.output_projection
    return None if projection is None else output_norms(value, projection.detach(), call.query.shape[0]).cpu()


def _may_attend(mask: Tensor) -> Tensor:
    # the one place where an additive mask is turned into True = may attend
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def _split_mask(mask: Tensor, dtype: torch.dtype) -> tuple[MaskLayout, BiasLayout | None]:
    may_attend = _may_attend(mask)
    if mask.shape[0] > 1 and not bool((may_attend == may_attend[:1]).all()):
        raise UnsupportedModel("this model gives each head a mask of its own, which cannot be shown yet")
    layout = MaskLayout.from_mask(may_attend[0])
    if mask.dtype == torch.bool:
        return layout, None
    return layout, _layout_of_bias(mask.masked_fill(~may_attend, 0.0), dtype)


def _layout_of_bias(bias: Tensor, dtype: torch.dtype) -> BiasLayout | None:
    return BiasLayout.from_bias(bias.to(dtype)) if bool(bias.any()) else None


def _no_mask(call: ModuleCall) -> tuple[MaskLayout, BiasLayout | None]:
    return MaskLayout.full(call.query.shape[1], call.key.shape[1], call.query.device), None


def _own_eager(call: ModuleCall, inputs: AttentionInputs, rows: Sequence[int], mask_rows: Tensor | None) -> Tensor:
    # Soft caps are unknown to torch's kernel, but every transformers model brings its own explicit function.
    eager = getattr(sys.modules[type(call.module).__module__], "eager_attention_forward", None)
    if eager is None:
        raise UnsupportedModel(f"{type(call.module).__name__} has a soft cap but no explicit attention to compare with")
    additive = None
    if mask_rows is not None:
        additive = torch.zeros_like(mask_rows, dtype=inputs.query.dtype).masked_fill(~mask_rows, MASKED)[None, None]
    output: Tensor = eager(
        call.module,
        inputs.query[None, :, list(rows)],
        inputs.key[None],
        inputs.value[None],
        additive,
        scaling=inputs.scaling,
        dropout=0.0,
        softcap=inputs.softcap,
    )[0]
    return output[0].transpose(0, 1)  # (rows, n_heads, d_value) -> (n_heads, rows, d_value)
