"""Models that cannot be shown are refused in words where they are listed; what tensors mean is never guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    CLIPConfig,
    CLIPModel,
    FalconH1Config,
    Gemma3TextConfig,
    LongcatFlashConfig,
    PreTrainedConfig,
    T5Config,
    ViTConfig,
    ViTModel,
    WhisperConfig,
    WhisperForConditionalGeneration,
    Zamba2Config,
)

from app.services import compute
from app.services.catalogue import Catalogue
from app.services.errors import ModelUnavailable
from models import families, interface
from models.checkpoints import UnusableCheckpoint, read_checkpoint
from models.errors import ConfigError, UnsupportedModel
from models.families import kind_of, layers_of, refusal
from models.huggingface import HuggingFaceModel
from models.projections import WatchedProjections
from models.recorder import layer_of, site_of
from models.trial import Trial
from tests.parity.sweep.build import tiny_config, tiny_model
from tests.parity.sweep.compare import random_ids, save
from tests.unit.catalogues import Loader, load
from tests.unit.tiny_checkpoints import save_gpt2

_SMALL: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


def vit() -> Any:  # noqa: ANN401  transformers' classes are not typed
    return ViTModel(ViTConfig(**_SMALL, image_size=32, patch_size=16))


def whisper() -> Any:  # noqa: ANN401  see vit
    sizes: dict[str, Any] = dict.fromkeys(
        ("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 1
    )
    return WhisperForConditionalGeneration(
        WhisperConfig(
            **sizes, d_model=16, encoder_ffn_dim=16, decoder_ffn_dim=16, vocab_size=99, pad_token_id=0, bos_token_id=1,
            eos_token_id=2, decoder_start_token_id=3, max_source_positions=8, max_target_positions=8,
        )
    )  # fmt: skip


def clip() -> Any:  # noqa: ANN401  see vit
    vision = {**_SMALL, "image_size": 32, "patch_size": 16}
    return CLIPModel(CLIPConfig(text_config={**_SMALL, "vocab_size": 99}, vision_config=vision))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (vit, "it reads pictures, not text"),
        (whisper, "it reads sound, not text"),
        (clip, "compares pictures with texts and needs both"),
    ],
)
def test_models_of_pictures_and_sound_are_told_so(make: Callable[[], Any], reason: str, tmp_path: Path) -> None:
    make().save_pretrained(tmp_path)  # without a tokenizer, which no one would miss there
    with pytest.raises(UnusableCheckpoint, match=reason):
        read_checkpoint(tmp_path, within=tmp_path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (FalconH1Config(num_hidden_layers=2), "all of its layers have attention and a recurrent part together"),
        (
            Zamba2Config(num_hidden_layers=4, layers_block_type=["linear_attention", "hybrid"] * 2),
            "its layers 1, 3 have attention and a recurrent part together",
        ),
    ],
)
def test_hybrids_are_refused_for_what_they_are(config: PreTrainedConfig, words: str) -> None:
    assert words in str(refusal(config))


def test_longcat_is_refused_for_nothing_and_counts_both_of_its_modules() -> None:
    config = LongcatFlashConfig(num_layers=3)
    assert refusal(config) is None
    assert layers_of(config) == {"decoder.self": 6}
    assert [layer_of(f"model.layers.{i}.self_attn.{j}") for i in range(3) for j in range(2)] == [0, 1, 2, 3, 4, 5]


def test_a_switch_of_the_mask_makes_an_encoder() -> None:
    assert kind_of(Gemma3TextConfig(use_bidirectional_attention=True)) == "encoder"
    assert kind_of(Gemma3TextConfig()) == "decoder"
    assert kind_of(T5Config(architectures=["T5EncoderModel"])) == "encoder"


@pytest.mark.parametrize(
    ("name", "site"),
    [
        ("decoder.layers.0.cross_attn", "decoder.cross"),
        ("decoder.transformer.h.0.crossattention", "decoder.cross"),
        ("decoder.bert.encoder.layer.1.attention.self", "decoder.self"),
        ("encoder.encoder.layer.1.attention.self", "encoder.self"),
    ],
)
def test_sites_of_models_made_of_two(name: str, site: str) -> None:
    assert site_of(name, ("encoder.self", "decoder.self", "decoder.cross")) == site


class Taking(nn.Module):
    """A module that is handed whatever a test wants."""


def attend(**options: Any) -> torch.Tensor:
    module = Taking().eval()
    trial = Trial({id(module): "layers.0.self_attn"}, {"decoder.self": 1})
    token = interface.under_way.set((trial, WatchedProjections({"layers.0.self_attn": module}, {})))
    try:
        torch.manual_seed(0)
        query, key, value = (torch.randn(1, 2, 5, 4) for _ in range(3))
        mask = torch.ones(1, 1, 5, 5, dtype=torch.bool).tril()
        return interface.everyhead_attention(module, query, key, value, mask, **options)[0]
    finally:
        interface.under_way.reset(token)


def test_a_tensor_by_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="a tensor block_indices"):
        attend(block_indices=torch.zeros(1, 5, 2, dtype=torch.long))
    assert attend(position_ids=torch.arange(5)[None], use_cache=False, block_indices=None).is_contiguous()


def test_a_selection_by_indices_is_applied() -> None:
    first = attend(indices=torch.zeros(1, 5, 1, dtype=torch.long))  # every query sees the first key alone
    assert torch.equal(first, first[:, :1].expand_as(first))
    assert not torch.equal(first, attend())


def test_a_text_longer_than_the_selection_is_shown_as_selected(tmp_path: Path) -> None:
    """DeepSeek V3.2 hands over indices: no query may have more keys than it selects."""
    config = tiny_config("deepseek_v32")
    save(tiny_model("deepseek_v32", config), tmp_path)
    model = HuggingFaceModel.load(tmp_path, weight_precision="float32", revision="x", device=torch.device("cpu"))
    capture = model.run(random_ids(70)).capture
    seen = (capture.weights("decoder.self", 1, (0, 1), (0, 70), (0, 70))[0] > 0).sum(-1)
    assert int(seen.max()) == config.index_topk


def test_what_lies_in_the_files_is_said_until_they_change(
    make: Callable[..., Catalogue], loader: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_gpt2(tmp_path / "models" / "mine")
    catalogue = make()
    monkeypatch.setattr("app.services.catalogue.FAILURE_SHOWN_S", 0.0)
    for implementation in ("own", "transformers"):
        loader.error = UnsupportedModel(f"{implementation} cannot")
        with pytest.raises(ModelUnavailable):
            catalogue.load("local:mine", lambda _: None, lambda: False, implementation)
    assert catalogue.entry("local:mine").state == "unavailable"
    loader.error = None
    save_gpt2(folder)
    assert catalogue.entry("local:mine").state == "ready"


def test_weights_that_do_not_fit_are_not_sent_to_the_other_implementation(
    make: Callable[..., Catalogue], loader: Loader, tmp_path: Path
) -> None:
    save_gpt2(tmp_path / "models" / "mine")
    loader.error = ConfigError("these weights do not fit the model; missing: wte.weight")
    with pytest.raises(ModelUnavailable) as caught:
        load(make(), "local:mine")
    assert "implementation" not in caught.value.message


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (RuntimeError("view size is not compatible"), False),
        (AttributeError("no attribute"), False),
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
    ],
)
def test_only_what_may_pass_is_worth_a_retry(error: Exception, again: bool) -> None:
    assert compute._may_pass(error) is again


def test_each_reason_is_in_words() -> None:
    for reason in (*families.REFUSED.values(), *families.OTHER_LAYERS.values()):
        assert "_" not in reason.replace("{layers}", "")
        assert "retry" not in reason
