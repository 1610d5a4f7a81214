"""Our own Transformer: encoder, decoder, encoder–decoder, out of the parts that were written from scratch.

    tokens ──embedding, positions──▶ encoder layers ──▶ memory                       encode
    tokens ──embedding, positions──▶ decoder layers (look at memory) ──▶ hidden      decode
    hidden ──output layer──▶ logits                                                  output_logits

How attention is computed is handed in (`attend`, see `models/multi_head.py`). This module knows nothing of texts,
tokenizers, training or of what is kept of a pass.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.attention import causal_mask, combine_masks, padding_mask
from models.errors import ConfigError, ShapeError
from models.layers import Stack, initialise
from models.multi_head import Attend, KeyValueCache, check_sequence, explicit_attention
from models.positions import LearnedPositions, sinusoidal_positions
from models.transformer_config import TransformerConfig


class InputEmbedding(nn.Module):
    """Tokens to vectors, with positions added once where their kind is added at the input.

    Source:  Vaswani et al. 2017, §3.4 and §3.5
    """

    def __init__(self, config: TransformerConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.config, self.tokens = config, tokens  # both stacks of an encoder–decoder share the tokens' table
        self.positions = LearnedPositions(config.max_tokens, config.d_model) if config.positions == "learned" else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        """Look up the tokens; the first of them is at position `first`.

        Shapes:  ids (batch, seq_len), integers -> (batch, seq_len, d_model)
        Raises:  ShapeError if a position is past the learned ones, or ids is not 2-D or empty; ConfigError if they
                 are no integers or not in the vocabulary
        """
        _check_ids(ids, self.config.vocab_size)
        x = self.tokens(ids)  # (batch, seq_len, d_model)
        if self.config.scale_embeddings:
            x = x * self.config.d_model**0.5
        if self.positions is not None:
            x = x + self.positions(first, ids.shape[1])
        elif self.config.positions == "sinusoidal":
            x = x + sinusoidal_positions(first, ids.shape[1], self.config.d_model).to(x)
        embedded: Tensor = self.dropout(x)
        return embedded


class Transformer(nn.Module):
    """An encoder, a decoder, or both, as `config.kind` says.

    Source:  Vaswani et al. 2017; Radford et al. 2019 (decoder alone); Devlin et al. 2019 (encoder alone)
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        tokens = nn.Embedding(config.vocab_size, config.d_model)
        has_encoder, has_decoder = config.kind != "decoder", config.kind != "encoder"
        self.encoder_input = InputEmbedding(config, tokens) if has_encoder else None
        self.encoder = Stack(config) if has_encoder else None
        self.decoder_input = InputEmbedding(config, tokens) if has_decoder else None
        self.decoder = Stack(config, cross=has_encoder) if has_decoder else None
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialise(self, config.n_layers, config.initial_std)
        if config.tied:
            self.output.weight = tokens.weight

    def forward(
        self,
        ids: Tensor,
        target_ids: Tensor | None = None,
        *,
        is_token: Tensor | None = None,
        attend: Attend = explicit_attention,
    ) -> Tensor:
        """Score every vocabulary entry at every position, of the target where there are two inputs.

        Shapes:  ids (batch, seq_len), target_ids (batch, target_len), is_token (batch, seq_len): False for padding of
                 ids -> (batch, seq_len or target_len, vocab_size)
        Raises:  ConfigError if a target is given or missing against the model's kind; ShapeError for shapes that do
                 not fit and for texts past the learned positions
        """
        return self.output_logits(self.hidden(ids, target_ids, is_token=is_token, attend=attend))

    def hidden(
        self,
        ids: Tensor,
        target_ids: Tensor | None = None,
        *,
        is_token: Tensor | None = None,
        attend: Attend = explicit_attention,
    ) -> Tensor:
        """Run all layers: what `output_logits` reads.

        Shapes:  as for `forward` -> (batch, seq_len or target_len, d_model), after the final norm
        Raises:  as `forward`
        """
        if (target_ids is not None) != (self.config.kind == "encoder-decoder"):
            given = "none" if target_ids is None else "one"
            raise ConfigError(
                f"a target is for encoder–decoder models, this is {a_kind(self.config.kind)}; given: {given}"
            )
        if self.config.kind == "decoder":
            return self.decode(ids, is_token=is_token, attend=attend)
        memory = self.encode(ids, is_token=is_token, attend=attend)
        if target_ids is None:
            return memory
        return self.decode(target_ids, memory, memory_is_token=is_token, attend=attend)

    def encode(self, ids: Tensor, *, is_token: Tensor | None = None, attend: Attend = explicit_attention) -> Tensor:
        """Run the encoder: every token sees every token.

        Shapes:  ids (batch, seq_len), is_token (batch, seq_len): False for padding -> (batch, seq_len, d_model)
        Raises:  ConfigError if there is no encoder; ShapeError as for `forward`
        """
        if self.encoder is None or self.encoder_input is None:
            raise ConfigError(f"{a_kind(self.config.kind)} has no encoder")
        x = self.encoder_input(ids)
        mask = _padding("is_token", is_token, tuple(ids.shape))  # (batch, 1, 1, seq_len)
        encoded: Tensor = self.encoder(x, mask, attend=attend)
        return encoded

    def decode(
        self,
        ids: Tensor,
        memory: Tensor | None = None,
        *,
        is_token: Tensor | None = None,
        memory_is_token: Tensor | None = None,
        attend: Attend = explicit_attention,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Run the decoder: each token sees itself and those before it, and the memory where there is one.

        With a cache, ids are only the tokens that it does not hold yet.

        Shapes:  ids (batch, query_len), memory (batch, memory_len, d_model), is_token (batch, key_len) and
                 memory_is_token (batch, memory_len): False for padding -> (batch, query_len, d_model)
        Raises:  ConfigError if there is no decoder, or memory is given or missing against the model's kind, or is not
                 the one that the cache holds; ShapeError as for `forward`
        """
        if self.decoder is None or self.decoder_input is None:
            raise ConfigError(f"{a_kind(self.config.kind)} has no decoder")
        if (memory is not None) != (self.config.kind == "encoder-decoder"):
            given = "none" if memory is None else "one"
            raise ConfigError(
                f"a memory is for encoder–decoder models, this is {a_kind(self.config.kind)}; given: {given}"
            )
        held = 0 if cache is None else cache.positions
        x = self.decoder_input(ids, held)
        batch, length = ids.shape
        causal = causal_mask(length, held + length, device=ids.device)
        mask = combine_masks(causal, _padding("is_token", is_token, (batch, held + length)))
        memory_len = 0
        if memory is not None:
            check_sequence("memory", memory, self.config.d_model, batch)
            memory_len = memory.shape[1]
        memory_mask = _padding("memory_is_token", memory_is_token, (batch, memory_len))
        if cache is None:
            alone: Tensor = self.decoder(x, mask, memory, memory_mask, attend=attend)
            return alone
        cache.begin_step()
        decoded: Tensor = self.decoder(x, mask, memory, memory_mask, attend=attend, cache=cache)
        cache.end_step(length)
        return decoded

    def output_logits(self, hidden: Tensor) -> Tensor:
        """Score every vocabulary entry; the softmax of these scores is the model's prediction.

        Shapes:  (…, d_model) -> (…, vocab_size)
        """
        logits: Tensor = self.output(hidden)
        return logits


def a_kind(kind: str) -> str:
    """A model's kind with its article, for messages."""
    return f"{'an' if kind.startswith('e') else 'a'} {kind}"


def _check_ids(ids: Tensor, vocab_size: int) -> None:
    if ids.dim() != 2 or not ids.numel():
        raise ShapeError(f"token ids must be (batch, seq_len), at least one, got {tuple(ids.shape)}")
    if ids.dtype not in (torch.int32, torch.int64):
        raise ConfigError(f"token ids must be int32 or int64, got {ids.dtype}")
    least, most = (int(end) for end in ids.aminmax())  # a GPU would end the whole process over one that is out of range
    if least < 0 or most >= vocab_size:
        raise ConfigError(f"token ids must be from 0 to {vocab_size - 1}, got {least if least < 0 else most}")


def _padding(name: str, is_token: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    # (batch, 1, 1, key_len). One row or column for all would be spread out, and numbers that are added to scores have
    # 0 for tokens: neither would be seen later
    if is_token is None:
        return None
    if is_token.dtype != torch.bool or tuple(is_token.shape) != shape:
        given = f"{is_token.dtype} of shape {tuple(is_token.shape)}"
        raise ShapeError(f"{name} must be boolean, True for tokens, of shape {shape}, got {given}")
    return padding_mask(is_token)


@torch.no_grad()
def generate(
    model: Transformer,
    ids: Tensor,
    *,
    start: Tensor | None = None,
    stop_id: int | None = None,
    max_new_tokens: int,
    use_cache: bool = True,
    attend: Attend = explicit_attention,
) -> Tensor:
    """Continue a text, or write a target for it, always taking the likeliest token.

    Shapes:  ids (1, seq_len); start (1, n), what the target begins with, for encoder–decoder models -> (1, length):
             ids or start, then the new tokens, stop_id included where it was reached
    Args:    use_cache: keep keys and values, so that each step computes one position; without, each step computes all
    Raises:  ConfigError for an encoder, or a start given or missing against the model's kind; ShapeError if so many
             tokens are more than the model's longest text, before the first is written
    """
    both = model.config.kind == "encoder-decoder"
    if (start is not None) != both:
        raise ConfigError(f"a target's start is for encoder–decoder models, this is {a_kind(model.config.kind)}")
    written, longest = start if start is not None else ids, model.config.max_tokens
    if written.shape[-1] + max_new_tokens - 1 > longest:  # the last token is written, but never read
        given = f"{written.shape[-1]} and {max_new_tokens} new ones"
        raise ShapeError(f"texts of this model have at most {longest} tokens and one that is not read, got {given}")
    memory = model.encode(ids, attend=attend) if both else None
    cache = KeyValueCache() if use_cache else None
    for step in range(max_new_tokens):
        new = written[:, -1:] if use_cache and step else written
        hidden = model.decode(new, memory, attend=attend, cache=cache)
        best = model.output_logits(hidden[:, -1:]).argmax(-1)  # (1, 1)
        written = torch.cat([written, best], 1)
        if stop_id is not None and int(best) == stop_id:
            break
    return written
