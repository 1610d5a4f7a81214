"""Our attention function and our mask function, as transformers asks for them.

transformers calls the function that is registered with `AttentionInterface` for every attention module, and asks the
function that is registered under the same name with `AttentionMaskInterface` for the mask. Without the second it would
hand over no mask at all, without a word. The recorder of the pass under way travels in a context variable, so passes in
several threads do not meet. This module knows no model: `models/huggingface.py` runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from models.errors import CaptureError, UnsupportedModel
from models.projections import WatchedProjections
from models.recorder import ModuleCall, Recorder

NAME = "everyhead"  # of our function in transformers' registries
WITHOUT_EFFECT = ("position_ids",)  # tensors that attention is handed beside its own: positions are in the keys by then

under_way: ContextVar[tuple[Recorder, WatchedProjections] | None] = ContextVar("pass", default=None)


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
    indices: Tensor | None = None,
    **other: Any,  # use_cache, deterministic, …: families pass what they like
) -> tuple[Tensor, None]:
    """Attend for one module of a transformers model, through the recorder of the pass under way.

    Shapes:  query (1, n_heads, query_len, d_head), key (1, n_kv_heads, key_len, d_head), value (1, n_kv_heads, key_len,
             d_value), attention_mask (1, 1 or n_heads, query_len, key_len) boolean or additive, position_bias the same,
             s_aux (n_heads), indices (1, query_len, selected), of the keys that each query may attend to
             -> (1, query_len, n_heads, d_value), as the interface asks, and no weights
    Raises:  CaptureError outside of a recorded pass or for more than one text; UnsupportedModel for a tensor by a name
             that is not known here: leaving it out could make another picture than the model's
    """
    _refuse_unknown(other)
    recorder, projections = _pass_of(query.shape[0])
    output = recorder.attend(
        ModuleCall(
            module=module,
            query=query[0],
            key=key[0],
            value=value[0],
            scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
            mask=_mask_of(attention_mask, indices, query.shape[2], key.shape[2]),
            selects=indices is not None,
            position_bias=None if position_bias is None else position_bias[0],
            softcap=softcap,
            sink_logits=s_aux,
            output_projection=projections.matrix(module, query.shape[1] * value.shape[3]),
            dropout=dropout,
        )
    )
    # (n_heads, query_len, d_value) -> (1, query_len, n_heads, d_value), in one piece: some models view it as a matrix
    given = output.transpose(0, 1)[None].contiguous()
    projections.expect(module, given)
    return given, None


def _refuse_unknown(other: Mapping[str, object]) -> None:
    """Raise UnsupportedModel for a tensor whose meaning is not known."""
    for name, given in other.items():
        if isinstance(given, Tensor) and name not in WITHOUT_EFFECT:
            raise UnsupportedModel(
                f"its attention is handed a tensor {name}, whose meaning is not known here, so a picture may be wrong"
            )


def _pass_of(texts: int) -> tuple[Recorder, WatchedProjections]:
    """The pass under way. Raises CaptureError if there is none, or it is over several texts."""
    this = under_way.get()
    if this is None or texts != 1:
        raise CaptureError(
            f"attention was called {'without a recorder' if this is None else 'for several texts at once'}"
        )
    return this


def _mask_of(mask: Tensor | None, indices: Tensor | None, query_len: int, key_len: int) -> Tensor | None:
    """The mask of one text, one row for each query, and without the keys that the model did not select."""
    given = None if mask is None else mask[0, :, :, :key_len].expand(-1, query_len, -1)  # one row may stand for all
    if indices is None:
        return given
    selected = torch.zeros(1, query_len, key_len, dtype=torch.bool, device=indices.device)
    selected.scatter_(-1, indices.long(), True)
    if given is None or given.dtype == torch.bool:
        return selected if given is None else given & selected
    return given.masked_fill(~selected, torch.finfo(given.dtype).min)


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
