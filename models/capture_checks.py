"""Checks of what the capture gives back: read as a reader reads it, compared with what the modules handed to the model.

Every head's sampled rows are read back as weights, whose sums, masks and products with the kept values are compared
with what was noted during the pass under the module's qualified name; fingerprints say that nothing else was exchanged
or changed on the way. This module knows neither models nor how a card is worded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from models.capture import Capture
from models.card import Check
from models.checks import ModuleRecord, PassRecord, bounded, nan_is_worst, output_error, worse
from models.fingerprints import fingerprint

# |row sum − 1| of weights that are read back: rounding of a softmax over some thousand keys. Seen with scores up to 21:
# 6e-7. A score is a float32 itself, so its last digit (its size times the dtype's epsilon) is a relative error of its
# weight: at scores of 245, 2.0e-5 were seen, and 2.9e-5 is that digit. Two kernels that both round their scores differ
# by some of these: at 278, where the digit is 3.3e-5, 4.6e-5 were seen.
ROW_SUMS = {torch.float32: 1e-5, torch.float64: 1e-12}
SCORE_DIGITS = 4  # last digits of the largest score
# |weights · value − what the module gave| / largest |value|. Seen: 2e-7 without a fault, 0.45 to 1.2 when layers, heads
# or keys are exchanged; a head's row maximum off by 1e-3 gives 1e-3 of its output, and its row sums show it as well.
READ_BACK = {torch.float32: 1e-4, torch.float64: 1e-9}
# Two fingerprints of the same numbers: the order of a sum in float32. One key of 2,048 exchanged changes it by 1e-2.
SAME_PRINT = 1e-6


@dataclass(frozen=True)
class ReadRows:
    """The sampled rows of one module as the capture gives them back.

    Shapes:  weights (n_heads, sampled rows, key_len)
    """

    module: ModuleRecord
    weights: Tensor


def read_rows(record: PassRecord, capture: Capture) -> list[ReadRows]:
    """Read the sampled rows of every module back."""
    found = []
    for module in record.modules:
        described = capture.site(module.site)
        heads, keys = (0, described.n_heads), (0, described.key_len)
        found.append(ReadRows(module, capture.weights(module.site, module.layer, heads, module.rows, keys)))
    return found


def row_checks(read: list[ReadRows], capture: Capture, dtype: torch.dtype) -> list[Check]:
    """Check the rows' sums, and that nothing is outside of the model's mask."""
    worst_sum, worst_outside, with_sinks, largest = 0.0, 0.0, 0, 0.0
    for rows in read:
        module, weights = rows.module, rows.weights
        share = capture.sink_share(module.site, module.layer)
        with_sinks += share is not None
        sums = weights.sum(-1) if share is None else weights.sum(-1) + share[:, module.rows]
        has_keys = torch.ones(len(module.rows), dtype=torch.bool)
        if module.sampled_mask is not None:
            has_keys = module.sampled_mask.any(-1)
            outside = weights.abs().amax(0).masked_fill(module.sampled_mask, 0.0)  # (sampled rows, key_len)
            worst_outside = worse(worst_outside, float(outside.max()))
        worst_sum = worse(worst_sum, float((sums - has_keys.to(sums.dtype)).abs().max()))
        worst_sum = worse(worst_sum, module.row_sum_error or 0.0)  # of what the pass found, beside torch's own kernel
        largest = max(largest, module.largest_score)
    bound = ROW_SUMS[dtype] + SCORE_DIGITS * torch.finfo(dtype).eps * (largest if math.isfinite(largest) else 0.0)
    count = sum(len(rows.module.rows) for rows in read)
    summed = sum(rows.module.compared_rows for rows in read if rows.module.row_sum_error is not None)
    detail = {
        "read_back_rows": count,
        "summed_rows": summed,
        "modules_with_sinks": with_sinks,
        "largest_score": largest,
    }
    return [bounded("row_sums", worst_sum, bound, detail), bounded("outside_mask", worst_outside, 0.0, {})]


def handed_check(read: list[ReadRows], capture: Capture, dtype: torch.dtype) -> Check:
    """Compare weights · value of the rows that were read back with what the modules gave the model."""
    errors: dict[str, float] = {}
    for rows in read:
        module = rows.module
        value = capture.module_tensors(module.site, module.layer)["value"]
        group = rows.weights.shape[0] // value.shape[0]
        # (n_kv_heads, group · rows, key_len): heads that share a value are rows of it
        stacked = rows.weights.reshape(value.shape[0], -1, value.shape[1]).to(value.dtype)
        output = torch.bmm(stacked, value).view(value.shape[0] * group, -1, value.shape[2])
        place = f"{module.name} ({module.site} {module.layer})"  # one name serves several layers in ALBERT
        errors[place] = output_error(output, module.handed.to(output.dtype), value)
    worst = max(errors, key=lambda name: nan_is_worst(errors[name]), default="")
    scores = max((rows.module.largest_score for rows in read), default=0.0)
    bound = READ_BACK[dtype] + torch.finfo(dtype).eps * (scores if math.isfinite(scores) else 0.0)
    detail = {"worst_module": worst, "rows_per_module": max((len(rows.module.rows) for rows in read), default=0)}
    return bounded("read_back", errors.get(worst, 0.0), bound, detail)


def kept_check(record: PassRecord, capture: Capture) -> Check:
    """Count what the capture keeps otherwise than it was handed over: all rows, keys and heads of every module."""
    changed = []
    for module in record.modules:
        kept = capture.module_tensors(module.site, module.layer)
        for name, before in module.prints.items():
            now = fingerprint(kept[name]) if name in kept else math.inf
            same = abs(now - before) <= SAME_PRINT or (math.isnan(now) and math.isnan(before))
            if not same:  # numbers that are not finite are counted by a check of their own
                changed.append(f"{module.name}: {name}")
    compared = sum(len(module.prints) for module in record.modules)
    return bounded("kept", len(changed), 0, {"changed": changed[:8], "compared": compared})
