"""The catalogue, downloads, and tokens without a run."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from transformers.utils import logging as transformers_logging

from app.services.catalogue import Catalogue
from tests.api.conftest import MODEL, PAIRS, SEQ2SEQ, TEXT, Start, small_model


def test_a_model_that_loads_says_nothing_on_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The libraries' progress bars and advice would break up the service's log."""
    transformers_logging.enable_progress_bar()
    transformers_logging.set_verbosity_warning()
    catalogue = Catalogue(data_dir=tmp_path, offline=True)
    assert not catalogue.is_loaded("minilm-l6")
    catalogue.load("minilm-l6", lambda _: None, lambda: False)
    assert catalogue.is_loaded("minilm-l6")
    assert capfd.readouterr().err == ""
    assert transformers_logging.get_verbosity() == logging.ERROR


def test_a_model_that_the_catalogue_dropped_is_asked_for_again(start: Start) -> None:
    """A text that does not fit is refused at once only while its model is in memory; nothing waits for loading."""
    client = start(small_model(max_tokens=4))
    client.post("/api/tokenize", json={"model": MODEL, "text": TEXT})
    body, later = {"model": MODEL, "text": TEXT}, {"Prefer": "respond-async"}
    assert client.post("/api/runs", json=body, headers=later).status_code == 422
    client.app.state.services.models.loaded = False  # type: ignore[attr-defined]
    assert client.post("/api/runs", json=body, headers=later).status_code in (201, 202)


def test_models_are_listed_with_state_and_reason(client: TestClient) -> None:
    models = client.get("/api/models").json()["models"]
    assert [(one["id"], one["state"]) for one in models] == [
        (MODEL, "ready"),
        (SEQ2SEQ, "ready"),
        (PAIRS, "ready"),
        ("gpt2", "needs_download"),
        ("broken", "unavailable"),
    ]
    assert models[0]["n_layers"] == 4
    assert models[3]["n_layers"] is None
    assert "safetensors" in models[4]["reason"]
    assert [one["takes_pair"] for one in models[:3]] == [False, False, True]
    assert [models[place]["implementations"] for place in (0, 3)] == [["transformers"], ["own", "transformers"]]


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
