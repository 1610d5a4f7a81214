"""One model that one can look into, whatever it is made of: run it, check it, compare it.

What differs between models is the pass itself, and that is what a subclass brings: `models/huggingface.py` for
transformers' models, `models/own.py` for ours. A picture is only given when as many attention modules called as the
model is known to have. This module knows nothing of either, nor of the service.
"""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from models import checks
from models.blockwise import blockwise_attention
from models.capture import Capture
from models.capture_checks import handed_check, kept_check, read_rows, row_checks
from models.card import Card, Check
from models.checks import PassRecord
from models.errors import CaptureError
from models.expected_masks import ExpectedMask, masks_check
from models.figure_checks import figures_check, overviews_check
from models.protocol import ModelDescription, OnLayer, RunResult, ShouldStop
from models.recorder import Compute, Recorder
from models.token_facts import TokenFacts

INLINE_TOKENS = 256  # up to here the whole pass is compared within the run; above, a part, and the whole on request
COMPARED_TOKENS = 64  # of a longer text: 3 % of a pass over 2,048 tokens
COMPARED_LOGITS = (
    64  # last positions whose logits are compared: all of them would take 805 MB at 4,096 tokens of SmolLM2
)
Logits = Literal["first", "last"] | None  # of which positions


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
        logits: Logits,
    ) -> dict[str, Tensor]:
        """Run the model once: with our attention through the recorder, or, without one, with its default kernel.

        Shapes:  -> "hidden" (seq_len, d_model), after the final norm; "logits" (positions, vocabulary), of the first or
                 last COMPARED_LOGITS positions, if asked and the model has an output layer; "first" is left out where
                 the model could only give the logits of all positions
        """

    @abstractmethod
    def _place(self) -> tuple[torch.dtype, torch.device]:
        """The type and device of the weights."""

    @abstractmethod
    def _expected_mask(self, site: str, layer: int, length: int) -> ExpectedMask | None:
        """What the configuration says of one layer's mask; None where it is not known what it says."""

    def _depends_on_length(self) -> bool:
        """Whether the first positions depend on how long the text is."""
        return False

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
        seed: int | None = None,
        on_layer: OnLayer = lambda _done, _total: None,
        should_stop: ShouldStop = lambda: False,
    ) -> RunResult:
        """Run one text and capture every head.

        Args:    target_ids: what the decoder reads, only for encoder–decoder models; segments: 0 or 1 for each token of
                 a pair of texts; facts, target_facts: which tokens are special or punctuation, None for unknown;
                 seed: of the draw of rows and cells that are checked, None for another each time
        Raises:  Cancelled; CaptureError, with the card so far, if not every attention module was seen
        """
        started = time.perf_counter()
        seed = secrets.randbelow(2**32) if seed is None else seed
        inline = len(token_ids) <= INLINE_TOKENS and len(target_ids or ()) <= INLINE_TOKENS
        source = facts or TokenFacts(tuple(token_ids))
        known = {"encoder.self": source, "decoder.cross": source, "decoder.self": source}
        if target_ids is not None:
            known["decoder.self"] = target_facts or TokenFacts(tuple(target_ids))
        recorder = self._recorder(keep=True, facts=known, on_layer=on_layer, should_stop=should_stop, seed=seed)
        ours = self._forward(token_ids, target_ids, segments, recorder, logits="last" if inline else "first")
        computed = time.perf_counter()
        capture, found = self._checked(recorder, seed)
        if inline:
            whole_pass = self._compare(ours, recorder.record, token_ids, target_ids, segments)
        else:
            whole_pass = self._compare_part(ours, recorder, token_ids, target_ids, segments, should_stop)
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
        ours = self._forward(token_ids, target_ids, segments, recorder, logits="last")
        return self._compare(ours, recorder.record, token_ids, target_ids, segments)

    def final_hidden(self, token_ids: Sequence[int], target_ids: Sequence[int] | None = None) -> Tensor:
        """Run one text with our attention and keep only what comes out after the final norm.

        Shapes:  -> (seq_len, d_model); of the decoder for encoder–decoder models
        """
        return self._forward(token_ids, target_ids, None, self._recorder(keep=False), logits=None)["hidden"]

    def _recorder(
        self,
        *,
        keep: bool,
        facts: Mapping[str, TokenFacts] | None = None,
        on_layer: OnLayer = lambda _done, _total: None,
        should_stop: ShouldStop = lambda: False,
        seed: int = 0,
    ) -> Recorder:
        return Recorder(
            self._names,
            self.expected,
            on_layer=on_layer,
            should_stop=should_stop,
            keep=keep,
            facts=facts,
            compute=self._compute,
            seed=seed,
        )

    def _checked(self, recorder: Recorder, seed: int) -> tuple[Capture, list[Check]]:
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
        read = read_rows(record, capture)
        found += [masks_check(capture, self._expected_mask), *row_checks(read, capture, dtype)]
        found += [handed_check(read, capture, dtype), kept_check(record, capture)]
        found += [overviews_check(capture, seed), figures_check(read, capture)]
        found += [checks.non_finite_check(record), checks.module_output_check(record, dtype)]
        return capture, found

    def _arithmetic(self) -> torch.dtype:
        return torch.float64 if self._place()[0] == torch.float64 else torch.float32

    def _compare(
        self,
        ours: dict[str, Tensor],
        record: PassRecord,
        token_ids: Sequence[int],
        target_ids: Sequence[int] | None,
        segments: Sequence[int] | None,
    ) -> Check:
        default = self._forward(token_ids, target_ids, segments, None, logits="last")
        return self._difference(ours, default, record, "whole", len(token_ids))

    def _compare_part(
        self,
        ours: dict[str, Tensor],
        recorder: Recorder,
        token_ids: Sequence[int],
        target_ids: Sequence[int] | None,
        segments: Sequence[int] | None,
        should_stop: ShouldStop,
    ) -> Check:
        """Compare the beginning of a longer text.

        Where no position sees a later one, the first are the same however long the text is: the default kernel needs
        only them. Else an excerpt goes through both ways.
        """
        part = slice(0, COMPARED_TOKENS)
        targets = None if target_ids is None else target_ids[part]
        excerpt = token_ids[part], targets, None if segments is None else segments[part]
        default = self._forward(*excerpt, None, logits="last")
        if recorder.looks_back and not self._depends_on_length():
            ours = {name: values[part] for name, values in ours.items()}
            return self._difference(ours, default, recorder.record, "prefix", len(excerpt[0]))
        recorder = self._recorder(keep=False, should_stop=should_stop)
        ours = self._forward(*excerpt, recorder, logits="last")
        return self._difference(ours, default, recorder.record, "excerpt", len(excerpt[0]))

    def _difference(
        self, ours: dict[str, Tensor], default: dict[str, Tensor], record: PassRecord, how: str, tokens: int
    ) -> Check:
        logits = len(default["logits"]) if "logits" in default and "logits" in ours else 0
        extra = {"how": how, "tokens": tokens, "compared_logits": logits}
        dtype, scores = self._arithmetic(), record.largest_score
        return checks.whole_pass_check(ours, default, self.default_kernel, dtype, scores, extra)
