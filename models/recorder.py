"""What one pass records: for every attention module it attends, checks a sample, keeps the capture, reports progress.

The transformers side (`models/huggingface.py`) hands it tensors of one text; it knows masks, blocks, captures and
checks, but neither model classes nor configurations.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from models.attention import MASKED
from models.blocks import Workspace
from models.blockwise import AttentionInputs, AttentionSummary, blockwise_attention
from models.capture import Capture
from models.capture_builder import CaptureBuilder
from models.checks import (
    EVERY_ROW,
    SDPA,
    ModuleRecord,
    PassRecord,
    count_non_finite,
    handed_bias,
    output_error,
    sampled_rows,
    sdpa_reference,
)
from models.errors import Cancelled, CaptureError, UnsupportedModel
from models.fingerprints import fingerprints, module_tensors
from models.handed_masks import HandedMask, SharedTensors, layout_of_bias, split_mask
from models.head_targets import HeadTargets
from models.masks import BiasLayout, MaskLayout
from models.projections import output_norms
from models.protocol import OnLayer, ShouldStop
from models.token_facts import TokenFacts

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


@dataclass(frozen=True)
class _Reference:
    """Some rows by another implementation, and how far their sums are from ours where it shows them."""

    kernel: str
    output: Tensor
    row_sum_error: float | None


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
        seed: int = 0,
    ) -> None:
        """Nothing is recorded yet.

        names: id of each sub-module -> its qualified name; expected: site -> its modules; keep: build a capture; facts:
        site -> what is known of the tokens that its keys are of; without it no figures of heads are taken; seed: of the
        draw of the rows that are checked
        """
        self._names, self._on_layer, self._should_stop, self._compute = names, on_layer, should_stop, compute
        self._workspace = Workspace()
        self._builder = CaptureBuilder() if keep else None
        self._masks = SharedTensors[HandedMask]()
        self._biases = SharedTensors[BiasLayout | None]()
        self._seed, self._all_look_back = seed, True
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
        handed = self._mask_of(call)
        inputs = self._inputs(call, site, handed)
        self._all_look_back &= inputs.mask.looks_back
        summary = self._compute(inputs, self._workspace)
        self.record.modules.append(self._sample(call, inputs, handed, summary, name, site, layer))
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

    @property
    def looks_back(self) -> bool:
        """Whether no position of the model has seen a later one."""
        return set(self.record.expected) == {"decoder.self"} and self._all_look_back

    def _mask_of(self, call: ModuleCall) -> HandedMask:
        lengths = (call.query.shape[1], call.key.shape[1])
        if call.mask is None:
            if getattr(call.module, "is_causal", False) and lengths[0] > 1:
                raise CaptureError(
                    f"{type(call.module).__name__} is causal but handed over no mask: its picture would be wrong"
                )
            return self._masks.get_or_make(None, lengths, lambda: _no_mask(call))
        given, dtype = call.mask, _dtype_for(call.query)
        return self._masks.get_or_make(given, lengths, lambda: split_mask(given, dtype))

    def _inputs(self, call: ModuleCall, site: str, handed: HandedMask) -> AttentionInputs:
        dtype, bias = _dtype_for(call.query), handed.bias
        if call.position_bias is not None:
            extra, lengths = call.position_bias, (call.query.shape[1], call.key.shape[1])
            bias = self._sum(bias, self._biases.get_or_make(extra, lengths, lambda: layout_of_bias(extra, dtype)))
        return AttentionInputs(
            query=call.query.to(dtype),
            key=call.key.to(dtype),
            value=call.value.to(dtype),
            scaling=call.scaling,
            mask=handed.layout,
            softcap=call.softcap,
            bias=bias,
            sink_logits=None if call.sink_logits is None else call.sink_logits.detach().to(dtype),
            same_sequence=not site.endswith(".cross"),
            targets=self._targets_of(handed.layout, site),
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
        self,
        call: ModuleCall,
        inputs: AttentionInputs,
        handed: HandedMask,
        summary: AttentionSummary,
        name: str,
        site: str,
        layer: int,
    ) -> ModuleRecord:
        query_len, key_len = inputs.query.shape[1], inputs.key.shape[1]
        rows = sampled_rows(query_len, key_len, seed=self._seed + len(self.record.modules))
        compared = list(range(query_len)) if query_len * key_len <= EVERY_ROW else rows
        reference = _reference(call, inputs, handed, summary, compared)
        mask_rows = None if call.mask is None else handed.may_attend(call.mask[0, rows])
        return ModuleRecord(
            name=name,
            site=site,
            layer=layer,
            named_layer=layer_of(name),
            rows=rows,
            sampled_mask=None if mask_rows is None else mask_rows.cpu(),
            output_error=output_error(summary.output[:, compared], reference.output, inputs.value),
            non_finite=count_non_finite(summary.output) + count_non_finite(summary.rows["row_sum"]),
            in_training=call.module.training,
            dropout=call.dropout,
            reference=reference.kernel,
            compared_rows=len(compared),
            row_sum_error=reference.row_sum_error,
            handed=summary.output[:, rows].cpu(),
            largest_score=float(torch.stack(summary.rows["row_max"].aminmax()).abs().max()),
            prints=fingerprints(module_tensors(inputs, summary)) if self._builder is not None else {},
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


def _dtype_for(tensor: Tensor) -> torch.dtype:
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32  # half precision is raised


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


def _no_mask(call: ModuleCall) -> HandedMask:
    return HandedMask(MaskLayout.full(call.query.shape[1], call.key.shape[1], call.query.device), None, None)


def _reference(
    call: ModuleCall, inputs: AttentionInputs, handed: HandedMask, summary: AttentionSummary, rows: Sequence[int]
) -> _Reference:
    here = list(rows)
    mask_rows = None if call.mask is None else handed.may_attend(call.mask[0, here])
    sees_any = None if mask_rows is None else mask_rows.any(-1)[None, :]
    if inputs.softcap is not None:
        output, error = _own_eager(call, inputs, here, mask_rows), None
        kernel = "the model's own eager function"
    else:
        row_max, row_sum = (summary.rows[name][:, here] for name in ("row_max", "row_sum"))
        bias = handed_bias(call.mask, call.position_bias, here)
        output, shares = sdpa_reference(inputs, here, bias, row_max + row_sum.log())
        apart = (shares - 1.0).abs()
        error, kernel = float((apart if sees_any is None else apart.masked_fill(~sees_any, 0.0)).max()), SDPA
    if sees_any is not None:  # torch gives NaN where a row has no key; here such a row is 0
        output = output.masked_fill(~sees_any[..., None], 0.0)
    return _Reference(kernel, output, error)


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
