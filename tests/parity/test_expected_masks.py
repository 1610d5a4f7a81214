"""What configurations say of masks, against what transformers makes of them: none fails, windows are known."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModel, AutoModelForCausalLM

from models.card import Check
from models.huggingface import HuggingFaceModel
from tests.parity.tiny import CONFIGS, VOCABULARY, looked_into, random_ids

SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MIXED = ["sliding_attention", "full_attention"] * 2
WINDOWED: dict[str, tuple[str, dict[str, Any]]] = {
    "Qwen2": ("Qwen2Config", {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 2}),
    "Qwen2 that does not use its window": ("Qwen2Config", {"use_sliding_window": False, "sliding_window": 9}),
    "Qwen3": ("Qwen3Config", {"use_sliding_window": True, "sliding_window": 9, "layer_types": MIXED}),
    "Gemma 3": ("Gemma3TextConfig", {"sliding_window": 9, "layer_types": MIXED}),
    "Gemma 3, both sides": ("Gemma3TextConfig", {"sliding_window": 9, "use_bidirectional_attention": True}),
    "Phi 3": ("Phi3Config", {"sliding_window": 9}),
    "StarCoder 2": ("Starcoder2Config", {"sliding_window": 9}),
    "Cohere 2": ("Cohere2Config", {"sliding_window": 9, "layer_types": MIXED}),
    "OLMo 3": ("Olmo3Config", {"sliding_window": 9, "layer_types": MIXED}),
    "Exaone 4": ("Exaone4Config", {"sliding_window": 9, "layer_types": MIXED}),
    "ModernBERT": ("ModernBertConfig", {"local_attention": 18}),
    "ModernBERT as decoder": ("ModernBertDecoderConfig", {"local_attention": 18}),
}


def masks_of(model: HuggingFaceModel, count: int, targets: list[int] | None = None) -> Check:
    card = model.run(random_ids(count), target_ids=targets, seed=1).card
    return next(check for check in card.checks if check.id == "masks")


@pytest.mark.parametrize("family", list(CONFIGS))
def test_the_families_masks_are_as_configured(family: str) -> None:
    targets = random_ids(30, seed=1) if family == "t5" else None
    assert masks_of(looked_into(family), 40, targets).status == "pass"


@pytest.mark.parametrize("name", WINDOWED)
def test_windows_are_as_configured(name: str) -> None:
    kind, extra = WINDOWED[name]
    torch.manual_seed(1)
    config = getattr(transformers, kind)(**SHAPE | extra)
    auto: Any = AutoModel if kind == "ModernBertConfig" else AutoModelForCausalLM
    model = HuggingFaceModel(
        auto.from_config(config), None, max_tokens=512, weight_precision="float32", revision="tiny"
    )
    check = masks_of(model, 40)
    assert check.status == "pass", check.detail
    says_window = any("window of" in words for words in check.detail["expected"])
    assert says_window == ("does not use" not in name), check.detail
