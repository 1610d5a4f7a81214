"""A model whose weights are not all from its file is never drawn: names and shapes are compared, and said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PreTrainedModel,
)

from models.checkpoints import UnusableCheckpoint, read_checkpoint
from models.errors import EngineError
from models.fit import NAMED
from models.gpt2_weights import own_model_from
from models.huggingface import HuggingFaceModel
from models.inspectable import InspectableModel
from models.loading import load_checkpoint
from tests.unit.test_checkpoints import edit_json
from tests.unit.tiny_checkpoints import SMALL_BERT, save_gpt2, save_t5, save_tokenizer

Tensors = dict[str, Tensor]
SMALL: dict[str, Any] = {
    "vocab_size": 8,
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
Q_PROJ = "model.layers.1.self_attn.q_proj.weight"


def save(folder: Path, model: PreTrainedModel) -> Path:
    """A model with a tokenizer of four words."""
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def save_llama(folder: Path, **changes: Any) -> Path:
    """A decoder of two layers whose output layer is a tensor of its own."""
    return save(folder, LlamaForCausalLM(LlamaConfig(**{**SMALL, **changes})))


def change(folder: Path, edit: Callable[[Tensors], Tensors]) -> None:
    """Write the weights again as `edit` gives them."""
    file = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(file).items()}
    save_file(edit(tensors), file, metadata={"format": "pt"})


def without(*ends: str) -> Callable[[Tensors], Tensors]:
    """All tensors but those whose names end so."""
    return lambda tensors: {name: tensor for name, tensor in tensors.items() if not name.endswith(ends)}


def with_one(name: str, *shape: int, dtype: torch.dtype = torch.float32) -> Callable[[Tensors], Tensors]:
    """One tensor more, or of another shape."""
    return lambda tensors: {**tensors, name: torch.ones(shape, dtype=dtype)}


def under(prefix: str) -> Callable[[Tensors], Tensors]:
    """Every name behind a prefix."""
    return lambda tensors: {prefix + name: tensor for name, tensor in tensors.items()}


def load(folder: Path) -> HuggingFaceModel:
    """The model by transformers."""
    return HuggingFaceModel.load(folder, weight_precision="float32", revision="r")


def refusals(folder: Path) -> list[str]:
    """Why the folder is refused: in the list, before anything is loaded, and by the load itself."""
    with pytest.raises(UnusableCheckpoint) as listed:
        read_checkpoint(folder, within=folder)
    with pytest.raises(EngineError) as loaded:
        load(folder)
    return [str(listed.value), str(loaded.value)]


def weights_line(model: InspectableModel) -> tuple[str, object]:
    """Status and value of the card's line."""
    check = next(check for check in model.run([1, 2, 3]).card.checks if check.id == "weights")
    return check.status, check.value


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (without(Q_PROJ), ["1 missing", Q_PROJ]),
        (without("layers.1.self_attn.o_proj.weight", "norm.weight"), ["6 missing", "model.norm.weight"]),
        (without("embed_tokens.weight"), ["model.embed_tokens.weight"]),
        (without("lm_head.weight"), ["lm_head.weight"]),
        (with_one(Q_PROJ, 4, 8), [Q_PROJ, "(4, 8)", "(8, 8)"]),
        (with_one(Q_PROJ.replace("weight", "bias"), 8), ["1 of attention", Q_PROJ.replace("weight", "bias")]),
        (with_one("model.layers.2.mlp.up_proj.weight", 8, 8), ["1 of layers", "model.layers.2.mlp.up_proj.weight"]),
        (with_one("_orig_mod." + Q_PROJ, 8, 8), ["twice", Q_PROJ.removeprefix("model.")]),
        (with_one(Q_PROJ, 8, 8, dtype=torch.int8), ["whole numbers", Q_PROJ]),
    ],
)
def test_weights_that_are_not_the_models(tmp_path: Path, edit: Callable[[Tensors], Tensors], named: list[str]) -> None:
    change(save_llama(tmp_path), edit)
    for refusal in refusals(tmp_path):
        assert [words for words in named if words not in refusal] == []


def test_a_layer_more_or_less_than_the_file_has(tmp_path: Path) -> None:
    """A handful of names is said, and how many there are."""
    for layers, count in ((3, "missing: model.layers.2."), (1, "of layers that its config.json does not have")):
        save_llama(tmp_path)
        edit_json(tmp_path / "config.json", num_hidden_layers=layers)
        for refusal in refusals(tmp_path):
            assert count in refusal
            assert f"and {9 - NAMED} more" in refusal


def test_a_missing_expert(tmp_path: Path) -> None:
    """Experts are put together on the way: what cannot be put together is refused all the same."""
    model = MixtralForCausalLM(MixtralConfig(**SMALL, num_local_experts=4))
    save(tmp_path, model)
    experts = [name for name in load_file(tmp_path / "model.safetensors") if ".experts." in name]
    change(tmp_path, without(experts[0]))
    for refusal in refusals(tmp_path):
        assert "not those of the model" in refusal
        assert "above report" not in refusal


def test_tied_weights_and_buffers_are_not_missing(tmp_path: Path) -> None:
    """One of two names of one tensor is enough, and masks that old files keep count for nothing."""
    tied = save_llama(tmp_path / "llama", tie_word_embeddings=True)
    assert "lm_head.weight" not in load_file(tied / "model.safetensors")
    old = save_gpt2(tmp_path / "gpt2")
    change(old, with_one("transformer.h.0.attn.bias", 1, 1, 16, 16, dtype=torch.uint8))
    for folder in (tied, old):
        assert read_checkpoint(folder, within=folder).notes == ()
        assert weights_line(load(folder)) == ("pass", 0)
    both = load_checkpoint(save_t5(tmp_path / "t5"))
    assert both.check.status == "pass"


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "net.model."])
def test_a_prefix_before_every_name(tmp_path: Path, prefix: str) -> None:
    """What torch.compile and others put before all names is taken away, and said; the weights are those of the file."""
    folder = save_llama(tmp_path)
    before = load(folder)
    change(folder, under(prefix))
    assert "was removed from the names" in read_checkpoint(folder, within=folder).notes[0]
    after = load(folder)
    assert weights_line(after)[0] == "info"
    assert_same_weights(before, after)


def test_the_base_models_prefix_twice(tmp_path: Path) -> None:
    """transformers takes that one away itself."""
    folder = save_llama(tmp_path)
    before = load(folder)
    change(folder, under("model."))
    assert_same_weights(before, load(folder))


def test_a_wrapper_inside_of_the_names(tmp_path: Path) -> None:
    """A layer that was compiled by itself has the mark in the middle."""
    folder = save_llama(tmp_path)
    before = load(folder)
    change(
        folder, lambda tensors: {name.replace(".self_attn.", ".self_attn._orig_mod."): t for name, t in tensors.items()}
    )
    assert_same_weights(before, load(folder))


def assert_same_weights(one: HuggingFaceModel, other: HuggingFaceModel) -> None:
    """Every tensor of two models, buffers included, bit by bit."""
    for kind in ("named_parameters", "named_buffers"):
        theirs = dict(getattr(other.model, kind)())
        ours = dict(getattr(one.model, kind)())
        assert ours.keys() == theirs.keys()
        assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


@pytest.mark.parametrize("pooler", [True, False])
def test_a_second_load_gives_the_same_weights(tmp_path: Path, pooler: bool) -> None:
    """Also without a pooler in the file, which transformers would make up: then the model has none."""
    folder = save(tmp_path, BertModel(BertConfig(**SMALL_BERT), add_pooling_layer=pooler))
    first = load(folder)
    assert any("pooler" in name for name in first.model.state_dict()) is pooler
    torch.manual_seed(1)
    assert_same_weights(first, load(folder))
    assert weights_line(first) == ("pass", 0)


def test_tensors_outside_of_the_layers_are_counted_and_named(tmp_path: Path) -> None:
    """A head that the picture does not need: the checkpoint of a masked language model holds one."""
    folder = save(tmp_path, BertForMaskedLM(BertConfig(**SMALL_BERT)))
    names = [name for name in load_file(folder / "model.safetensors") if name.startswith("cls.")]
    model = load(folder)
    assert weights_line(model) == ("info", len(names))
    assert model.weights_check is not None
    assert set(model.weights_check.detail["without_place"]) <= set(names)
    (note,) = read_checkpoint(folder, within=folder).notes
    assert note.startswith(f"{len(names)} tensors of its file have no place")


def test_a_tensor_inside_of_a_layer_without_a_place_fails_the_card(tmp_path: Path) -> None:
    folder = save_llama(tmp_path)
    change(folder, with_one("model.layers.0.mlp.gate_proj.bias", 8))
    assert weights_line(load(folder)) == ("fail", 1)


def test_other_weights_than_those_that_were_counted(tmp_path: Path) -> None:
    """transformers would load what config.json names, or the shards of a distributed training."""
    folder = save_llama(tmp_path)
    shard = folder / "shard-00001-model-00001-of-00001.safetensors"
    shard.write_bytes((folder / "model.safetensors").read_bytes())
    with pytest.raises(UnusableCheckpoint, match="distributed"):
        read_checkpoint(folder, within=folder)
    shard.unlink()
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace("{", '{"transformers_weights": "other.safetensors",', 1))
    with pytest.raises(UnusableCheckpoint, match="transformers_weights"):
        read_checkpoint(folder, within=folder)


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (without("h.1.attn.c_attn.weight"), "h.1.attn.c_attn.weight"),
        (with_one("transformer.h.1.attn.c_attn.weight", 4, 4), "h.1.attn.c_attn.weight"),
        (with_one("transformer.h.2.ln_1.weight", 8), "h.2.ln_1.weight"),
    ],
)
def test_our_own_gpt2_refuses_the_same(tmp_path: Path, edit: Callable[[Tensors], Tensors], named: str) -> None:
    folder = save_gpt2(tmp_path)
    change(folder, edit)
    for refusal in refusals(folder):
        assert named in refusal
    with pytest.raises(EngineError, match=named.replace(".", r"\.")):
        own_model_from(folder, weight_precision="float32", revision="r")


@pytest.mark.parametrize("edit", [under("_orig_mod."), under("module."), with_one("score.weight", 2, 8)])
def test_our_own_gpt2_takes_the_same(tmp_path: Path, edit: Callable[[Tensors], Tensors]) -> None:
    """A prefix that is taken away and a head without a place are no hindrance for either implementation, and said."""
    folder = save_gpt2(tmp_path)
    change(folder, edit)
    own, theirs = own_model_from(folder, weight_precision="float32", revision="r"), load(folder)
    assert weights_line(own) == weights_line(theirs)
    assert weights_line(own)[0] == "info"
    rounding = 1e-5  # of two kernels in float32 over two layers of width 8
    assert (own.final_hidden([1, 2, 3]) - theirs.final_hidden([1, 2, 3])).abs().max() < rounding
