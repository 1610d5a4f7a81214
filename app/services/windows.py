"""Windows and overviews as bytes: nested lists for JSON, .npy, .csv. It knows neither runs nor HTTP."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.lens_windows import LensWindow
from models.protocol import CaptureReader, Window

OF_THE_SAME_TOKENS = ("self", "previous", "distance")  # only where queries and keys are the same positions


def nested(weights: Tensor, decimals: int | None = None) -> list[Any]:
    """Nested lists of floats; NaN (masked) becomes None."""
    values = weights.double().numpy()
    if decimals is not None:
        values = np.round(values, decimals)
    flat = values.astype(object)
    flat[np.isnan(values)] = None
    result: list[Any] = flat.tolist()
    return result


def window_dict(window: Window) -> dict[str, Any]:
    """The JSON form of a window."""
    return {
        "rows": window.rows,
        "cols": window.cols,
        "row_step": window.row_step,
        "col_step": window.col_step,
        "pool": window.pool,
        "weights": nested(window.weights),
    }


def lens_dict(found: LensWindow, lens: str, unit: str) -> dict[str, Any]:
    """What a window says of its lens."""
    removed = None if found.removed is None else nested(found.removed)
    return {"lens": lens, "unit": unit, "formula": found.formula, "unit_max": found.largest, "removed": removed}


def npy(values: Tensor) -> bytes:
    """NumPy's own file form; NaN where masked."""
    buffer = io.BytesIO()
    np.save(buffer, values.contiguous().numpy(), allow_pickle=False)
    return buffer.getvalue()


def csv(window: Window) -> bytes:
    """A header row with the first key of each column, then one line per row led by its first query; masked is empty.

    Numbers only: no token text, so nothing in it can be taken for a formula.
    """
    lines = ["query/key," + ",".join(str(start) for start in _starts(window.cols, window.col_step))]
    for start, row in zip(_starts(window.rows, window.row_step), nested(window.weights), strict=True):
        lines.append(f"{start}," + ",".join("" if value is None else repr(value) for value in row))
    return ("\n".join(lines) + "\n").encode()


def overview_bytes(overview: Tensor) -> bytes:
    """Square-root coded uint8: weight = (byte / 255)². Small weights stay visible and it packs well."""
    return npy((overview.clamp(0, 1).sqrt() * 255).round().to(torch.uint8))


def _starts(span: tuple[int, int], step: int) -> list[int]:
    """The first index of each cell; cells are aligned to 0, so the first may be partial."""
    return [span[0], *range(span[0] - span[0] % step + step, span[1], step)]


def head_rows(capture: CaptureReader, site: str, layer: int, head: int) -> dict[str, list[float | int | None]]:
    """Per-row statistics of one head; None where one has no meaning, as throughout where queries are not the keys."""
    length = capture.site(site).query_len
    answer: dict[str, list[float | int | None]] = {name: [None] * length for name in OF_THE_SAME_TOKENS}
    for name, values in capture.row_stats(site).items():
        row = nested(values[layer, head])
        answer[name] = (
            [None if value is None or value < 0 else int(value) for value in row] if name == "top_key" else row
        )
    answer["previous"][0] = None  # nothing comes before the first
    return answer
