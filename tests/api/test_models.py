"""The catalogue, downloads, and tokens without a run."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import MODEL, TEXT, Start, small_model


def test_models_are_listed_with_state_and_reason(client: TestClient) -> None:
    models = client.get("/api/models").json()["models"]
    assert [(one["id"], one["state"]) for one in models] == [
        (MODEL, "ready"),
        ("gpt2", "needs_download"),
        ("broken", "unavailable"),
    ]
    assert models[0]["n_layers"] == 4
    assert models[1]["n_layers"] is None
    assert "safetensors" in models[2]["reason"]


def test_tokens_without_a_run(client: TestClient) -> None:
    answer = client.post("/api/tokenize", json={"model": MODEL, "text": TEXT}).json()
    assert (answer["count"], answer["limit"], answer["over_limit"]) == (6, 8192, False)
    assert [token["text"] for token in answer["tokens"]] == ["<s>", "The", " cat", " saw", " the", " cat"]
    assert all(TEXT[t["start"] : t["end"]] == t["text"] for t in answer["tokens"] if not t["special"])


def test_tokens_without_special_ones(client: TestClient) -> None:
    answer = client.post("/api/tokenize", json={"model": MODEL, "text": TEXT, "add_special_tokens": False}).json()
    assert answer["count"] == 5


def test_too_many_tokens_are_counted_not_refused(start: Start) -> None:
    client = start(small_model(max_tokens=4))
    answer = client.post("/api/tokenize", json={"model": MODEL, "text": TEXT}).json()
    assert (answer["count"], answer["limit"], answer["over_limit"]) == (6, 4, True)


def test_tokens_wait_for_a_model_that_is_loading(start: Start) -> None:
    client = start(load_s=0.3)
    assert client.get("/api/models").json()["models"][0]["state"] == "preparing"
    assert client.post("/api/tokenize", json={"model": MODEL, "text": TEXT}).json()["count"] == 6


def test_download_is_started_and_followed(client: TestClient) -> None:
    answer = client.post("/api/models/gpt2/download", headers={"Content-Type": "application/json"})
    assert answer.status_code == 202
    events = client.get(answer.json()["events"]).text
    assert events.count("event: ") == 2
    assert "event: done" in events


@pytest.mark.parametrize(
    ("model", "status", "code"), [("none", 404, "unknown_model"), ("broken", 409, "model_unavailable")]
)
def test_download_of_others_is_refused(client: TestClient, model: str, status: int, code: str) -> None:
    answer = client.post(f"/api/models/{model}/download", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_events_of_an_unknown_download_are_refused(client: TestClient) -> None:
    assert client.get("/api/models/none/events").json()["error"]["code"] == "unknown_model"
