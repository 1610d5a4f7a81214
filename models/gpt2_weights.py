"""GPT-2's weights in our own Transformer: which of its tensors is which of ours, and a checkpoint folder loaded so.

    wte, wpe                 decoder_input.tokens, decoder_input.positions.table
    h.N.ln_1                 decoder.layers.N.self_attention_norm
    h.N.attn.c_attn          decoder.layers.N.self_attention.query, .key, .value: side by side in one matrix
    h.N.attn.c_proj          decoder.layers.N.self_attention.output
    h.N.ln_2                 decoder.layers.N.feed_forward_norm
    h.N.mlp.c_fc, .c_proj    decoder.layers.N.feed_forward.inner, .outer
    ln_f                     decoder.final_norm
    lm_head                  output: the same numbers as wte

GPT-2 writes x · W with W (in, out); `nn.Linear` keeps (out, in), so its matrices are transposed on the way. This module
knows nothing of how a text is run (`models/own.py`), nor of how the two are compared (`models/stages.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoConfig, PretrainedConfig

from models.checkpoints import adapters_in, weight_files
from models.errors import ConfigError, UnsupportedModel
from models.fit import LOADING, fit_of, weights_check
from models.loading import stored_in
from models.own import OwnModel
from models.parameters import check_fit, check_numbers, copy_parameters
from models.protocol import device_of_choice
from models.tokenizer_files import check_rows, load_tokenizer, vocabulary_rows
from models.transformer import Transformer
from models.transformer_config import Activation, TransformerConfig

FAMILY = "gpt2"
PREFIX = "transformer."  # of every name but lm_head in checkpoints that were saved with their output layer
BUFFERS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # masks, which older checkpoints keep beside the weights
TABLE, OUTPUT = "wte.weight", "lm_head.weight"
ACTIVATIONS: dict[str, Activation] = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
# option of GPT-2's configuration -> the value that our Transformer has, and why it has no other
ONLY: dict[str, tuple[bool, str]] = {
    "scale_attn_weights": (True, "scores are always divided by √d_head"),
    "scale_attn_by_inverse_layer_idx": (False, "scores are scaled the same way in every layer"),
    "reorder_and_upcast_attn": (False, "scores are computed in the type of the weights"),
    "add_cross_attention": (False, "a decoder by itself has nothing to cross to"),
    "tie_word_embeddings": (True, "its output layer is the table of embeddings"),
}


class Row(NamedTuple):
    """One tensor of GPT-2: its shape there, and what it is here; several targets share it in equal parts."""

    source: str
    shape: tuple[int, ...]
    targets: tuple[str, ...]

    def parts(self, tensor: Tensor) -> dict[str, Tensor]:
        """Cut the tensor into ours.

        Shapes:  (in, out) -> each (out / targets, in); (out) -> each (out / targets); embeddings (rows, d_model) stay
        """
        is_matrix = tensor.dim() == 2 and self.source.startswith("h.")
        pieces = tensor.chunk(len(self.targets), -1)
        return {name: piece.T if is_matrix else piece for name, piece in zip(self.targets, pieces, strict=True)}


def gpt2_table(config: TransformerConfig) -> list[Row]:
    """All tensors of a GPT-2 of this shape."""
    width, inner = config.d_model, config.d_ff
    rows = [
        Row(TABLE, (config.vocab_size, width), ("decoder_input.tokens.weight",)),
        Row("wpe.weight", (config.max_tokens, width), ("decoder_input.positions.table.weight",)),
        *_norm("ln_f", "decoder.final_norm", width),
    ]
    for n in range(config.n_layers):
        theirs, ours = f"h.{n}", f"decoder.layers.{n}"
        attention, feed_forward = f"{ours}.self_attention", f"{ours}.feed_forward"
        rows += [
            *_norm(f"{theirs}.ln_1", f"{attention}_norm", width),
            *_linear(f"{theirs}.attn.c_attn", width, *(f"{attention}.{name}" for name in ("query", "key", "value"))),
            *_linear(f"{theirs}.attn.c_proj", width, f"{attention}.output"),
            *_norm(f"{theirs}.ln_2", f"{feed_forward}_norm", width),
            *_linear(f"{theirs}.mlp.c_fc", width, f"{feed_forward}.inner", out=inner),
            *_linear(f"{theirs}.mlp.c_proj", inner, f"{feed_forward}.outer", out=width),
        ]
    return rows


def config_from_gpt2(config: PretrainedConfig) -> TransformerConfig:
    """The shape of our Transformer that computes what this GPT-2 computes; dropout is left out, since nothing trains.

    Raises:  UnsupportedModel with the reason if ours cannot
    """
    if config.model_type != FAMILY:
        raise UnsupportedModel(f"only GPT-2's weights fit our Transformer, this is a {config.model_type}")
    for option, (ours, why) in ONLY.items():
        if bool(getattr(config, option)) != ours:
            raise UnsupportedModel(f"in our Transformer {why}, and this GPT-2 has {option}={not ours}")
    if getattr(config, "quantization_config", None):
        raise UnsupportedModel("our Transformer reads plain weights, and this GPT-2's are quantized")
    activation = ACTIVATIONS.get(config.activation_function)
    if activation is None:
        known = ", ".join(ACTIVATIONS)
        raise UnsupportedModel(f"our Transformer has {known}, and this GPT-2 has {config.activation_function}")
    return TransformerConfig(
        kind="decoder",
        vocab_size=config.vocab_size,
        d_model=config.n_embd,
        n_heads=config.n_head,
        n_layers=config.n_layer,
        d_ff=4 * config.n_embd if config.n_inner is None else config.n_inner,
        max_tokens=config.n_positions,
        norm="pre",
        activation=activation,
        positions="learned",
        norm_eps=config.layer_norm_epsilon,
    )


def own_parameters(config: TransformerConfig, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Turn GPT-2's tensors, named as GPT2Model or GPT2LMHeadModel saves them, into ours.

    Shapes:  those of `gpt2_table` -> those of our parameters, as views
    Raises:  ConfigError that lists missing and unexpected names, wrong shapes and tensors that are not of finite
             floating-point numbers; and if there is an output layer that is not the table of embeddings
    """
    named = _without_prefix(given)
    output = named.pop(OUTPUT, None)
    rows = gpt2_table(config)
    check_fit({row.source: row.shape for row in rows}, named)
    check_numbers(named)  # here, where they still have the names that the checkpoint gives them
    if output is not None and not torch.equal(output, named[TABLE]):
        raise ConfigError(f"{OUTPUT} should be equal to {TABLE}: our output layer is the table of embeddings")
    return {name: part for row in rows for name, part in row.parts(named[row.source]).items()}


def copy_gpt2_weights(model: Transformer, given: Mapping[str, Tensor]) -> None:
    """Copy GPT-2's tensors into our Transformer, converted to its type.

    Shapes:  those of `gpt2_table`
    Raises:  ConfigError, see `own_parameters`; the model is then as it was
    """
    copy_parameters(model, own_parameters(model.config, given))


def own_model_from(
    folder: Path,
    *,
    weight_precision: str,
    revision: str,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> OwnModel:
    """Load a GPT-2 checkpoint folder into our Transformer: safetensors only, no code from it, no network.

    dtype: of the arithmetic; by default float64 for float64 checkpoints, float32 for all others.

    Raises:  UnsupportedModel for a GPT-2 that ours cannot be, UnusableCheckpoint or ConfigError for weights that are
             not there or do not fit
    """
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(folder, **options)
    dtype = dtype or (torch.float64 if config.dtype == torch.float64 else torch.float32)
    model = Transformer(config_from_gpt2(config)).to(dtype)
    loaded = load_tokenizer(folder)
    tensors = {name: tensor for file in weight_files(folder) for name, tensor in load_file(file).items()}
    with LOADING:
        fit = fit_of(config, stored_in(folder))
    copy_gpt2_weights(model, {name: tensor for name, tensor in fit.named(tensors).items() if name not in fit.unused})
    check_rows(vocabulary_rows(folder), model.config.vocab_size)
    own = OwnModel(
        model.to(device or device_of_choice()),
        loaded.tokenizer,
        family=FAMILY,
        weight_precision=weight_precision,
        revision=revision,
    )
    own.weights_check = weights_check(fit, (*loaded.notes, *adapters_in(folder)))
    return own


def _norm(source: str, target: str, width: int) -> list[Row]:
    return [Row(f"{source}.{part}", (width,), (f"{target}.{part}",)) for part in ("weight", "bias")]


def _linear(source: str, width: int, *targets: str, out: int | None = None) -> list[Row]:
    # one matrix (width, out) and one bias (out), for all targets
    out = width * len(targets) if out is None else out
    shapes = {"weight": (width, out), "bias": (out,)}
    return [
        Row(f"{source}.{part}", shape, tuple(f"{name}.{part}" for name in targets)) for part, shape in shapes.items()
    ]


def _without_prefix(given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    # names as in GPT2Model, without masks; a name that is there twice keeps its prefix and so is unexpected
    named: dict[str, Tensor] = {}
    for full in sorted(given, key=lambda name: name.startswith(PREFIX)):
        name = full.removeprefix(PREFIX)
        if not BUFFERS.fullmatch(name):
            named[full if name in named else name] = given[full]
    return named
