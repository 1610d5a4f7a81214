"""The tables of a measurement as Markdown. Knows how figures are shown, not how they were measured."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

from bench.api import ApiFigures
from bench.forward import WITHOUT, PassFigures

PACKAGES = ("torch", "transformers", "numpy", "fastapi", "uvicorn")
METHOD = (
    "SmolLM2-135M, the model's body without the output layer, the same token ids for all. Seconds are medians; "
    "each ratio is the median over pairs of passes that ran one after the other. *Ours* is the capture of all heads "
    "with figures, overviews and the correctness card, in memory; *figures of heads add* compares it with the same "
    "pass without the figures (scores, distances, concentration, each with and without the first token). Memory is the "
    "peak that a pass adds to a process with the model loaded. "
    "Eager is not run at 4,096 tokens: its weights alone would take 18 GB."
)
CPUINFO = Path("/proc/cpuinfo")


def machine() -> str:
    """Processor, threads, system and versions, in two lines."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor()
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {processor}, {torch.get_num_threads()} threads, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}."
    )


def forward_table(results: dict[int, dict[str, PassFigures]]) -> str:
    """One row a length: seconds, ratios, added memory."""
    lines = [
        "| tokens | SDPA, no weights | eager, all weights | ours, everything | ours / SDPA | ours / eager |"
        " figures of heads add | memory SDPA | memory eager | memory ours |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for count, kinds in results.items():
        sdpa, eager, ours = (kinds[kind] for kind in ("sdpa", "eager", "ours"))
        cells = [_seconds(sdpa), _seconds(eager), _seconds(ours), _ratio(sdpa), _ratio(eager), _added(kinds[WITHOUT])]
        cells += [_megabytes(figures) for figures in (sdpa, eager, ours)]
        lines.append(f"| {count:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def api_table(figures: ApiFigures) -> str:
    """What a client waits for and receives."""
    parts = ", ".join(f"{name} {size:,}" for name, size in figures.picture_bytes.items())
    rows = [
        ("256 × 256 window of a 4,096-token run, median", f"{figures.window_ms:.0f} ms"),
        ("the slowest of them", f"{figures.window_slowest_ms:.0f} ms"),
        ("whole 4,096 × 4,096 head pooled to 256 × 256, first time, median", f"{figures.pooled_head_ms:.0f} ms"),
        (
            "bytes to the first full picture, 512 tokens × 270 heads",
            f"{sum(figures.picture_bytes.values()):,} ({parts})",
        ),
        (
            f"a text of {figures.long_tokens:,} tokens, asked for and followed to its end",
            f"{figures.long_seconds:.0f} s, {figures.long_events} progress events",
        ),
        ("1,200 heads ranked on 10 pairs of a 2,048-token run, median", f"{figures.pairs_ms:.0f} ms"),
        ("the slowest of them", f"{figures.pairs_slowest_ms:.0f} ms"),
    ]
    return "\n".join(["| at the API | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows)])


def document(results: dict[int, dict[str, PassFigures]], figures: ApiFigures) -> str:
    """The whole of results.md."""
    return (
        "\n\n".join(
            [
                "# Measured",
                "Written by `make bench`; every figure on this page comes from one run of it.",
                machine(),
                METHOD,
                forward_table(results),
                api_table(figures),
            ]
        )
        + "\n"
    )


def _seconds(figures: PassFigures) -> str:
    return "–" if figures.seconds is None else f"{figures.seconds:.2f} s"


def _ratio(figures: PassFigures) -> str:
    return "–" if figures.ours_to_this is None else f"{figures.ours_to_this:.2f}"


def _added(figures: PassFigures) -> str:
    return "–" if figures.ours_to_this is None else f"{figures.ours_to_this - 1:.1%}"


def _megabytes(figures: PassFigures) -> str:
    return "–" if figures.added_bytes is None else f"{figures.added_bytes / 1e6:,.0f} MB"
