"""A token that the model's table of embeddings has no row for is refused in words, before the pass."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.errors import UnsupportedModel
from models.huggingface import HuggingFaceModel
from tests.parity.sweep.build import VOCABULARY, tiny_config, tiny_model
from tests.parity.sweep.compare import save


def test_a_token_beyond_the_embeddings_is_refused_with_its_number_and_the_rows(tmp_path: Path) -> None:
    save(tiny_model("llama", tiny_config("llama")), tmp_path)
    model = HuggingFaceModel.load(tmp_path, weight_precision="float32", revision="tiny", device=torch.device("cpu"))
    with pytest.raises(UnsupportedModel, match=rf"token {VOCABULARY}.* {VOCABULARY} rows"):
        model.run([4, VOCABULARY, 5])
    assert model.run([4, VOCABULARY - 1, 5]).card.verdict == "pass"
