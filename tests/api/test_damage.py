"""Stored files that are not what was written: never a wrong picture, never a 500, and computed again when asked."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.services import run_files
from app.services.sealed import Damaged, checksum_of_file, sealed, unsealed
from tests.api.conftest import MODEL, Start, make_run, settle, small_model

BRACKETS = 200_000


def flip(path: Path, place: float, bit: int = 0) -> None:
    """Change one bit of a file, and nothing that one sees from outside: a disk does not tell."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[min(int(place * len(content)), len(content) - 1)] ^= 1 << bit
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def with_header(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write a safetensors file again with another header of the same length or shorter."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def swap_shapes(header: dict[str, Any]) -> None:
    """Rows for columns, of every tensor: as many bytes, other numbers."""
    for name, about in header.items():
        if name != "__metadata__":
            about["shape"] = about["shape"][::-1]


def rename(header: dict[str, Any]) -> None:
    """The queries of one layer for those of another."""
    one, other = "decoder.self.0.query", "decoder.self.1.query"
    header[one], header[other] = header[other], header[one]


def summary_of(folder: Path) -> dict[str, Any]:
    """What is in a summary, without its checksum."""
    return unsealed((folder / "summary.json").read_bytes())


def write_summary(folder: Path, data: object) -> None:
    """A summary without a right checksum."""
    (folder / "summary.json").write_text(json.dumps(data))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a bit of the first tensor": lambda folder: flip(folder / "capture.safetensors", 0.3),
    "a bit in the middle": lambda folder: flip(folder / "capture.safetensors", 0.5, 7),
    "the last bit": lambda folder: flip(folder / "capture.safetensors", 1.0, 3),
    "a bit of the header": lambda folder: flip(folder / "capture.safetensors", 0.0005, 1),
    "another header": lambda folder: with_header(folder / "capture.safetensors", rename),
    "swapped shapes": lambda folder: with_header(folder / "capture.safetensors", swap_shapes),
    "no header": lambda folder: (folder / "capture.safetensors").write_bytes(b"\x10" * 100),
    "an empty capture": lambda folder: (folder / "capture.safetensors").write_bytes(b""),
    "half a capture": lambda folder: os.truncate(folder / "capture.safetensors", 50_000),
    "brackets in the summary": lambda folder: write_brackets(folder, "["),
    "braces in the summary": lambda folder: write_brackets(folder, '{"a":'),
    "a bit of the summary": lambda folder: flip(folder / "summary.json", 0.5),
    "a bit of the checksum": lambda folder: flip(folder / "summary.json", 0.0, 5),
    "half a summary": lambda folder: os.truncate(folder / "summary.json", 500),
    "an empty summary": lambda folder: (folder / "summary.json").write_text(""),
    "no JSON": lambda folder: (folder / "summary.json").write_bytes(b"\xff\xfe{"),
    "a list": lambda folder: write_summary(folder, [1]),
    "a better card": lambda folder: write_summary(
        folder, {"checksum": "0" * 64, **summary_of(folder), "record": {**summary_of(folder)["record"], "bytes": 1}}
    ),
}


def write_brackets(folder: Path, opening: str) -> None:
    """A summary that ends the recursion of whoever parses it."""
    (folder / "summary.json").write_text(opening * BRACKETS)


def calls(run: dict[str, Any]) -> list[str]:
    """Every address of a run."""
    here = run["links"]["self"]
    parts = ("", "/events", "/heads", "/layers", "/overview", "/similarity", "/rows?layer=0&head=0")
    return [
        *(f"{here}{part}" for part in parts),
        f"{here}/weights?layer=0&head=0",
        f"{here}/units?unit=word",
        f"/api/compare?a={run['id']}&b={run['id']}&layer_a=0&head_a=0&layer_b=1&head_b=0",
    ]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_says_so_and_is_computed_again(
    start: Start, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = start()
    run = make_run(first)
    settle(first, run)
    window = first.get(calls(run)[7]).json()
    DAMAGES[damage](tmp_path / "data" / "runs" / run["id"])
    model = small_model()
    client = start(model)
    for call in calls(run):
        answer = client.get(call)
        assert (answer.status_code, answer.json()["error"]["code"]) == (410, "run_damaged"), call
    for call in ("check", "stages"):
        answer = client.post(f"{run['links']['self']}/{call}", json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (410, "run_damaged"), call
    assert run["id"] not in caplog.text
    assert client.get("/readyz").status_code == 200, "one run is damaged, the server is not"
    again = make_run(client)
    assert (again["id"], again["status"], model.runs) == (run["id"], "done", 1)
    settle(client, again)
    assert client.get(calls(run)[7]).json() == window
    assert start().get(run["links"]["self"]).status_code == 200


def test_a_damaged_run_can_be_deleted(start: Start, tmp_path: Path) -> None:
    first = start()
    run = make_run(first)
    settle(first, run)
    flip(tmp_path / "data" / "runs" / run["id"] / "capture.safetensors", 0.5)
    client = start()
    assert client.delete(run["links"]["self"]).json()["outcome"] == "forgotten"
    assert client.get(run["links"]["self"]).json()["error"]["code"] == "run_gone"


@pytest.mark.parametrize("read_before", [True, False])
def test_a_file_that_changes_in_this_process(
    client: TestClient, run: dict[str, Any], tmp_path: Path, *, read_before: bool
) -> None:
    settle(client, run)
    if read_before:
        assert client.get(calls(run)[7]).status_code == 200
    flip(tmp_path / "data" / "runs" / run["id"] / "capture.safetensors", 0.5, 2)  # its date is put back, as copies do
    assert client.get(calls(run)[7]).json()["error"]["code"] == "run_damaged"


def test_another_runs_files_are_not_this_ones(start: Start, tmp_path: Path) -> None:
    first = start()
    one, other = make_run(first), make_run(first, "another text of five words")
    for run in (one, other):
        settle(first, run)
    folder = tmp_path / "data" / "runs"
    (folder / one["id"]).rename(folder / "kept")
    shutil.copytree(folder / other["id"], folder / one["id"])
    assert start().get(one["links"]["self"]).json()["error"]["code"] == "run_damaged", "the whole folder"
    shutil.copy(folder / "kept" / "summary.json", folder / one["id"])
    assert start().get(one["links"]["self"]).json()["error"]["code"] == "run_damaged", "the capture"


@pytest.mark.parametrize("which", ["before there were checksums", "another version"])
def test_another_format_is_gone_and_not_damaged(start: Start, tmp_path: Path, which: str) -> None:
    first = start()
    run = make_run(first)
    settle(first, run)
    folder = tmp_path / "data" / "runs" / run["id"]
    older = {**summary_of(folder), "format_version": "1.0"}
    if which == "another version":
        (folder / "summary.json").write_bytes(sealed(older))
    else:
        write_summary(folder, older)
    assert start().get(run["links"]["self"]).json()["error"]["code"] == "run_gone"


def test_a_checksum_is_read_once_by_however_many(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    first = start()
    run = make_run(first)
    settle(first, run)
    read: list[Path] = []

    def of_file(path: Path) -> str:
        read.append(path)
        return checksum_of_file(path)

    monkeypatch.setattr(run_files, "checksum_of_file", of_file)
    client = start()
    threads = [threading.Thread(target=client.get, args=(calls(run)[7],)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == 1
    other = make_run(client, "another text")
    settle(client, other)
    written = len(read)
    assert client.get(calls(other)[7]).status_code == 200
    assert len(read) == written == 2, "once when it was written"


def test_a_damaged_panel_is_computed_again(start: Start, tmp_path: Path) -> None:
    first = start()
    address = f"/api/models/{MODEL}/reference"
    panel = first.post(address, json={}).json()
    (path,) = (tmp_path / "data" / "references").glob("*.json")
    for damage in ("flip", "brackets", "list"):
        if damage == "flip":
            flip(path, 0.5)
        else:
            path.write_text("[" * BRACKETS if damage == "brackets" else "[1]")
        client = start()
        assert client.get(address).json()["error"]["code"] == "not_computed"
        assert client.get(f"{address}/state").json()["status"] == "absent"
        assert client.post(address, json={}).json() == panel
        assert start().get(address).json() == panel


def test_a_seal_finds_any_bit() -> None:
    content = sealed({"a": [1, 2.5, None], "b": "ä \ud800"})
    assert unsealed(content) == {"a": [1, 2.5, None], "b": "ä \ud800"}
    assert json.loads(content)["a"] == [1, 2.5, None], "it is plain JSON"
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            with pytest.raises(Damaged):
                unsealed(bytes(changed))
    for shorter in range(len(content)):
        with pytest.raises(Damaged):
            unsealed(content[:shorter])
