"""GPT-2's names and shapes against ours: what does not fit is named, and nothing is copied then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

from models.errors import ConfigError, UnsupportedModel
from models.gpt2_weights import config_from_gpt2, copy_gpt2_weights, own_model_from
from models.transformer import Transformer
from tests.unit.tiny_checkpoints import save_gpt2

TINY: dict[str, Any] = {
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 64,
    "vocab_size": 96,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


def state(shape: dict[str, Any] = TINY) -> dict[str, Tensor]:
    return dict(GPT2LMHeadModel(GPT2Config(**shape)).state_dict())


def taking(tensors: dict[str, Tensor]) -> Transformer:
    ours = Transformer(config_from_gpt2(GPT2Config(**TINY)))
    copy_gpt2_weights(ours, tensors)
    return ours


def test_both_ways_of_naming_are_read() -> None:
    with_output = state()
    without = {name.removeprefix("transformer."): tensor for name, tensor in with_output.items()}
    del without["lm_head.weight"]
    assert set(without) == set(GPT2Model(GPT2Config(**TINY)).state_dict())
    ours, also_ours = taking(with_output), taking(without)
    assert all(map(torch.equal, ours.parameters(), also_ours.parameters()))


def test_masks_of_old_checkpoints_are_left_out() -> None:
    masks = {
        "transformer.h.0.attn.bias": torch.ones(1, 1, 8, 8),
        "transformer.h.2.attn.masked_bias": torch.tensor(-1e4),
    }
    taking(state() | masks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("transformer.h.1.ln_2.bias"), r"missing: h\.1\.ln_2\.bias$"),
        (lambda s: s.update({"score.weight": torch.ones(1)}), r"unexpected: score\.weight$"),
        (lambda s: s.update({"transformer.h.3.ln_1.bias": torch.ones(32)}), r"unexpected: h\.3\.ln_1\.bias$"),
        (lambda s: s.update({"wte.weight": s["transformer.wte.weight"]}), r"unexpected: transformer\.wte\.weight$"),
        (
            lambda s: s.update({"transformer.h.0.mlp.c_fc.weight": s["transformer.h.0.mlp.c_fc.weight"].T}),
            r"h\.0\.mlp\.c_fc\.weight should be \(32, 128\), is \(128, 32\)$",
        ),
        (
            lambda s: s.update({"transformer.wpe.weight": torch.ones(63, 32)}),
            r"wpe\.weight should be \(64, 32\), is \(63, 32\)$",
        ),
        (lambda s: s.update({"lm_head.weight": s["lm_head.weight"] + 1}), "should be equal to wte.weight"),
        (lambda s: s.update({"transformer.ln_f.bias": torch.ones(32).int()}), r"these are not: ln_f\.bias$"),
        (lambda s: s["transformer.ln_f.bias"].fill_(torch.nan), r"^weights must be finite; .* infinity: ln_f\.bias$"),
        (lambda s: s["transformer.h.1.mlp.c_fc.weight"][0].fill_(-torch.inf), r"infinity: h\.1\.mlp\.c_fc\.weight$"),
    ],
)
def test_what_does_not_fit_is_named(change: Callable[[dict[str, Tensor]], Any], message: str) -> None:
    tensors = state()
    change(tensors)
    ours = Transformer(config_from_gpt2(GPT2Config(**TINY)))
    before = [parameter.clone() for parameter in ours.parameters()]
    with pytest.raises(ConfigError, match=message):
        copy_gpt2_weights(ours, tensors)
    assert all(map(torch.equal, before, ours.parameters()))  # not a byte was copied


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale_attn_weights": False}, "divided by √d_head, and this GPT-2 has scale_attn_weights=False"),
        ({"scale_attn_by_inverse_layer_idx": True}, "same way in every layer"),
        ({"reorder_and_upcast_attn": True}, "in the type of the weights"),
        ({"add_cross_attention": True}, "nothing to cross to"),
        ({"tie_word_embeddings": False}, "the table of embeddings"),
        ({"activation_function": "silu"}, "gelu_new, gelu_pytorch_tanh, gelu, and this GPT-2 has silu"),
        ({"quantization_config": {"bits": 8}}, "quantized"),
    ],
)
def test_a_gpt2_that_ours_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedModel, match=message):
        config_from_gpt2(GPT2Config(**TINY, **options))


def test_a_folder_with_another_output_layer_is_refused(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "tiny")
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {"lm_head.weight": torch.ones(8, 8)}, file, {"format": "pt"})
    with pytest.raises(ConfigError, match=r"lm_head\.weight should be equal to wte\.weight"):
        own_model_from(folder, weight_precision="float32", revision="1")
