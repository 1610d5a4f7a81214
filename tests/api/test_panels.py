"""How a panel is made and kept: on the right weights, one tokenizer at a time, whatever the disk does."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.dependencies import Services
from app.services.references import FORMAT_VERSION
from models.reference import NAMES
from tests.api.conftest import MODEL, SEQ2SEQ, Start, make_app, small_model, submit, until

PATH = f"/api/models/{MODEL}/reference"


def services_of(client: TestClient) -> Services:
    services: Services = client.app.state.services  # type: ignore[attr-defined]
    return services


def test_what_the_disk_refuses_is_kept_in_memory(start: Start, tmp_path: Path) -> None:
    data, model = tmp_path / "kept", small_model()
    data.mkdir()
    (data / "references").write_text("", encoding="utf-8")  # where the folder should go: every write fails
    client = start(model, data_dir=data)
    panel = client.post(PATH, json={}).json()
    assert len(panel["heads"]) == 12
    assert client.get(PATH).json() == panel
    assert client.post(PATH, json={}).json() == panel
    assert model.runs == len(NAMES)
    assert client.delete(PATH).json() == {"cancelled": False}
    assert client.get(PATH).status_code == 200


def test_what_is_on_disk_is_not_held_in_memory_and_is_private(start: Start, tmp_path: Path) -> None:
    client = start(data_dir=tmp_path / "kept")
    panel = client.post(PATH, json={}).json()
    until(lambda: not services_of(client).references._works)
    (file,) = (tmp_path / "kept" / "references").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert client.get(PATH).json() == panel
    assert client.get(f"{PATH}/events").text.count("event: done") == 1


def test_a_start_removes_what_nobody_can_read(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "kept" / "references"
    start(data_dir=tmp_path / "kept").post(PATH, json={})
    (kept,) = folder.iterdir()
    half, alive = folder / ".partial-0123456789abcdef", folder / ".partial-0123456789abcdef-1"  # 1 is always there
    older, old = folder / f"{'0' * 32}.json", folder / f"1.0.0-{'0' * 32}.json"
    for path in (half, alive, older, old):
        path.write_text("{}", encoding="utf-8")
    client = start(data_dir=tmp_path / "kept")
    assert set(folder.iterdir()) == {kept, alive}
    assert client.get(PATH).status_code == 200


def replace_weights(services: Services, monkeypatch: pytest.MonkeyPatch, revision: str | None) -> None:
    """From now on the catalogue has, and loads, weights of this revision."""
    models: Any = services.models
    plain = models.entry
    monkeypatch.setattr(models, "entry", lambda model_id: replace(plain(model_id), revision=revision))
    models.model.description = replace(models.model.description, revision=str(revision))


def hold(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> threading.Event:  # noqa: ANN401
    """Calls of this method get no further before the event is set."""
    go, call = threading.Event(), getattr(owner, name)

    def held(*given: Any, **named: Any) -> Any:  # noqa: ANN401  what the method gives
        go.wait(5)
        return call(*given, **named)

    monkeypatch.setattr(owner, name, held)
    return go


def test_other_weights_have_another_panel_which_replaces_the_first(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model()
    client = start(model)
    first = client.post(PATH, json={}).json()
    replace_weights(services_of(client), monkeypatch, "fake-2")
    assert client.get(f"{PATH}/state").json()["status"] == "absent"
    assert client.get(PATH).status_code == 404
    second = client.post(PATH, json={}).json()
    assert (first["revision"], second["revision"], model.runs) == ("fake-1", "fake-2", 2 * len(NAMES))
    assert len(list((tmp_path / "data" / "references").iterdir())) == 1
    replace_weights(services_of(client), monkeypatch, "fake-1")
    assert client.get(PATH).status_code == 404


def test_another_model_has_another_panel(client: TestClient) -> None:
    entries = [services_of(client).models.entry(model) for model in (MODEL, SEQ2SEQ)]
    assert entries[0].revision == entries[1].revision, "nothing else tells them apart"
    first = client.post(PATH, json={}).json()
    other = f"/api/models/{SEQ2SEQ}/reference"
    assert client.get(other).status_code == 404
    assert client.post(other, json={}).json()["model"] == SEQ2SEQ
    assert client.get(other).json()["model"] == SEQ2SEQ
    assert client.get(PATH).json() == first


def test_each_implementation_keeps_its_own_panel(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    models: Any = services_of(client).models
    plain, names = models.entry, ("own", "transformers")
    monkeypatch.setattr(models, "entry", lambda model_id: replace(plain(model_id), implementations=names))
    panels = [client.post(f"{PATH}?implementation={name}", json={}).json() for name in names]
    assert tuple(panel["implementation"] for panel in panels) == names
    assert [client.get(f"{PATH}?implementation={name}").json() for name in names] == panels


def test_a_damaged_panel_is_left_alone(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "references"
    folder.mkdir(parents=True)
    damaged = folder / f"{FORMAT_VERSION}-{'0' * 32}.json"
    client = start()
    damaged.write_text("{}", encoding="utf-8")
    assert client.post(PATH, json={}).status_code == 200
    assert damaged.exists()


def test_weights_replaced_in_the_line_leave_no_panel(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(small_model())
    services = services_of(client)
    go = hold(services.models, "load", monkeypatch)
    work = services.references.submit(MODEL, wanted=True)
    replace_weights(services, monkeypatch, "fake-2")
    go.set()
    until(lambda: work.over)
    assert work.failure is not None
    assert work.failure.code == "weights_changed"
    assert "panel" in work.failure.message
    assert client.get(PATH).status_code == 404
    replace_weights(services, monkeypatch, "fake-1")
    assert client.get(PATH).status_code == 404
    assert client.post(PATH, json={}).json()["revision"] == "fake-1"


def test_a_panel_asked_for_during_a_download_is_that_of_what_came(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model()
    client = start(model)
    services = services_of(client)
    with monkeypatch.context() as before:
        replace_weights(services, before, None)  # not known before the download is over
        go, load = threading.Event(), services.models.load
        before.setattr(services.models, "load", lambda *asked: go.wait(5) and load(*asked))
        work = services.references.submit(MODEL, wanted=True)
        until(lambda: work.record.status == "running")
    model.description = replace(model.description, revision="fake-1")
    go.set()
    until(lambda: work.over)
    assert client.get(PATH).json()["revision"] == "fake-1"
    assert model.runs == len(NAMES)
    until(lambda: not services.references._works)


def test_a_panel_that_was_stopped_leaves_its_place_in_the_line(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model()
    client, go = start(model, queue_limit=1), hold(model, "run", monkeypatch)
    first = submit(client, "first")["links"]["self"]
    until(lambda: client.get(first).json()["status"] != "queued")
    client.post(PATH, json={}, headers={"Prefer": "respond-async"})
    body = {"model": MODEL, "text": "second"}
    assert client.post("/api/runs", json=body).json()["error"]["code"] == "queue_full"
    assert client.delete(PATH).json() == {"cancelled": True}
    assert submit(client, "second")["status"] == "queued"
    go.set()


def test_a_server_that_ends_stops_its_panels(tmp_path: Path) -> None:
    model = small_model(delay_s=0.05)
    with TestClient(make_app(tmp_path, model), base_url="http://127.0.0.1") as client:
        panels = services_of(client).references
        running, queued = (panels.submit(name, wanted=True) for name in (MODEL, SEQ2SEQ))
        until(lambda: model.layers_done > 0)
    assert [running.record.status, queued.record.status] == ["cancelled", "cancelled"]
    assert model.runs == 1
