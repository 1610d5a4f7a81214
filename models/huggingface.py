"""Any transformers model, looked into: our attention function in place of the model's own kernel.

transformers calls the function that is registered with `AttentionInterface` for every attention module, and asks the
function that is registered under the same name with `AttentionMaskInterface` for the mask. Without the second it would
hand over no mask at all, without a word. The recorder of the pass under way travels in a context variable, so passes in
several threads do not meet.

A picture is only given when as many modules called as the configuration says there are. This module knows nothing of
the service.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel, PreTrainedTokenizerBase
from transformers.masking_utils import sdpa_mask

from models.blockwise import blockwise_attention
from models.checkpoints import max_tokens_of
from models.configuration import auto_class, describe, expected_modules, heads_of, reads_pairs
from models.errors import CaptureError, UnsupportedModel
from models.expected_masks import ExpectedMask, depends_on_length, expected_mask
from models.head_sums import figures_size
from models.inspectable import COMPARED_LOGITS, InspectableModel, Logits
from models.projections import WatchedProjections
from models.protocol import ShouldStop, device_of_choice
from models.recorder import Compute, ModuleCall, Recorder
from models.targets import LONGEST_TARGET, start_id, target_from_text, written_target
from models.tokens import NO_OFFSETS, Token, builds_pairs, tokens_from_text

NAME = "everyhead"  # of our function in transformers' registries

_pass: ContextVar[tuple[Recorder, WatchedProjections] | None] = ContextVar("pass", default=None)


def everyhead_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    s_aux: Tensor | None = None,
    **_other: Any,  # position_ids, use_cache, …: families pass what they like
) -> tuple[Tensor, None]:
    """Attend for one module of a transformers model, through the recorder of the pass under way.

    Shapes:  query (1, n_heads, query_len, d_head), key (1, n_kv_heads, key_len, d_head), value (1, n_kv_heads, key_len,
             d_value), attention_mask (1, 1 or n_heads, query_len, key_len) boolean or additive, position_bias the same,
             s_aux (n_heads) -> (1, query_len, n_heads, d_value), as the interface asks, and no weights
    Raises:  CaptureError outside of a recorded pass or for more than one text
    """
    this = _pass.get()
    if this is None or query.shape[0] != 1:
        raise CaptureError(
            f"attention was called {'without a recorder' if this is None else 'for several texts at once'}"
        )
    recorder, projections = this
    output = recorder.attend(
        ModuleCall(
            module=module,
            query=query[0],
            key=key[0],
            value=value[0],
            scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
            mask=None if attention_mask is None else attention_mask[0, :, :, : key.shape[2]],
            position_bias=None if position_bias is None else position_bias[0],
            softcap=softcap,
            sink_logits=s_aux,
            output_projection=projections.matrix(module, query.shape[1] * value.shape[3]),
            dropout=dropout,
        )
    )
    given = output.transpose(0, 1)[None]  # (n_heads, query_len, d_value) -> (1, query_len, n_heads, d_value)
    projections.expect(module, given)
    return given, None


def boolean_mask(*args: Any, **kwargs: Any) -> Tensor:
    """The mask of a layer as a boolean tensor, never None: transformers' own builder with both of its shortcuts off.

    Shapes:  -> (1, 1, query_len, key_len), True = may attend
    """
    kwargs |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    mask = sdpa_mask(*args, **kwargs)
    assert mask is not None  # it is only None through one of the shortcuts
    return mask


AttentionInterface.register(NAME, everyhead_attention)
AttentionMaskInterface.register(NAME, boolean_mask)


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
        """Raises UnsupportedModel if its attention does not pass through the interface; the message says why."""
        names = {id(module): name for name, module in model.named_modules()}
        super().__init__(names, expected_modules(model), compute)
        self.model, self.tokenizer, self._kernel = model.eval(), tokenizer, _kernel_of(model)
        _use_our_attention(model)
        self.description = describe(
            model, self.expected, max_tokens=max_tokens, weight_precision=weight_precision, revision=revision
        )
        if tokenizer is not None and reads_pairs(model) and builds_pairs(tokenizer):
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
        options = {"local_files_only": True, "trust_remote_code": False}
        config = transformers.AutoConfig.from_pretrained(folder, **options)
        dtype = dtype or (torch.float64 if config.dtype == torch.float64 else torch.float32)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        if not tokenizer.is_fast:
            raise UnsupportedModel(NO_OFFSETS)
        model = auto_class(config).from_pretrained(folder, dtype=dtype, use_safetensors=True, **options)
        if config.is_encoder_decoder:
            start_id(model)  # raises if it has none: then no target could be told to it
        model = model.to(device or device_of_choice())
        limit = max_tokens_of(config, folder)
        return cls(model, tokenizer, max_tokens=limit, weight_precision=weight_precision, revision=revision)

    def tokenize(self, text: str, *, text_pair: str | None = None, add_special_tokens: bool = True) -> list[Token]:
        """Tokens of the text, or of the pair, with offsets. Does not run the model. Raises UnsupportedModel."""
        if text_pair is not None and not self.description.takes_pair:
            raise UnsupportedModel("this model reads one text, not a pair")
        return tokens_from_text(self._tokenizer(), text, text_pair=text_pair, add_special_tokens=add_special_tokens)

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
        config = self.model.config
        width = self.model.dtype.itemsize if self.model.dtype == torch.float64 else 4
        numbers = 0
        for site, modules in self.expected.items():
            query_len = n_target if config.is_encoder_decoder and site != "encoder.self" else n_tokens
            key_len = n_tokens if site == "decoder.cross" else query_len
            n_heads, n_kv_heads, d_head = heads_of(config, site)
            kept = query_len * n_heads * (d_head + 8)  # query, row statistics
            kept += key_len * (2 * n_kv_heads * d_head + n_heads)  # key, value, length of each output
            kept += figures_size(n_heads, query_len, same_sequence=site != "decoder.cross")
            numbers += modules * (kept + n_heads * 2 * min(query_len, 64) * min(key_len, 64))  # overviews
            if hasattr(config, "relative_attention_num_buckets"):
                numbers += n_heads * (query_len + key_len)  # one bias for all layers
        return numbers * width

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
        return depends_on_length(self.model.config)

    def _attention_path(self) -> str:
        return _kernel_of(self.model)

    def _place(self) -> tuple[torch.dtype, torch.device]:
        return self.model.dtype, self.model.device

    @contextmanager
    def _attending(self, recorder: Recorder | None) -> Iterator[None]:
        """Our attention through the recorder, or, without one, the model's default kernel for the time being."""
        projections = WatchedProjections(dict(self.model.named_modules()), self._names)
        token = _pass.set(None if recorder is None else (recorder, projections))
        if recorder is None:
            self.model.set_attn_implementation(self._kernel)
        try:
            yield
        finally:
            _pass.reset(token)
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
        self.model.eval()
        body = self.model.get_decoder() if self.model.config.is_encoder_decoder else self.model.base_model
        wanted = logits is not None and (logits == "last" or "logits_to_keep" in _parameters(self.model))
        target = self.model if wanted or target_ids is not None else body
        hidden: list[Tensor] = []
        hook = body.register_forward_hook(lambda _body, _inputs, output: hidden.append(output.last_hidden_state[0]))
        try:
            with self._attending(recorder):
                output = target(**self._model_inputs(target, token_ids, target_ids, segments, logits))
        finally:
            hook.remove()
        found = {"hidden": hidden[0]}
        if wanted and getattr(output, "logits", None) is not None:
            found["logits"] = output.logits[0, -COMPARED_LOGITS:]  # the first of all, if only these were asked for
        return found

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


def _use_our_attention(model: PreTrainedModel) -> None:
    if not model._can_set_attn_implementation():  # noqa: SLF001  transformers' own test, the only one there is
        raise UnsupportedModel(
            f"{type(model).__name__} computes attention in its own code, not through transformers' attention interface"
        )
    model.set_attn_implementation(NAME)
    if _kernel_of(model) != NAME:
        raise UnsupportedModel(f"{type(model).__name__} did not accept another attention function")


def _parameters(module: nn.Module) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(module.forward).parameters


def _kernel_of(model: PreTrainedModel) -> str:
    return str(model.config._attn_implementation)  # noqa: SLF001  transformers gives no public name to it
