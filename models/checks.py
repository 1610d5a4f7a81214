"""The checks behind the correctness card: each measures one thing and says up to which value it passes.

Everything is measured on what was really computed: what the attention modules were called with, what they gave, and
what the capture gives back. This module knows neither how a card is worded nor where it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from models.blockwise import AttentionInputs
from models.capture import Capture
from models.card import Check

SDPA = "scaled_dot_product_attention"
SAMPLED_ROWS = 8  # of every module: enough to see any fault of a whole head or mask, at no cost to speak of

# |our output − SDPA's output| / largest |value|, and |row sum − 1|: rounding of a softmax. Seen on SmolLM2, texts of 1
# to 480 tokens, scores up to 21: 7e-7 and 6e-7; the bounds leave room for larger scores, whose rounding is larger. The
# tests plant a head's output scaled by 1.01 and its row sums by 1.001, which both fail.
ROUNDING = {torch.float32: 1e-4, torch.float64: 1e-9}
ROW_SUMS = {torch.float32: 1e-5, torch.float64: 1e-12}

# Largest difference of the final hidden states or logits / their largest value, our pass against the model's default
# kernel: drift through the layers. Seen on SmolLM2 with texts of 1 to 240 tokens: 3e-6; room for deeper models.
DRIFT = {torch.float32: 1e-3, torch.float64: 1e-5}


@dataclass
class ModuleRecord:
    """What was seen of one attention module during the pass.

    layer         counted by call within the site; named_layer: the number in the qualified name, if it has one
    sampled_mask  (sampled rows, key_len), boolean, cut from the mask that the model itself handed over; None where it
                  gave none
    """

    name: str
    site: str
    layer: int
    named_layer: int | None
    rows: list[int]
    sampled_mask: Tensor | None
    output_error: float
    non_finite: int
    in_training: bool
    dropout: float
    reference: str


@dataclass
class PassRecord:
    """What was seen during one pass."""

    expected: dict[str, int]  # site -> number of attention modules
    implementation: str = ""
    modules: list[ModuleRecord] = field(default_factory=list)


def sampled_rows(query_len: int) -> list[int]:
    """Choose the rows that are checked: first, last, and evenly between."""
    count = min(SAMPLED_ROWS, query_len)
    return sorted({round(i * (query_len - 1) / max(count - 1, 1)) for i in range(count)})


def sdpa_reference(inputs: AttentionInputs, rows: Sequence[int], mask_rows: Tensor | None) -> Tensor:
    """Compute the output of some rows with torch's own kernel, from the mask that the model handed over.

    Shapes:  mask_rows (rows, key_len), boolean, or None for a mask that hides nothing -> (n_heads, rows, d_value)
    Values:  a sink is one more key with a zero value; soft caps are not known to this kernel, callers use another
             reference
    """
    query, key, value = inputs.query[:, list(rows)], inputs.key, inputs.value
    bias = query.new_zeros(query.shape[0], len(rows), key.shape[1])
    if inputs.bias is not None:
        bias += inputs.bias.block(list(rows), (0, key.shape[1]))
    if mask_rows is not None:
        bias = bias.masked_fill(~mask_rows, -torch.inf)
    if inputs.sink_logits is not None:
        key, value = (torch.cat([tensor, torch.zeros_like(tensor[:, :1])], 1) for tensor in (key, value))
        bias = torch.cat([bias, inputs.sink_logits[:, None, None].expand(-1, len(rows), 1)], -1)
    # Heads that share a key head become more rows of it, so that no key is copied.
    stacked = query.reshape(key.shape[0], -1, query.shape[-1])
    output = scaled_dot_product_attention(
        stacked[None],
        key[None],
        value[None],
        attn_mask=bias.view(1, key.shape[0], -1, key.shape[1]),
        scale=inputs.scaling,
    )
    return output.view(*query.shape[:2], -1)


def output_error(output: Tensor, reference: Tensor, value: Tensor) -> float:
    """Largest difference of two attention outputs, in units of the largest value that they average.

    Shapes:  output and reference (n_heads, rows, d_value), value (n_kv_heads, key_len, d_value)
    """
    largest = float(torch.stack(value.aminmax()).abs().max())
    return float((output - reference).abs().max()) / (largest or 1.0)


def count_non_finite(tensor: Tensor) -> int:
    """Count NaN and infinite numbers; quick where there are none.

    Shapes:  any
    """
    return 0 if bool(tensor.sum().isfinite()) else int((~tensor.isfinite()).sum())


def modules_check(record: PassRecord) -> Check:
    """Check that all attention modules were seen, each once."""
    seen: dict[str, int] = {}
    for module in record.modules:
        seen[module.site] = seen.get(module.site, 0) + 1
    names = {module.name for module in record.modules}
    shared = len(names) < len(record.modules)  # one module called for several layers (ALBERT): its name has no layer
    in_order = shared or all(module.named_layer in (None, module.layer) for module in record.modules)
    complete = seen == record.expected and in_order
    detail = {"expected": record.expected, "seen": seen, "attention_path": record.implementation, "in_order": in_order}
    total = sum(record.expected.values())
    return Check("modules", "pass" if complete else "fail", len(record.modules), total, detail)


def eval_mode_check(record: PassRecord) -> Check:
    """Check that every module was in eval mode, without dropout."""
    wrong = [module.name for module in record.modules if module.in_training or module.dropout > 0]
    return Check("eval_mode", "fail" if wrong else "pass", len(wrong), 0, {"modules": wrong[:8]})


def non_finite_check(record: PassRecord) -> Check:
    """Count the NaN and infinite numbers that the modules gave."""
    count = sum(module.non_finite for module in record.modules)
    return Check("non_finite", "fail" if count else "pass", count, 0)


def module_output_check(record: PassRecord, dtype: torch.dtype) -> Check:
    """Measure, on the sampled rows of every module, how far our output is from torch's own kernel's."""
    errors = {module.name: module.output_error for module in record.modules}
    worst = max(errors, key=lambda name: _nan_is_worst(errors[name])) if errors else ""
    detail = {
        "worst_module": worst,
        "rows_per_module": max((len(module.rows) for module in record.modules), default=0),
        "reference": sorted({module.reference for module in record.modules}),
        "unit": "largest absolute value of the module's value vectors",
    }
    if any(module.reference != SDPA for module in record.modules):
        dtype = torch.float32  # transformers' explicit functions take their softmax in float32 whatever the dtype
    return _bounded("module_output", errors.get(worst, 0.0), ROUNDING[dtype], detail)


def read_back_checks(record: PassRecord, capture: Capture, dtype: torch.dtype) -> list[Check]:
    """Read the sampled rows back through the capture: their sums, and what is outside the model's mask."""
    worst_sum, worst_outside, with_sinks = 0.0, 0.0, 0
    for module in record.modules:
        described = next(site for site in capture.sites if site.site == module.site)
        heads = (0, described.n_heads)
        # (n_heads, sampled rows, key_len)
        weights = capture.weights(module.site, module.layer, heads, module.rows, (0, described.key_len))
        share = capture.sink_share(module.site, module.layer)
        with_sinks += share is not None
        sums = weights.sum(-1) if share is None else weights.sum(-1) + share[:, module.rows]
        has_keys = torch.ones(len(module.rows), dtype=torch.bool)
        if module.sampled_mask is not None:
            has_keys = module.sampled_mask.any(-1)
            outside = weights.abs().amax(0).masked_fill(module.sampled_mask, 0.0)  # (sampled rows, key_len)
            worst_outside = _worse(worst_outside, float(outside.max()))
        worst_sum = _worse(worst_sum, float((sums - has_keys.to(sums.dtype)).abs().max()))
    detail = {"read_back_rows": sum(len(module.rows) for module in record.modules), "modules_with_sinks": with_sinks}
    return [
        _bounded("row_sums", worst_sum, ROW_SUMS[dtype], detail),
        _bounded("outside_mask", worst_outside, 0.0, {}),
    ]


def whole_pass_check(
    ours: dict[str, Tensor], default: dict[str, Tensor], kernel: str, dtype: torch.dtype, extra: dict[str, Any]
) -> Check:
    """Compare the whole pass with the model's own default kernel.

    Shapes:  ours and default: "hidden" (seq_len, d_model) and, where the model has an output layer, "logits"
             (positions, vocabulary)
    """
    differences = {name: float((ours[name] - default[name]).abs().max()) for name in default}
    relative = {name: differences[name] / (float(default[name].abs().max()) or 1.0) for name in default}
    detail = {"kernel": kernel, "absolute": differences, "relative": relative, **extra}
    return _bounded("whole_pass", max(relative.values(), key=_nan_is_worst), DRIFT[dtype], detail)


def not_compared(reason: str) -> Check:
    """The whole pass was not compared; the reason is in detail."""
    return Check("whole_pass", "not_compared", None, None, {"reason": reason})


def _bounded(name: str, value: float, bound: float, detail: dict[str, Any]) -> Check:
    return Check(name, "pass" if value <= bound else "fail", value, bound, detail)  # a NaN fails


def _nan_is_worst(value: float) -> float:
    return float("inf") if value != value else value


def _worse(a: float, b: float) -> float:
    return max(a, b, key=_nan_is_worst)
