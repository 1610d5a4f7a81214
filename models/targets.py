"""What the decoder of an encoder–decoder reads: a given text, or one that the model writes by itself.

For transformers' models. Both begin with the model's start token and leave out the end token: it would be what the
decoder writes last, so it reads nothing from there. This module knows nothing of attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase, StoppingCriteria

from models.errors import Cancelled, UnsupportedModel
from models.families import NO_START, kind_of, layers_of
from models.protocol import ShouldStop
from models.target_tokens import special_token, tokens_from_ids
from models.tokens import Token, tokens_from_text

LONGEST_TARGET = 128  # tokens that a model writes when it is given no target


def target_from_text(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str) -> list[Token]:
    """The start token, then the text as this tokenizer cuts targets (BART puts a <s> before it, T5 nothing).

    Raises:  UnsupportedModel for models without a start token or without an encoder; TextNotEncodable
    """
    start = special_token(tokenizer, start_id(model))
    tokens = tokens_from_text(tokenizer, text, as_target=True)
    while tokens and tokens[-1].special:
        tokens.pop()
    return [start, *(token.at(token.index + 1) for token in tokens)]


def written_target(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    token_ids: Sequence[int],
    room: int,
    should_stop: ShouldStop,
) -> list[Token]:
    """The start token, then the likeliest tokens, at most `room`, as transformers' own generation gives them.

    Raises:  UnsupportedModel as `target_from_text`; Cancelled between tokens
    """
    first = start_id(model)
    source = torch.tensor([list(token_ids)], device=model.device)
    generating: Any = model  # its generate is not typed
    written = generating.generate(
        input_ids=source,
        attention_mask=torch.ones_like(source),
        decoder_start_token_id=first,
        do_sample=False,
        num_beams=1,
        max_new_tokens=room,
        use_cache=_cache_fits(model),
        stopping_criteria=[_Stop(should_stop)],
    )[0].tolist()
    body = written[1:]
    while body and body[-1] in _end_ids(model):
        body.pop()
    tokens = tokens_from_ids(tokenizer, body)
    return [special_token(tokenizer, first), *(token.at(token.index + 1) for token in tokens)]


def _cache_fits(model: PreTrainedModel) -> bool:
    """Whether transformers makes a cache with room for every layer of the decoder: it counts the encoder's layers."""
    sites = layers_of(model.config)
    return sites["decoder.self"] <= sites["encoder.self"]


class _Stop(StoppingCriteria):
    """Asked before each further token; raises rather than give half a text."""

    def __init__(self, should_stop: ShouldStop) -> None:
        self._should_stop = should_stop

    def __call__(self, input_ids: Tensor, scores: Tensor, **_other: Any) -> Tensor:
        if self._should_stop():
            raise Cancelled("the run was cancelled")
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


def start_id(model: PreTrainedModel) -> int:
    """The token with which the decoder begins. Raises UnsupportedModel if there is none."""
    if kind_of(model.config) != "encoder-decoder":
        raise UnsupportedModel("a target is for encoder–decoder models")
    for settings in (getattr(model, "generation_config", None), model.config):
        start = getattr(settings, "decoder_start_token_id", None)
        if start is not None:
            return int(start)
    raise UnsupportedModel(NO_START)


def _end_ids(model: PreTrainedModel) -> set[int]:
    settings: Any = getattr(model, "generation_config", None) or model.config
    found = settings.eos_token_id
    return set(found) if isinstance(found, list) else {found}
