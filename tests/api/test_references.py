"""The reference panel: computed once for a model's weights, followed, stopped, kept, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from models.reference import NAMES, references_for
from models.token_facts import facts_of
from tests.api.conftest import MODEL, SEQ2SEQ, Start, small_model, until

PATH = f"/api/models/{MODEL}/reference"


def panel_of(client: TestClient, path: str = PATH) -> dict[str, Any]:
    answer = client.post(path, json={})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def state_of(client: TestClient) -> str:
    """Whether the panel is there; asking is no error, whatever the answer."""
    answer = client.get(f"{PATH}/state")
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    status: str = answer.json()["status"]
    return status


def test_every_head_is_averaged_over_the_texts(start: Start) -> None:
    model = small_model()
    client = start(model)
    panel = panel_of(client)
    assert (panel["model"], panel["implementation"]) == (MODEL, "transformers")
    assert [text["name"] for text in panel["texts"]] == list(NAMES)
    assert [(head["layer"], head["head"]) for head in panel["heads"]] == [(i, j) for i in range(4) for j in range(3)]
    corrected: dict[str, list[float | None]] = {}
    for reference in references_for(model.tokenize, 8192):
        ids, facts = [token.id for token in reference.tokens], facts_of(reference.tokens)
        capture = model.run(ids, facts=facts, on_layer=lambda *_: None, should_stop=lambda: False).capture
        heads = capture.head_scores("decoder.self")
        for name, score in heads[5]["scores"].items():
            corrected.setdefault(name, []).append(None if score is None else score["corrected"])
    for name, score in panel["heads"][5]["scores"].items():
        told = [one for one in corrected[name] if one is not None]
        assert (score is None) == (not told), name
        if score is not None:
            assert list(score["by_text"].values()) == corrected[name]
            share = (score["score"] - score["chance"]) / (1 - score["chance"])
            assert score["corrected"] == pytest.approx(share, abs=1e-6)  # of the means beside it
    assert panel["heads"][5]["scores"]["induction"]["by_text"]["repeated"] is not None


def test_it_is_computed_once_and_survives_a_restart(start: Start, tmp_path: Path) -> None:
    model = small_model()
    client = start(model, data_dir=tmp_path / "kept")
    assert client.get(PATH).status_code == 404
    assert client.get(PATH).json()["error"]["code"] == "not_computed"
    assert state_of(client) == "absent"
    panel = panel_of(client)
    assert state_of(client) == "done"
    runs = model.runs
    assert runs == len(NAMES)
    assert panel_of(client) == panel
    answer = client.get(PATH)
    assert answer.json() == panel
    assert client.get(PATH, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    again = start(model, data_dir=tmp_path / "kept")
    assert state_of(again) == "done"
    assert again.get(PATH).json() == panel
    assert panel_of(again) == panel
    assert model.runs == runs
    (file,) = (tmp_path / "kept" / "references").iterdir()
    file.write_text("{", encoding="utf-8")
    assert start(model, data_dir=tmp_path / "kept").get(PATH).status_code == 404


def test_a_panel_of_another_format_is_not_shown(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    panel_of(client)
    monkeypatch.setattr("app.services.references.FORMAT_VERSION", "other")
    assert client.get(PATH).status_code == 404
    monkeypatch.undo()
    assert client.get(PATH).status_code == 200


def test_an_encoder_decoder_writes_its_targets(client: TestClient) -> None:
    panel = panel_of(client, f"/api/models/{SEQ2SEQ}/reference")
    sites = {head["site"] for head in panel["heads"]}
    assert sites == {"encoder.self", "decoder.self", "decoder.cross"}


def test_it_can_be_followed_and_stopped(serve: Callable[..., str]) -> None:
    model = small_model(delay_s=0.1)
    address = serve(model)
    with httpx2.Client(base_url=address, trust_env=False) as client:
        answer = client.post(PATH, json={}, headers={"Prefer": "respond-async"})
        assert answer.status_code == 202
        until(lambda: model.layers_done > 0)
        missing = client.get(PATH).json()["error"]
        assert missing["details"]["status"] == "running"
        assert "POST" not in missing["message"]
        state = client.get(f"{PATH}/state").json()
        assert state == {"status": "running", "events": answer.json()["events"]}
        events = []
        with client.stream("GET", state["events"]) as stream:
            for line in stream.iter_lines():
                if line.startswith("event:"):
                    events.append(line.removeprefix("event: "))
                elif line.startswith("data:") and json.loads(line[5:]).get("progress", {}).get("done", 0) > 4:
                    assert json.loads(line[5:])["progress"]["total"] == 4 * len(NAMES)
                    assert model.runs >= 2  # four modules are one text
                    assert client.delete(PATH).json() == {"cancelled": True}
        assert events[0] == "progress"
        assert events[-1] == "cancelled"
        assert client.get(PATH).status_code == 404
        assert client.get(f"{PATH}/state").json()["status"] == "absent"
        assert client.delete(PATH).json() == {"cancelled": False}
        assert client.get(f"{PATH}/events").status_code == 200


def test_a_client_that_leaves_stops_what_nobody_wanted(serve: Callable[..., str]) -> None:
    model = small_model(delay_s=0.1)
    address = serve(model)
    with pytest.raises(httpx2.TimeoutException):
        httpx2.post(f"{address}{PATH}", json={}, trust_env=False, timeout=0.5)
    with httpx2.Client(base_url=address, trust_env=False) as client:
        until(lambda: client.get(PATH).json()["error"]["details"]["status"] is None)
    assert model.runs < len(NAMES)


def test_what_cannot_be_used_is_refused(client: TestClient) -> None:
    for model, status, code in (
        ("nobody", 404, "unknown_model"),
        ("gpt2", 409, "model_needs_download"),
        ("broken", 409, "model_unavailable"),
    ):
        answer = client.post(f"/api/models/{model}/reference", json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    answer = client.post(f"{PATH}?implementation=own", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")
    assert client.get(f"{PATH}/events").json()["error"]["code"] == "not_computed"
    assert client.get("/api/models/nobody/reference/state").status_code == 404
    assert client.get(f"{PATH}/state?implementation=own").status_code == 422


def test_a_failed_pass_can_be_tried_again(start: Start) -> None:
    model = small_model(fail_at=2)
    client = start(model)
    answer = client.post(PATH, json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_failed")
    assert answer.json()["error"]["details"]["model"] == MODEL
    assert "run" not in answer.json()["error"]["details"], "the key of a panel is no run"
    assert "the run" not in answer.json()["error"]["message"]
    missing = client.get(PATH).json()["error"]
    assert (missing["code"], missing["details"]) == ("not_computed", {"status": None, "failure": "run_failed"})
    assert "run_failed" in missing["message"]
    model.fail_at = None
    assert len(panel_of(client)["heads"]) == 12
