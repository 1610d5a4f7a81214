"""Our own Transformer as a model that one can look into: the recorder takes the place of the explicit attention.

The whole pass is compared with the same weights under torch's fused kernel (`models/fused.py`). This module knows
nothing of where weights come from, nor of the service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from models.blockwise import blockwise_attention
from models.checks import SDPA
from models.errors import Cancelled, CaptureError, ConfigError, UnsupportedModel
from models.expected_masks import ExpectedMask
from models.fused import fused_attention
from models.head_sums import figures_size
from models.inspectable import COMPARED_LOGITS, InspectableModel, Logits
from models.multi_head import Attend, MultiHeadAttention
from models.pooling import cell_count, pooling_step
from models.protocol import ModelDescription, ShouldStop
from models.recorder import Compute, ModuleCall, Recorder
from models.target_tokens import special_token, tokens_from_ids
from models.tokens import Token, tokens_from_text
from models.transformer import Transformer, generate

LONGEST_TARGET = 128  # tokens that a model writes when it is given no target


class OwnModel(InspectableModel):
    """One of our own Transformers (the AttentionModel protocol). One call of `run` at a time.

    start_id, stop_id  what a target begins and ends with, for encoder–decoder models
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: PreTrainedTokenizerBase | None,
        *,
        family: str,
        weight_precision: str,
        revision: str,
        start_id: int | None = None,
        stop_id: int | None = None,
        compute: Compute = blockwise_attention,
    ) -> None:
        names = {id(module): name for name, module in model.named_modules()}
        super().__init__(names, expected_modules(model), compute)
        self.model, self.tokenizer = model.eval(), tokenizer
        self._start_id, self._stop_id = start_id, stop_id
        config = model.config
        self.description = ModelDescription(
            family=family,
            kind=config.kind,
            n_layers=config.n_layers,
            n_heads=config.n_heads,
            n_kv_heads=config.n_kv_heads or config.n_heads,
            max_tokens=config.max_tokens,
            implementation="own",
            dtype=str(self._arithmetic()).removeprefix("torch."),
            weight_precision=weight_precision,
            revision=revision,
        )

    @property
    def default_kernel(self) -> str:
        """Torch's fused kernel."""
        return SDPA

    def tokenize(
        self,
        text: str,
        *,
        text_pair: str | None = None,
        add_special_tokens: bool = True,
        should_stop: ShouldStop = lambda: False,
    ) -> list[Token]:
        """Tokens of the text, with offsets into it. Raises UnsupportedModel for a pair: our models read one text."""
        if text_pair is not None:
            raise UnsupportedModel("this model reads one text, not a pair")
        return tokens_from_text(self._tokenizer(), text, add_special_tokens=add_special_tokens, should_stop=should_stop)

    def tokenize_target(self, text: str) -> list[Token]:
        """What the decoder reads for a target text: its start token, then the text."""
        return [self._start(), *_numbered(tokens_from_text(self._tokenizer(), text, add_special_tokens=False))]

    def write_target(
        self, token_ids: Sequence[int], *, segments: Sequence[int] | None = None, should_stop: ShouldStop
    ) -> list[Token]:
        """What the model writes by itself, as what its decoder reads: the start token, then the likeliest tokens.

        Raises:  Cancelled between tokens
        """
        start = self._start()
        room = min(LONGEST_TARGET, self.model.config.max_tokens - 1)
        written = generate(
            self.model,
            self._ids(token_ids),
            start=self._ids([start.id]),
            stop_id=self._stop_id,
            max_new_tokens=room,
            attend=_stopping(fused_attention, should_stop),
        )[0, 1:].tolist()
        body = written[:-1] if written and written[-1] == self._stop_id else written
        return [start, *_numbered(tokens_from_ids(self._tokenizer(), body))]

    def capture_bytes(self, n_tokens: int, n_target: int = 0) -> int:
        """Bytes that the capture of a run over n_tokens, and n_target of a target, takes in memory and on disk."""
        lengths = {
            "encoder.self": (n_tokens, n_tokens),
            "decoder.self": (n_target or n_tokens,) * 2,
            "decoder.cross": (n_target, n_tokens),
        }
        config = self.model.config
        d_head, n_kv_heads = config.d_model // config.n_heads, config.n_kv_heads or config.n_heads
        numbers = 0
        for site, modules in self.expected.items():
            query_len, key_len = lengths[site]
            kept = query_len * config.n_heads * (d_head + 8) + key_len * (2 * n_kv_heads * d_head + config.n_heads)
            kept += figures_size(config.n_heads, query_len, same_sequence=site != "decoder.cross")
            numbers += modules * (kept + config.n_heads * 2 * _cells(query_len) * _cells(key_len))
        return numbers * self._arithmetic().itemsize

    def _expected_mask(self, site: str, layer: int, length: int) -> ExpectedMask:
        return ExpectedMask(causal=site == "decoder.self")

    def _place(self) -> tuple[torch.dtype, torch.device]:
        weight = self.model.output.weight
        return weight.dtype, weight.device

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
        if segments is not None:
            raise ConfigError("this model reads one text, not a pair")
        self.model.eval()
        attend = fused_attention if recorder is None else recorded(recorder)
        target = None if target_ids is None else self._ids(target_ids)
        hidden = self.model.hidden(self._ids(token_ids), target, attend=attend)[0]  # (seq_len, d_model)
        found = {"hidden": hidden}
        if logits is not None:
            some = slice(COMPARED_LOGITS) if logits == "first" else slice(-COMPARED_LOGITS, None)
            found["logits"] = self.model.output_logits(hidden[some])
        return found

    def _ids(self, token_ids: Sequence[int]) -> Tensor:
        return torch.tensor([list(token_ids)], device=self._place()[1])

    def _start(self) -> Token:
        if self._start_id is None:
            raise UnsupportedModel(f"a target is for encoder–decoder models, this is a {self.model.config.kind}")
        return special_token(self._tokenizer(), self._start_id)

    def _tokenizer(self) -> PreTrainedTokenizerBase:
        if self.tokenizer is None:
            raise UnsupportedModel("this model was given without a tokenizer")
        return self.tokenizer


def recorded(recorder: Recorder) -> Attend:
    """A way to attend that goes through a recorder, for one text at a time.

    Shapes:  as for `explicit_attention`, batch = 1; it gives no weights: the recorder keeps what gives them back
    """

    def _attend(
        module: MultiHeadAttention,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None,
        position_bias: Tensor | None,
    ) -> tuple[Tensor, None]:
        if query.shape[0] != 1:
            raise CaptureError("attention was called for several texts at once")
        shape = (-1, query.shape[2], key.shape[2])
        mask = None if attn_mask is None else attn_mask.expand(1, 1, *shape[1:]).view(shape)
        call = ModuleCall(
            module=module,
            query=query[0],
            key=key[0],
            value=value[0],
            scaling=module.scaling,
            mask=mask,
            position_bias=position_bias,
            output_projection=module.output.weight.T,
            dropout=module.dropout if module.training else 0.0,
        )
        return recorder.attend(call)[None], None  # (1, n_heads, query_len, d_head)

    return _attend


def expected_modules(model: Transformer) -> dict[str, int]:
    """How many attention modules each site has."""
    n_layers, kind = model.config.n_layers, model.config.kind
    sites = {"encoder": ("encoder.self",), "decoder": ("decoder.self",)}
    return dict.fromkeys(sites.get(kind, ("encoder.self", "decoder.self", "decoder.cross")), n_layers)


def _cells(length: int) -> int:
    # of an overview, along one axis
    return cell_count((0, length), pooling_step(length))


def _stopping(attend: Attend, should_stop: ShouldStop) -> Callable[..., Any]:
    def stoppable(*inputs: Any) -> tuple[Tensor, Tensor | None]:
        if should_stop():
            raise Cancelled("the run was cancelled")
        return attend(*inputs)

    return stoppable


def _numbered(tokens: list[Token]) -> list[Token]:
    # one place further: the start token comes before
    return [token.at(token.index + 1) for token in tokens]
