"""The real catalogue over tiny checkpoints: each kind of model, and both implementations where there are two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.services.catalogue import Catalogue
from app.services.downloads import Downloads
from app.settings import Settings
from tests.unit.tiny_checkpoints import save_bert, save_gpt2, save_t5
from tests.unit.tiny_shipped import write_tiny

TEXT = "the cat saw the cat"
MINI, DATES = "everyhead-mini", "everyhead-dates"
TOLERANCE = 1e-5  # of weights up to 1: two ways of computing them in float32, at the scale of fresh weights


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """The application over a GPT-2, a BERT and a T5 in the models folder, and two shipped models."""
    for save in (save_gpt2, save_bert, save_t5):
        save(tmp_path / "models" / save.__name__.removeprefix("save_"))
    write_tiny(tmp_path / "weights", MINI, "decoder")
    write_tiny(tmp_path / "weights", DATES, "encoder-decoder")
    data_dir, models_dir = tmp_path / "data", tmp_path / "models"
    catalogue = Catalogue(
        data_dir=data_dir,
        models_dir=models_dir,
        shipped_dir=tmp_path / "weights",
        downloads=Downloads(tmp_path / "hub"),
        offline=True,
        keep_loaded=3,
    )
    app = create_app(Settings(data_dir=data_dir, models_dir=models_dir, offline=True), catalogue=catalogue)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def run(client: TestClient, model: str, text: str = TEXT, **options: Any) -> dict[str, Any]:
    """A finished run, whose card must pass."""
    answer = client.post("/api/runs", json={"model": model, "text": text, **options})
    assert answer.status_code == 201, answer.text
    summary: dict[str, Any] = answer.json()
    assert summary["card"]["verdict"] == "pass"
    return summary


def window(client: TestClient, summary: dict[str, Any], site: str) -> list[list[float | None]]:
    """The last head of the last layer of a run."""
    answer = client.get(summary["links"]["weights"], params={"site": site, "layer": 1, "head": 1}).json()
    weights: list[list[float | None]] = answer["weights"]
    return weights


def test_both_implementations_of_a_gpt2(client: TestClient) -> None:
    listed = {model["id"]: model["implementations"] for model in client.get("/api/models").json()["models"]}
    assert listed["local:gpt2"] == ["own", "transformers"]
    runs = {name: run(client, "local:gpt2", implementation=name) for name in listed["local:gpt2"]}
    assert [one["model"]["implementation"] for one in runs.values()] == ["own", "transformers"]
    assert runs["own"]["id"] != runs["transformers"]["id"]
    assert run(client, "local:gpt2")["id"] == runs["own"]["id"], "the first is the default"
    ours, theirs = (np.array(window(client, one, "decoder.self"), dtype=float) for one in runs.values())
    np.testing.assert_allclose(ours, theirs, atol=TOLERANCE, rtol=0)
    lacking = client.post("/api/runs", json={"model": "local:bert", "text": TEXT, "implementation": "own"})
    assert lacking.json()["error"]["details"]["fields"] == {"implementation": "transformers for this model"}


def test_a_model_of_ours_is_the_default(client: TestClient) -> None:
    first = client.get("/api/models").json()["models"][0]
    assert (first["id"], first["implementations"]) == (MINI, ["own"])
    summary = run(client, MINI, "the cat")
    assert (summary["model"]["implementation"], summary["model"]["family"]) == ("own", "everyhead")
    assert [len(window(client, summary, "decoder.self")), summary["tokens"]["target"]] == [7, []]


@pytest.mark.parametrize(("model", "start"), [(DATES, "<start>"), ("local:t5", "<unk>")])
def test_encoder_decoders_of_both_kinds(client: TestClient, model: str, start: str) -> None:
    text = "the cat"
    given = run(client, model, text, target_text="the cat")
    assert given["options"]["target"] == "given"
    assert given["tokens"]["target"][0]["text"] == start
    written = run(client, model, text)
    assert written["options"]["target"] == "written"
    for summary in (given, written):
        n_source, n_target = len(summary["tokens"]["source"]), len(summary["tokens"]["target"])
        cross = window(client, summary, "decoder.cross")
        assert (len(cross), len(cross[0])) == (n_target, n_source)


def test_a_target_longer_than_the_model_reads(client: TestClient) -> None:
    for loaded in (False, True):
        answer = client.post("/api/runs", json={"model": DATES, "text": "a", "target_text": "a" * 16})
        assert answer.status_code == 422, f"loaded before: {loaded}"
        details = answer.json()["error"]["details"]
        assert (details["field"], details["count"], details["limit"]) == ("target_text", 17, 16)


def test_a_pair_for_a_bert(client: TestClient) -> None:
    listed = {model["id"]: model["takes_pair"] for model in client.get("/api/models").json()["models"]}
    assert [listed["local:bert"], listed["local:t5"], listed[MINI]] == [True, False, False]
    summary = run(client, "local:bert", text_pair="saw the cat")
    assert [token["segment"] for token in summary["tokens"]["source"]] == [0, 1]
    assert summary["id"] != run(client, "local:bert", TEXT)["id"]
