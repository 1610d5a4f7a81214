"""What becomes of a run that is deleted, or dropped to make room: nothing of its text stays, whoever worked with it."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.services import comparison
from app.services.store import RunStore
from app.settings import Settings
from models.alignment import Segment, align
from models.tokens import Token
from models.units import TextUnit
from tests.api.conftest import Start, make_run, settle
from tests.unit.tiny_checkpoints import save_gpt2

WORD = "swordfish"
MIB = 1024**2


def held(word: str = WORD) -> list[Any]:
    """Everything in memory that is cut from a text with this word."""
    gc.collect()
    return [one for one in gc.get_objects() if type(one) in (Token, TextUnit, Segment) and word in one.text]


def use(client: TestClient, run: dict[str, Any]) -> None:
    """Ask for all that is worked out of a finished run."""
    address = f"/api/runs/{run['id']}"
    window = f"{address}/weights?layer=1&head=0"
    pair = f"/api/compare?a={run['id']}&b={run['id']}&layer_a=0&head_a=0&layer_b=1&head_b=1"
    calls = (f"{address}/units?unit=word", f"{window}&lens=rollout&unit=sentence", f"{address}/similarity", pair)
    assert [client.get(call).status_code for call in (*calls, f"{address}/layers?alike=true")] == [200] * 5
    assert client.post(f"{address}/check", json={}).status_code == 200


def test_nothing_of_a_deleted_run_is_kept(client: TestClient) -> None:
    run = make_run(client, f"the {WORD} is here")
    settle(client, run)
    use(client, run)
    assert len(held()) > 3, "this is how the test sees it"
    assert client.delete(f"/api/runs/{run['id']}").json()["outcome"] == "forgotten"
    assert held() == []
    use(client, make_run(client, f"the {WORD} is here"))  # and it can be made again


def test_nothing_of_a_run_that_was_dropped_to_make_room_is_kept(start: Start) -> None:
    client = start(store_bytes=2 * MIB)
    dropped = make_run(client, f"{WORD} " * 320)
    settle(client, dropped)
    use(client, dropped)
    settle(client, make_run(client, "other " * 320))
    assert client.get(f"/api/runs/{dropped['id']}").json()["error"]["code"] == "run_gone"
    assert held() == []


def test_what_is_found_while_its_run_is_deleted_is_answered_and_not_kept(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(client, f"the {WORD} is here")

    def deleting(*given: Any) -> Any:  # noqa: ANN401  as the function in whose place it is
        client.delete(f"/api/runs/{run['id']}")
        return align(*given)

    monkeypatch.setattr(comparison, "align", deleting)
    pair = f"/api/compare?a={run['id']}&b={run['id']}&layer_a=0&head_a=0&layer_b=1&head_b=1"
    assert client.get(pair).json()["aligned"]
    assert held() == []


def test_a_run_that_is_deleted_while_it_is_read_is_gone(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    first = start()
    run = make_run(first, f"the {WORD} is here")
    settle(first, run)
    client = start()  # which has not read it yet
    read = RunStore._read

    def deleting(store: RunStore, run_id: str) -> Any:  # noqa: ANN401  as the method in whose place it is
        found = read(store, run_id)
        store.forget(run_id)
        return found

    monkeypatch.setattr(RunStore, "_read", deleting)
    assert client.get(f"/api/runs/{run['id']}").status_code == 200, "it was there when it was read"
    assert client.get(f"/api/runs/{run['id']}").json()["error"]["code"] == "run_gone"


def test_a_comparison_of_stages_goes_with_its_run(tmp_path: Path) -> None:
    save_gpt2(tmp_path / "models" / "tiny")
    settings = Settings(
        data_dir=tmp_path / "data", models_dir=tmp_path / "models", default_model="local:tiny", offline=True
    )
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        run = make_run(client, "cat", model="local:tiny")
        assert client.post(f"/api/runs/{run['id']}/stages", json={}).status_code == 200
        client.delete(f"/api/runs/{run['id']}")
        assert held("cat") == []
