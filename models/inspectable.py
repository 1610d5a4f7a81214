"""One model that one can look into, whatever it is made of: run it, check it, compare it.

What differs between models is the pass itself, and that is what a subclass brings: `models/huggingface.py` for
transformers' models, `models/own.py` for ours. A picture is only given when as many attention modules called as the
model is known to have. This module knows nothing of either, nor of the service.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from models import checks
from models.blockwise import blockwise_attention
from models.capture import Capture
from models.card import Card, Check
from models.errors import CaptureError
from models.protocol import ModelDescription, OnLayer, RunResult, ShouldStop
from models.recorder import Compute, Recorder
from models.token_facts import TokenFacts

INLINE_TOKENS = 256  # up to here the whole pass is compared within the run; above, only on request
COMPARED_LOGITS = (
    64  # last positions whose logits are compared: all of them would take 805 MB at 4,096 tokens of SmolLM2
)


class InspectableModel(ABC):
    """The half of the AttentionModel protocol that is the same for every model. One call of `run` at a time.

    names     id of each sub-module -> its qualified name
    expected  site -> number of its attention modules
    """

    description: ModelDescription
    weights_check: Check | None = None  # what was found when the weights were loaded from a checkpoint

    def __init__(self, names: dict[int, str], expected: dict[str, int], compute: Compute = blockwise_attention) -> None:
        self._names, self.expected, self._compute = names, expected, compute

    @property
    @abstractmethod
    def default_kernel(self) -> str:
        """What the whole pass is compared with, in words."""

    @abstractmethod
    def _forward(
        self,
        token_ids: Sequence[int],
        target_ids: Sequence[int] | None,
        segments: Sequence[int] | None,
        recorder: Recorder | None,
        *,
        with_logits: bool,
    ) -> dict[str, Tensor]:
        """Run the model once: with our attention through the recorder, or, without one, with its default kernel.

        Shapes:  -> "hidden" (seq_len, d_model), after the final norm; "logits" (positions, vocabulary), of the last
                 COMPARED_LOGITS positions, if asked and the model has an output layer
        """

    @abstractmethod
    def _place(self) -> tuple[torch.dtype, torch.device]:
        """The type and device of the weights."""

    def _attention_path(self) -> str:
        """Which attention function the model has now, in words."""
        return "everyhead"

    def run(
        self,
        token_ids: Sequence[int],
        *,
        target_ids: Sequence[int] | None = None,
        segments: Sequence[int] | None = None,
        facts: TokenFacts | None = None,
        target_facts: TokenFacts | None = None,
        on_layer: OnLayer = lambda _done, _total: None,
        should_stop: ShouldStop = lambda: False,
    ) -> RunResult:
        """Run one text and capture every head.

        Args:    target_ids: what the decoder reads, only for encoder–decoder models; segments: 0 or 1 for each token of
                 a pair of texts; facts, target_facts: which tokens are special or punctuation, None for unknown
        Raises:  Cancelled; CaptureError, with the card so far, if not every attention module was seen
        """
        started = time.perf_counter()
        inline = len(token_ids) <= INLINE_TOKENS and len(target_ids or ()) <= INLINE_TOKENS
        source = facts or TokenFacts(tuple(token_ids))
        known = {"encoder.self": source, "decoder.cross": source, "decoder.self": source}
        if target_ids is not None:
            known["decoder.self"] = target_facts or TokenFacts(tuple(target_ids))
        recorder = self._recorder(keep=True, facts=known, on_layer=on_layer, should_stop=should_stop)
        ours = self._forward(token_ids, target_ids, segments, recorder, with_logits=inline)
        computed = time.perf_counter()
        capture, found = self._checked(recorder)
        if inline:
            whole_pass = self._compare(ours, token_ids, target_ids, segments)
        else:
            whole_pass = checks.not_compared(f"more than {INLINE_TOKENS} tokens: compared on request")
        seconds = {"forward": computed - started, "check": time.perf_counter() - computed}
        return RunResult(capture, Card((*found, whole_pass)), seconds)

    def compare_whole_pass(
        self,
        token_ids: Sequence[int],
        *,
        target_ids: Sequence[int] | None = None,
        segments: Sequence[int] | None = None,
        should_stop: ShouldStop = lambda: False,
    ) -> Check:
        """The card's `whole_pass` check: our pass against the model's own default kernel. Raises Cancelled."""
        recorder = self._recorder(keep=False, should_stop=should_stop)
        ours = self._forward(token_ids, target_ids, segments, recorder, with_logits=True)
        return self._compare(ours, token_ids, target_ids, segments)

    def final_hidden(self, token_ids: Sequence[int], target_ids: Sequence[int] | None = None) -> Tensor:
        """Run one text with our attention and keep only what comes out after the final norm.

        Shapes:  -> (seq_len, d_model); of the decoder for encoder–decoder models
        """
        return self._forward(token_ids, target_ids, None, self._recorder(keep=False), with_logits=False)["hidden"]

    def _recorder(
        self,
        *,
        keep: bool,
        facts: Mapping[str, TokenFacts] | None = None,
        on_layer: OnLayer = lambda _done, _total: None,
        should_stop: ShouldStop = lambda: False,
    ) -> Recorder:
        return Recorder(
            self._names,
            self.expected,
            on_layer=on_layer,
            should_stop=should_stop,
            keep=keep,
            facts=facts,
            compute=self._compute,
        )

    def _checked(self, recorder: Recorder) -> tuple[Capture, list[Check]]:
        record, dtype = recorder.record, self._arithmetic()
        record.implementation = self._attention_path()
        detail = {
            "attention": "explicit, in blocks of query rows",
            "weights": self.description.weight_precision,
            "device": self._place()[1].type,
        }
        found = [
            checks.modules_check(record),
            checks.eval_mode_check(record),
            *([self.weights_check] if self.weights_check else []),
            Check("arithmetic", "info", str(dtype).removeprefix("torch."), None, detail),
        ]
        if found[0].status == "fail":
            seen, expected = found[0].value, found[0].bound
            raise CaptureError(
                f"{seen} of {expected} attention modules were seen, so there is no picture: part of this model's "
                "attention does not pass through the place where it can be read",
                Card(tuple(found)),
            )
        capture = recorder.capture()
        found += checks.read_back_checks(record, capture, dtype)
        found += [checks.non_finite_check(record), checks.module_output_check(record, dtype)]
        return capture, found

    def _arithmetic(self) -> torch.dtype:
        return torch.float64 if self._place()[0] == torch.float64 else torch.float32

    def _compare(
        self,
        ours: dict[str, Tensor],
        token_ids: Sequence[int],
        target_ids: Sequence[int] | None,
        segments: Sequence[int] | None,
    ) -> Check:
        default = self._forward(token_ids, target_ids, segments, None, with_logits=True)
        extra = {"tokens": len(token_ids), "compared_logits": COMPARED_LOGITS if "logits" in default else 0}
        return checks.whole_pass_check(ours, default, self.default_kernel, self._arithmetic(), extra)
