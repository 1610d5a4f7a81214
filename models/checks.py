"""The checks behind the correctness card: each measures one thing and says up to which value it passes.

Everything is measured on what was really computed: what the attention modules were called with, what they gave, and
what the capture gives back. This module knows neither how a card is worded nor where it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from models.blockwise import AttentionInputs
from models.card import Check

SDPA = "scaled_dot_product_attention"
SAMPLED_ROWS = 8  # of every module at least: enough to see any fault of a whole head or mask
EVERY_ROW = 512 * 512  # weights of a head up to which each row's output and sum is compared with torch's own kernel
SAMPLED_WEIGHTS = 16_384  # of every head at least: what 8 rows of 2,048 tokens have; all rows up to 128 tokens

# |our output − SDPA's output| / largest |value|: rounding of a softmax. Seen on SmolLM2, texts of 1 to 480 tokens,
# scores up to 21: 7e-7; the bound leaves room for larger scores, whose rounding is larger. The tests plant a head's
# output scaled by 1.01, which fails.
ROUNDING = {torch.float32: 1e-4, torch.float64: 1e-9}

# Difference of the final hidden states or logits, our pass against the model's default kernel, see `drift`: what
# rounding grows to through the layers. Seen: 2e-6 on SmolLM2, 1e-5 on models with peaked weights (T5, GPT-OSS); one
# head's query × 1.05 in an encoder whose attention adds little to its residual stream gives 4e-4. Of scores of 245 the
# last digit alone is 3e-5 of a weight, in every layer anew: hence the share that follows the size of the scores.
DRIFT = {torch.float32: 1e-4, torch.float64: 1e-5}
DRIFT_OF_SCORES = 10  # last digits of the largest score


@dataclass
class ModuleRecord:
    """What was seen of one attention module during the pass.

    layer         counted by call within the site; named_layer: the number in the qualified name, if it has one
    sampled_mask  (sampled rows, key_len), boolean, cut from the mask that the model itself handed over; None where it
                  gave none
    handed        (n_heads, sampled rows, d_value): what the module really handed to the model
    compared_rows how many rows were compared with the reference: all of shorter texts
    row_sum_error of the compared rows, as a share of the sum; None where the reference does not show sums
    largest_score size of the largest row maximum
    prints        name of each tensor that the capture is to keep -> its fingerprint at that time
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
    compared_rows: int
    row_sum_error: float | None
    handed: Tensor
    largest_score: float
    prints: dict[str, float]


@dataclass
class PassRecord:
    """What was seen during one pass."""

    expected: dict[str, int]  # site -> number of attention modules
    implementation: str = ""
    modules: list[ModuleRecord] = field(default_factory=list)

    @property
    def largest_score(self) -> float:
        """Size of the largest row maximum of all modules."""
        return max((module.largest_score for module in self.modules), default=0.0)


def sampled_rows(query_len: int, key_len: int, *, seed: int) -> list[int]:
    """Draw the rows that are checked: first and last always, the others by the seed; all rows of short texts."""
    count = min(max(SAMPLED_ROWS, SAMPLED_WEIGHTS // key_len), query_len)
    drawn = torch.randperm(query_len, generator=torch.Generator().manual_seed(seed)).tolist()
    always = {0, query_len - 1}
    return sorted(always | set([row for row in drawn if row not in always][: max(count - len(always), 0)]))


def handed_bias(mask: Tensor | None, position_bias: Tensor | None, rows: Sequence[int]) -> Tensor | None:
    """What a model adds to the scores of some rows, straight from what it handed over, floors of masks included.

    Shapes:  mask and position_bias (1 or n_heads, query_len, key_len) -> (1 or n_heads, rows, key_len), additive
    """
    if mask is None:
        return None if position_bias is None else position_bias[:, list(rows)]
    chosen = mask[:, list(rows)]
    if chosen.dtype == torch.bool:
        bias = chosen.new_zeros(chosen.shape, dtype=torch.float32).masked_fill(~chosen, -torch.inf)
    else:
        bias = chosen.to(torch.promote_types(chosen.dtype, torch.float32))
    return bias if position_bias is None else bias + position_bias[:, list(rows)]


def sdpa_reference(
    inputs: AttentionInputs, rows: Sequence[int], handed: Tensor | None, log_sums: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the output of some rows with torch's own kernel, from what the model handed over, and check their sums.

    The kernel does not give the sums. So it is handed one more key, whose score is what we found as the logarithm of
    the row's sum: if we are right, this key takes half of every row.

    Shapes:  handed (1 or n_heads, rows, key_len), additive, or None; log_sums (n_heads, rows) -> output (n_heads, rows,
             d_value), row sums as shares of ours (n_heads, rows)
    Values:  a sink is one more key with a zero value; soft caps are not known to this kernel, callers use another
             reference
    """
    query, key, value = inputs.query[:, list(rows)], inputs.key, inputs.value
    n_kv_heads, key_len, d_value = value.shape
    n_sinks = 0 if inputs.sink_logits is None else 1
    bias = query.new_zeros(query.shape[0], len(rows), key_len + n_sinks + 1)
    bias[..., -1] = log_sums
    if handed is not None:
        bias[..., :key_len] = handed
    if inputs.sink_logits is not None:
        bias[..., key_len] = inputs.sink_logits[:, None]
    # One more number in each value: 1 where the key belongs to the row's sum. Torch's quick kernel wants one width.
    width = max(query.shape[-1], d_value + 1)
    query, key, value = (pad(tensor, (0, width - tensor.shape[-1], 0, 0)) for tensor in (query, key, value))
    key, value = (pad(tensor, (0, 0, 0, n_sinks + 1)) for tensor in (key, value))
    value[:, :-1, d_value] = 1.0
    # Heads that share a key head become more rows of it, so that no key is copied.
    stacked = query.reshape(n_kv_heads, -1, width)
    output = scaled_dot_product_attention(
        stacked[None],
        key[None],
        value[None],
        attn_mask=bias.view(1, n_kv_heads, -1, bias.shape[-1]),
        scale=inputs.scaling,
    ).view(*query.shape[:2], width)
    share = output[..., d_value]  # S / (S + ours), for the kernel's sum S
    return output[..., :d_value] / share[..., None], share / (1.0 - share)


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
    worst = max(errors, key=lambda name: nan_is_worst(errors[name])) if errors else ""
    detail = {
        "worst_module": worst,
        "rows_per_module": max((module.compared_rows for module in record.modules), default=0),
        "reference": sorted({module.reference for module in record.modules}),
        "unit": "largest absolute value of the module's value vectors",
    }
    if any(module.reference != SDPA for module in record.modules):
        dtype = torch.float32  # transformers' explicit functions take their softmax in float32 whatever the dtype
    return bounded("module_output", errors.get(worst, 0.0), ROUNDING[dtype], detail)


def whole_pass_check(
    ours: dict[str, Tensor],
    default: dict[str, Tensor],
    kernel: str,
    dtype: torch.dtype,
    scores: float,
    extra: dict[str, Any],
) -> Check:
    """Compare a pass, or a part of it, with the model's own default kernel.

    Shapes:  ours and default: "hidden" (positions, d_model) and, where the model has an output layer, "logits"
             (positions, vocabulary)
    Values:  of each the position that differs most, see `drift`; scores: size of the largest score of the pass
    """
    both = [name for name in default if name in ours]
    differences = {name: float((ours[name] - default[name]).abs().max()) for name in both}
    relative = {name: drift(ours[name], default[name]) for name in both}
    detail = {"kernel": kernel, "absolute": differences, "relative": relative, **extra}
    bound = DRIFT[dtype] + DRIFT_OF_SCORES * torch.finfo(dtype).eps * (scores if math.isfinite(scores) else 0.0)
    return bounded("whole_pass", max(relative.values(), key=nan_is_worst), bound, detail)


def drift(ours: Tensor, default: Tensor) -> float:
    """The largest difference of one position, each dimension in units of its own size.

    One huge dimension, which some models have, would else be the measure of all others, and the largest entry of a text
    that of all positions.

    Shapes:  (positions, width)
    Values:  root mean square over the dimensions; a dimension's size is its root mean square over positions, at least
             a hundredth of the mean of all
    """
    theirs = default.double()
    size = theirs.square().mean(0).sqrt()
    size = size.clamp(min=float(size.mean()) / 100 or 1.0)
    return float(((ours.double() - theirs) / size).square().mean(-1).sqrt().max())


def bounded(name: str, value: float, bound: float, detail: dict[str, Any]) -> Check:
    """A check that passes up to a bound."""
    return Check(name, "pass" if value <= bound else "fail", value, bound, detail)  # a NaN fails


def nan_is_worst(value: float) -> float:
    """A key to sort errors by: a NaN is infinite."""
    return float("inf") if value != value else value


def worse(a: float, b: float) -> float:
    """The larger of two errors, a NaN before all."""
    return max(a, b, key=nan_is_worst)
