"""Stage by stage: a GPT-2 runs on our own Transformer, and is compared with transformers' on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from app.main import create_app
from app.services import stages
from app.services.errors import WeightsChanged
from app.settings import Settings
from models.errors import Cancelled
from models.stages import IN_LAYER, Comparison, Stage
from tests.api.conftest import make_run
from tests.unit.tiny_checkpoints import save_gpt2

GPT2 = "local:tiny"


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one GPT-2 of two layers."""
    folder = tmp_path_factory.mktemp("models")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_gpt2(folder / "tiny")
    return folder


@pytest.fixture
def gpt2(models_dir: Path, tmp_path: Path) -> Iterator[TestClient]:
    """The application with its real catalogue."""
    settings = Settings(data_dir=tmp_path / "data", models_dir=models_dir, default_model=GPT2, offline=True)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def run_of(client: TestClient, **options: Any) -> dict[str, Any]:
    answer = client.post("/api/runs", json={"model": GPT2, "text": "cat", **options})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def compare(client: TestClient, run_id: str) -> Any:  # noqa: ANN401  the client of the tests has its own answer type
    return client.post(f"/api/runs/{run_id}/stages", json={})


def test_a_gpt2_runs_on_ours_and_on_transformers(gpt2: TestClient) -> None:
    entry = next(model for model in gpt2.get("/api/models").json()["models"] if model["id"] == GPT2)
    assert entry["implementations"] == ["own", "transformers"]
    own, reference = run_of(gpt2), run_of(gpt2, implementation="transformers")
    assert own["id"] != reference["id"]
    assert own["id"] == run_of(gpt2, implementation="own")["id"]
    for run, implementation in ((own, "own"), (reference, "transformers")):
        assert run["model"]["implementation"] == implementation
        assert run["card"]["verdict"] == "pass"
    paths = [
        next(check for check in run["card"]["checks"] if check["id"] == "modules")["detail"]["attention_path"]
        for run in (own, reference)
    ]
    assert paths == ["everyhead", "everyhead"]
    assert own["bytes"] == reference["bytes"]


def test_every_stage_is_listed(gpt2: TestClient) -> None:
    answer = compare(gpt2, run_of(gpt2)["id"])
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    found = answer.json()
    assert (found["dtype"], found["tolerance"], found["first_over"]) == ("float32", 1e-3, None)
    inside = [f"layers.{layer}.{stage}" for layer in range(2) for stage in IN_LAYER]
    assert [stage["name"] for stage in found["stages"]] == ["embeddings", *inside, "final_norm", "logits"]
    assert set(found["stages"][1]) == {"stage", "layer", "name", "absolute", "relative", "over"}
    assert (found["stages"][1]["stage"], found["stages"][1]["layer"]) == ("attention_norm", 0)
    assert not any(stage["over"] for stage in found["stages"])


def test_a_run_by_transformers_is_compared_the_same(gpt2: TestClient) -> None:
    ours, theirs = (run_of(gpt2, implementation=name)["id"] for name in ("own", "transformers"))
    assert compare(gpt2, ours).json() == compare(gpt2, theirs).json()


def test_a_second_request_computes_nothing(gpt2: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(gpt2)["id"]
    first = compare(gpt2, run).json()
    monkeypatch.setattr(gpt2.app.state.services.stages, "_compare", None)  # type: ignore[attr-defined]
    assert compare(gpt2, run).json() == first


def test_the_first_stage_over_tolerance_is_named(gpt2: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    parted = (Stage("query", 1, 1e-7, 1e-7, False), Stage("key", 1, float("nan"), float("nan"), True))
    monkeypatch.setattr(
        gpt2.app.state.services.stages,  # type: ignore[attr-defined]
        "_compare",
        lambda *_: Comparison("float32", 1e-3, parted),
    )
    found = compare(gpt2, run_of(gpt2)["id"]).json()
    assert found["first_over"] == "layers.1.key"
    assert found["stages"][1]["absolute"] is None  # no number


def test_a_model_with_one_implementation_has_no_counterpart(client: TestClient) -> None:
    answer = compare(client, make_run(client)["id"])
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "no_counterpart"
    assert answer.json()["error"]["details"] == {"model": "fake-30x9"}


def test_a_long_run_is_refused_with_the_reason(gpt2: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(gpt2)["id"]
    monkeypatch.setattr(stages, "LONGEST", 0)
    answer = compare(gpt2, run)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "stages_too_long"
    assert answer.json()["error"]["details"] == {"count": 1, "limit": 0}


def test_the_limit_is_the_engines() -> None:
    from models.stages import LONGEST

    assert stages.LONGEST == LONGEST


def test_weights_that_changed_are_not_those_of_the_run(gpt2: TestClient, models_dir: Path) -> None:
    run = run_of(gpt2)["id"]
    assert compare(gpt2, run).status_code == 200
    save_gpt2(models_dir / "tiny")  # other random weights
    answer = compare(gpt2, run)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "weights_changed")
    assert compare(gpt2, run_of(gpt2)["id"]).status_code == 200
    assert gpt2.get(f"/api/runs/{run}").status_code == 200


def test_weights_that_change_while_a_comparison_waits(gpt2: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(gpt2)["id"]
    monkeypatch.setattr(gpt2.app.state.services.stages, "_refuse", lambda _: None)  # type: ignore[attr-defined]
    monkeypatch.setattr(stages, "require_same_weights", _changed)
    assert compare(gpt2, run).json()["error"]["code"] == "weights_changed"


def _changed(*_: Any) -> None:
    raise WeightsChanged("planted")


def test_an_unknown_run_is_gone(gpt2: TestClient) -> None:
    answer = compare(gpt2, "0" * 32)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "run_gone"


def test_a_failure_leaves_the_run_and_can_be_tried_again(gpt2: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Comparison:
        raise RuntimeError("planted")

    service = gpt2.app.state.services.stages  # type: ignore[attr-defined]
    run = run_of(gpt2)["id"]
    with monkeypatch.context() as planted:
        planted.setattr(service, "_compare", fail)
        answer = compare(gpt2, run)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_failed")
        assert "planted" not in answer.text
        assert answer.json()["error"]["details"] == {"run": run, "kind": "RuntimeError"}
    assert gpt2.get(f"/api/runs/{run}").json()["status"] == "done"
    assert compare(gpt2, run).status_code == 200


def test_what_is_found_after_it_was_stopped_can_be_asked_for_again(
    gpt2: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last client leaves after the last time that the comparison asks whether to stop."""
    service, found = gpt2.app.state.services.stages, Comparison("float32", 1e-3, ())  # type: ignore[attr-defined]
    run = run_of(gpt2)["id"]

    def left(*_: Any) -> Comparison:
        service.release(service._works[run])
        return found

    with monkeypatch.context() as planted:
        planted.setattr(service, "_compare", left)
        assert compare(gpt2, run).json()["error"]["code"] == "run_cancelled"
    assert compare(gpt2, run).status_code == 200


def test_a_stopped_comparison_says_so(gpt2: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> Comparison:
        raise Cancelled("stopped")

    monkeypatch.setattr(gpt2.app.state.services.stages, "_compare", stop)  # type: ignore[attr-defined]
    answer = compare(gpt2, run_of(gpt2)["id"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_cancelled")


def test_the_page_is_in_both_languages(client: TestClient) -> None:
    for lang, title in (("en", "Stage by stage"), ("zh", "逐级比较")):
        page = client.get("/stages", params={"lang": lang})
        assert page.status_code == 200
        assert f"<h1>{title}</h1>" in page.text
