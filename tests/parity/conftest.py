"""The two real models, loaded once a session, and transformers without its chatter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers

from models.huggingface import HuggingFaceModel
from models.packaged import MINILM, SMOLLM2, convert_gguf, find_weights, gguf_revision

CONVERTED = Path(__file__).parents[2] / "build" / "test-data" / "models"


@pytest.fixture(autouse=True, scope="session")
def quiet_transformers() -> Iterator[None]:
    """Random tiny configurations make transformers warn about token ids that are never used."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    yield
    transformers.logging.set_verbosity(before)


@pytest.fixture(scope="session")
def smollm2() -> HuggingFaceModel:
    """SmolLM2-135M-Instruct from its package, converted once."""
    source = find_weights(SMOLLM2)
    assert source is not None, "requirements-weights.txt is not installed"
    folder = convert_gguf(source, CONVERTED / f"smollm2-135m-{gguf_revision(source)}", lambda _fraction: None)
    return HuggingFaceModel.load(folder, weight_precision="Q4_1", revision="test", device=torch.device("cpu"))


@pytest.fixture(scope="session")
def minilm() -> HuggingFaceModel:
    """all-MiniLM-L6-v2 from its package."""
    folder = find_weights(MINILM)
    assert folder is not None, "requirements-weights.txt is not installed"
    return HuggingFaceModel.load(folder, weight_precision="float32", revision="test", device=torch.device("cpu"))
