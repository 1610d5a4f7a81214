"""Any transformers model, looked into: our attention function (`models/interface.py`) in place of its own kernel.

A picture is only given when as many modules called as the configuration says there are; a short trial right after
loading shows it before anybody waits for a run. This module knows nothing of the service.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from models.blockwise import blockwise_attention
from models.checkpoints import max_tokens_of
from models.configuration import describe, kind_seen, reads_pairs
from models.errors import UnsupportedModel
from models.expected_masks import ExpectedMask, depends_on_length, expected_mask
from models.families import kind_of, layers_of, refusal, text_config
from models.head_sums import figures_size
from models.inspectable import COMPARED_LOGITS, COMPARED_TOKENS, InspectableModel, Logits
from models.interface import NAME, under_way
from models.loading import load_checkpoint, rows_of
from models.projections import WatchedProjections
from models.protocol import ShouldStop, device_of_choice
from models.recorder import Compute, Recorder
from models.targets import LONGEST_TARGET, start_id, target_from_text, written_target
from models.tokens import Token, builds_pairs, tokens_from_text
from models.trial import Trial, TriedModule, trial_ids, tried


class HuggingFaceModel(InspectableModel):
    """One transformers model that one can look into (the AttentionModel protocol). One call of `run` at a time."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None,
        *,
        max_tokens: int,
        weight_precision: str,
        revision: str,
        compute: Compute = blockwise_attention,
    ) -> None:
        """Raises UnsupportedModel if its attention cannot be read as its configuration says; the message says why."""
        reason = refusal(model.config)
        if reason is not None:
            raise UnsupportedModel(reason)
        names = {id(module): name for name, module in model.named_modules()}
        super().__init__(names, layers_of(model.config), compute)
        self.model, self.tokenizer, self._kernel = model.eval(), tokenizer, _kernel_of(model)
        self._kernels = _kernels_of(model.config)
        self._kind = kind_of(model.config)
        _use_our_attention(model)
        self._modules = self._try()
        self._kind = kind_seen(self._kind, self._modules)
        if len(self.expected) == 1:
            self.expected = {f"{self._kind}.self": len(self._modules)}
        self.description = describe(
            model,
            self._kind,
            self._modules,
            n_layers=next(iter(self.expected.values())),
            max_tokens=max_tokens,
            weight_precision=weight_precision,
            revision=revision,
        )
        if tokenizer is not None and reads_pairs(model, self._kind) and builds_pairs(tokenizer):
            self.description = replace(self.description, takes_pair=True)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        weight_precision: str,
        revision: str,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> HuggingFaceModel:
        """Load a checkpoint folder: safetensors only, no code from it, no network. Raises UnsupportedModel.

        dtype: of the arithmetic; by default float64 for float64 checkpoints, float32 for all others.
        """
        loaded = load_checkpoint(folder, dtype)
        place: Any = device or device_of_choice()  # transformers' stub of `to` takes a model alone
        if kind_of(loaded.config) == "encoder-decoder":
            start_id(loaded.model)  # raises if it has none: then no target could be told to it
        model = cls(
            loaded.model.to(place),
            loaded.tokenizer,
            max_tokens=max_tokens_of(loaded.config, folder),
            weight_precision=weight_precision,
            revision=revision,
        )
        model.weights_check = loaded.check
        return model

    def tokenize(
        self,
        text: str,
        *,
        text_pair: str | None = None,
        add_special_tokens: bool = True,
        should_stop: ShouldStop = lambda: False,
    ) -> list[Token]:
        """Tokens of the text, or of the pair, with offsets. Does not run the model. Raises UnsupportedModel."""
        if text_pair is not None and not self.description.takes_pair:
            raise UnsupportedModel("this model reads one text, not a pair")
        special = add_special_tokens
        return tokens_from_text(
            self._tokenizer(), text, text_pair=text_pair, add_special_tokens=special, should_stop=should_stop
        )

    def tokenize_target(self, text: str) -> list[Token]:
        """What the decoder reads for a target text: its start token, then the text, without the end that it foretells.

        Raises:  UnsupportedModel for models that are no encoder–decoder
        """
        return target_from_text(self.model, self._tokenizer(), text)

    def write_target(
        self, token_ids: Sequence[int], *, segments: Sequence[int] | None = None, should_stop: ShouldStop
    ) -> list[Token]:
        """What the model writes by itself with its default kernel, as what its decoder reads. Raises Cancelled."""
        room = min(LONGEST_TARGET, self.description.max_tokens - 1)
        with self._attending(None):
            return written_target(self.model, self._tokenizer(), token_ids, room, should_stop)

    def capture_bytes(self, n_tokens: int, n_target: int = 0) -> int:
        """Bytes that the capture of a run over n_tokens, and n_target of a target, takes in memory and on disk."""
        width = self.model.dtype.itemsize if self.model.dtype == torch.float64 else 4
        numbers, taken = 0, 0
        for module in self._modules:
            query_len = n_target if self._kind == "encoder-decoder" and module.site != "encoder.self" else n_tokens
            key_len = n_tokens if module.site == "decoder.cross" else query_len
            n_heads, n_kv_heads = module.n_heads, module.n_kv_heads
            kept = query_len * n_heads * (module.d_head + 8)  # query, row statistics
            kept += key_len * (n_kv_heads * (module.d_head + module.d_value) + n_heads)  # key, value, output lengths
            kept += figures_size(n_heads, query_len, same_sequence=module.site != "decoder.cross")
            numbers += kept + n_heads * 2 * min(query_len, 64) * min(key_len, 64)  # overviews
            taken += query_len * key_len if module.selects else 0  # a mask of its own, a byte a key
        if hasattr(self.model.config, "relative_attention_num_buckets"):
            numbers += sum(module.n_heads for module in self._firsts()) * 2 * max(n_tokens, n_target)  # a bias a site
        return numbers * width + taken

    def _firsts(self) -> list[TriedModule]:
        return list({module.site: module for module in self._modules}.values())

    def _tokenizer(self) -> PreTrainedTokenizerBase:
        if self.tokenizer is None:
            raise UnsupportedModel("this model was given without a tokenizer")
        return self.tokenizer

    @property
    def default_kernel(self) -> str:
        """The attention function that transformers chose for this model."""
        return self._kernel

    def _expected_mask(self, site: str, layer: int, length: int) -> ExpectedMask | None:
        return expected_mask(self.model.config, site, layer, length)

    def _depends_on_length(self) -> bool:
        return depends_on_length(self.model.config, COMPARED_TOKENS)

    def _attention_path(self) -> str:
        return _kernel_of(self.model)

    def _place(self) -> tuple[torch.dtype, torch.device]:
        return self.model.dtype, self.model.device

    @contextmanager
    def _attending(self, recorder: Recorder | None) -> Iterator[None]:
        """Our attention through the recorder, or, without one, the model's default kernel for the time being."""
        projections = WatchedProjections(dict(self.model.named_modules()), self._names)
        token = under_way.set(None if recorder is None else (recorder, projections))
        if recorder is None:
            self.model.set_attn_implementation(self._kernels)
        try:
            yield
        finally:
            under_way.reset(token)
            for module in projections.close():
                if recorder is not None:
                    recorder.forget_projection(module)
            if recorder is None:
                _use_our_attention(self.model)

    @torch.no_grad()
    def _forward(
        self,
        token_ids: Sequence[int],
        target_ids: Sequence[int] | None,
        segments: Sequence[int] | None,
        recorder: Recorder | None,
        *,
        logits: Logits,
    ) -> dict[str, Tensor]:
        self._require_rows(token_ids)
        self.model.eval()
        body = self.model if target_ids is not None else self.model.base_model
        wanted = logits is not None and (logits == "last" or "logits_to_keep" in _parameters(self.model))
        target = self.model if wanted else body
        hidden: list[Tensor] = []
        # The last of the models inside that gives one: which of them is called by the outermost is each family's own.
        parts = [module for module in self.model.modules() if isinstance(module, PreTrainedModel)]
        hooks = [part.register_forward_hook(lambda _own, _in, output: _note_hidden(hidden, output)) for part in parts]
        try:
            with self._attending(recorder):
                output = target(**self._model_inputs(target, token_ids, target_ids, segments, logits))
        finally:
            for hook in hooks:
                hook.remove()
        if not hidden:
            raise UnsupportedModel(f"{type(self.model).__name__} shows no final hidden state to compare")
        found = {"hidden": hidden[0]}
        if wanted and getattr(output, "logits", None) is not None:
            found["logits"] = output.logits[0, -COMPARED_LOGITS:]  # the first of all, if only these were asked for
        return found

    def _require_rows(self, ids: Sequence[int]) -> None:
        # a token that was added to the tokenizer after the model was trained
        rows = rows_of(self.model)
        if (largest := max(ids, default=0)) >= rows:
            raise UnsupportedModel(
                f"the text has the token {largest}, which its tokenizer knows and its table of embeddings, "
                f"of {rows} rows from 0, does not; remove it from the text"
            )

    def _try(self) -> tuple[TriedModule, ...]:
        """One pass over a few tokens, by which it is known whether others can be made. Raises UnsupportedModel."""
        config, trial = self.model.config, Trial(self._names, self.expected)
        text = text_config(config)
        marks = [getattr(text, name, None) for name in ("pad_token_id", "bos_token_id", "eos_token_id")]
        ids = trial_ids(getattr(text, "vocab_size", 0), marks)
        targets = ids if self._kind == "encoder-decoder" else None
        return tried(trial, lambda: self._forward(ids, targets, None, trial, logits="last"))

    def _model_inputs(
        self,
        target: nn.Module,
        token_ids: Sequence[int],
        target_ids: Sequence[int] | None,
        segments: Sequence[int] | None,
        logits: Logits,
    ) -> dict[str, Any]:
        inputs: dict[str, Any] = {"input_ids": torch.tensor([list(token_ids)], device=self.model.device)}
        if target_ids is not None:
            inputs["decoder_input_ids"] = torch.tensor([list(target_ids)], device=self.model.device)
        if segments is not None:
            inputs["token_type_ids"] = torch.tensor([list(segments)], device=self.model.device)
        accepted = _parameters(target)
        if "use_cache" in accepted or "kwargs" in accepted:
            inputs["use_cache"] = False
        if "logits_to_keep" in accepted:
            first = torch.arange(COMPARED_LOGITS, device=self.model.device)
            inputs["logits_to_keep"] = first if logits == "first" else COMPARED_LOGITS
        return inputs


def _note_hidden(found: list[Tensor], output: Any) -> None:  # noqa: ANN401  whatever a model gives
    last = getattr(output, "last_hidden_state", None)
    if last is not None:
        found[:] = [last[0]]


def _use_our_attention(model: PreTrainedModel) -> None:
    model.set_attn_implementation(NAME)
    if _kernel_of(model) != NAME:
        raise UnsupportedModel(f"{type(model).__name__} did not accept another attention function")


def _parameters(module: nn.Module) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(module.forward).parameters


def _kernel_of(model: PreTrainedModel) -> str:
    return str(model.config._attn_implementation)  # noqa: SLF001  transformers gives no public name to it


def _kernels_of(config: PreTrainedConfig) -> dict[str, Any]:
    """The attention function of a model and of each model inside, in transformers' own form: they may differ."""
    kernels: dict[str, Any] = {"": str(config._attn_implementation)}  # noqa: SLF001  see above
    for name in config.sub_configs or ():
        part = getattr(config, name, None)
        if isinstance(part, PreTrainedConfig):
            kernels[name] = _kernels_of(part)
    return kernels
