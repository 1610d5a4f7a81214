"""A model folder that anybody may have filled: one that cannot be understood never takes the others with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from models import checkpoints
from tests.unit.tiny_checkpoints import save_gpt2

WRONG = "local:wrong"
TENSOR = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A GPT-2's folder, to be changed."""
    return save_gpt2(tmp_path / "models" / "wrong")


@pytest.fixture
def client(tmp_path: Path, wrong: Path) -> Iterator[TestClient]:
    """The application with its real catalogue, beside that folder a GPT-2 that is well."""
    save_gpt2(tmp_path / "models" / "right")
    settings = Settings(
        data_dir=tmp_path / "data", models_dir=wrong.parent, default_model="local:right", offline=True, hub_allow=()
    )
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def reason_of(client: TestClient) -> str:
    """Why the changed folder cannot be used; everything else must be as it was."""
    answer = client.get("/api/models")
    assert answer.status_code == 200
    entries = {model["id"]: model for model in answer.json()["models"]}
    assert entries["local:right"]["state"] in ("ready", "preparing")
    assert client.get("/readyz").status_code == 200
    assert entries[WRONG]["state"] == "unavailable"
    assert client.post("/api/runs", json={"model": WRONG, "text": "cat"}).status_code == 409
    reason: str = entries[WRONG]["reason"]
    return reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_embd", "8"),
        ("n_embd", [8]),
        ("n_layer", "2"),
        ("n_layer", None),
        ("n_layer", 2.5),
        ("n_head", None),
        ("n_positions", "16"),
        ("vocab_size", "x"),
        ("layer_norm_epsilon", "a"),
        ("activation_function", 5),
        ("activation_function", ["gelu"]),
        ("n_inner", "x"),
        ("scale_attn_weights", "no"),
        ("tie_word_embeddings", None),
        ("architectures", [3]),
        ("architectures", 3),
    ],
)
def test_a_configuration_with_a_wrong_value(client: TestClient, wrong: Path, name: str, value: object) -> None:
    config = json.loads((wrong / "config.json").read_text())
    (wrong / "config.json").write_text(json.dumps({**config, name: value}))
    assert name in reason_of(client)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("n_head", 3, "d_model must be a multiple of n_heads, got d_model=8, n_heads=3"),
        ("n_head", 0, "at least one head, got n_heads=0"),
        ("n_layer", 0, "n_layers must be at least 1, got 0"),
    ],
)
def test_a_shape_that_no_model_can_have(client: TestClient, wrong: Path, name: str, value: int, reason: str) -> None:
    config = json.loads((wrong / "config.json").read_text())
    (wrong / "config.json").write_text(json.dumps({**config, name: value}))
    assert reason in reason_of(client)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ([1], "JSON object, and is a list"),
        ({"x": 5}, "tensor x has no dtype"),
        ({"x": {"shape": [1], "data_offsets": [0, 4]}}, "tensor x has no dtype"),
        ({"x": {**TENSOR, "data_offsets": ["x", 4]}}, "two data_offsets, and has ['x', 4]"),
        ({"x": {**TENSOR, "data_offsets": [4]}}, "two data_offsets"),
        ({"x": {**TENSOR, "data_offsets": [4, 0]}}, "two data_offsets"),
        ({"x": {"dtype": "F32", "shape": [1]}}, "two data_offsets, and has None"),
    ],
)
def test_weights_with_a_wrong_header(client: TestClient, wrong: Path, header: object, reason: str) -> None:
    text = json.dumps(header).encode()
    (wrong / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    assert reason in reason_of(client)


def test_what_nobody_thought_of(client: TestClient, wrong: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_on_wrong(read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(folder: Path, *rest: Any) -> Any:  # noqa: ANN401  whatever it reads
            if folder == wrong:
                raise RuntimeError("planted")
            return read(folder, *rest)

        return reading

    monkeypatch.setattr(checkpoints, "_described", fail_on_wrong(checkpoints._described))
    assert reason_of(client) == "its files cannot be understood (RuntimeError)"
