"""A disk that is full, or takes nothing: every answer says whether a run is kept, and the server says that it can't."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from safetensors import SafetensorError
from safetensors.torch import save_file
from starlette.testclient import TestClient

from app.services import run_files, store
from app.services.identity import DataFolderUnusable, load_key, private_folder
from tests.api.conftest import Start, make_run, settle, until

ROOT = Path(__file__).parents[2]
MIB = 1024**2
WORDS = 320  # about 1.2 MiB of the small fake


class SmallDisk:
    """Stands between the store and a real disk, and takes `size` bytes of captures; 0: it takes nothing at all."""

    def __init__(self, folder: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.size, self.others, self.tries = folder, size, 0, 0
        save, touch = save_file, Path.touch

        def saving(tensors: dict[str, Any], path: Path) -> None:
            self.tries += 1
            if self.free < sum(tensor.nbytes for tensor in tensors.values()):
                raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
            save(tensors, path)

        def touching(path: Path, mode: int = 0o666, exist_ok: bool = True) -> None:
            if self.size == 0 and folder in path.parents:
                raise OSError(errno.ENOSPC, "planted")
            touch(path, mode, exist_ok)

        monkeypatch.setattr(run_files, "save_file", saving)
        monkeypatch.setattr(Path, "touch", touching)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=self.free))

    @property
    def free(self) -> int:
        """Bytes that are left."""
        return self.size - self.others - sum(file.stat().st_size for file in self.folder.rglob("*.safetensors"))


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], SmallDisk]:
    """Give the data folder a disk of so many bytes."""
    monkeypatch.setattr(store, "RETRY_S", 0.05)
    return lambda size: SmallDisk(tmp_path / "data", size, monkeypatch)


def summary(client: TestClient, run: dict[str, Any]) -> dict[str, Any]:
    """What is said of a run now."""
    answer = client.get(run["links"]["self"])
    found: dict[str, Any] = answer.json()
    return found


def written(client: TestClient, run: dict[str, Any]) -> str:
    """Whether the disk has the run, once that is known."""
    until(lambda: summary(client, run)["kept"] != "pending")
    kept: str = summary(client, run)["kept"]
    return kept


def test_an_answer_says_whether_the_run_is_kept(client: TestClient) -> None:
    run = make_run(client)
    assert (run["kept"], run["stored"]) == ("pending", False)
    settle(client, run)
    assert (summary(client, run)["kept"], make_run(client)["kept"]) == ("kept", "kept")
    queued = client.post("/api/runs", json={"model": "fake-30x9", "text": "b"}, headers={"Prefer": "respond-async"})
    assert queued.status_code == 202
    assert queued.json()["kept"] is None, "there is nothing to keep yet"


def test_on_a_full_disk_the_oldest_runs_make_room(
    start: Start, small_disk: Callable[[int], SmallDisk], tmp_path: Path
) -> None:
    client, full = start(), small_disk(4 * MIB)
    runs = [make_run(client, f"{number} " * WORDS) for number in range(14)]
    assert [written(client, run) for run in runs[-3:]] == ["kept"] * 3
    assert client.get("/readyz").status_code == 200
    again = start()
    for run in runs[-3:]:
        assert again.get(f"{run['links']['weights']}?layer=0&head=0").status_code == 200
    assert {again.get(run["links"]["self"]).json()["error"]["code"] for run in runs[:-3]} == {"run_gone"}
    assert full.tries > 14, "the disk was full"
    assert len(list((tmp_path / "data" / "runs").iterdir())) == 3, "and nothing else is there"


def test_a_run_that_no_room_would_be_enough_for_drops_no_other(
    start: Start, small_disk: Callable[[int], SmallDisk]
) -> None:
    client = start()
    small_disk(3 * MIB)
    small = [make_run(client, f"{name} " * WORDS) for name in ("a", "b")]
    assert [written(client, run) for run in small] == ["kept"] * 2
    large = make_run(client, "large " * WORDS * 4)
    assert written(client, large) == "not_kept"
    assert [summary(client, run)["kept"] for run in small] == ["kept"] * 2


def test_a_disk_that_something_else_fills_does_not_take_all_runs_with_it(
    start: Start, small_disk: Callable[[int], SmallDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, full = start(), small_disk(100 * MIB)
    runs = [make_run(client, f"{number} " * WORDS) for number in range(12)]
    for run in runs:
        settle(client, run)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100 * MIB))
    monkeypatch.setattr(SmallDisk, "free", 0)
    monkeypatch.setattr(store, "RETRY_S", 60.0)
    last = make_run(client, "last " * WORDS)
    assert written(client, last) == "not_kept"
    left = [run for run in runs if client.get(run["links"]["self"]).status_code == 200]
    assert left == runs[-len(left) :]
    assert len(left) >= 8, "what was dropped would have been room enough, twice and a MiB"
    assert full.tries > 13


@pytest.mark.parametrize("backlog_mib", [0, 3, 1000])
def test_what_the_disk_does_not_take_stays_readable_and_is_written_later(
    start: Start, small_disk: Callable[[int], SmallDisk], backlog_mib: int
) -> None:
    client, full = start(backlog_bytes=backlog_mib * MIB), small_disk(0)
    runs = [make_run(client, f"{number} " * WORDS) for number in range(5)]
    until(lambda: summary(client, runs[-1])["kept"] == "not_kept")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["the data folder takes no runs: No space left on device"]
    readable = [run for run in runs if client.get(run["links"]["self"]).status_code == 200]
    size = runs[0]["bytes"]
    assert len(readable) == min(5, max(1, backlog_mib * MIB // size)), "as much as may wait, one at least"
    assert readable == runs[-len(readable) :]
    assert {summary(client, run)["kept"] for run in readable} == {"not_kept"}
    assert client.get(f"{readable[0]['links']['weights']}?layer=0&head=0").status_code == 200
    full.size = 100 * MIB
    until(lambda: all(summary(client, run)["kept"] == "kept" for run in readable))
    assert client.get("/readyz").status_code == 200
    assert start().get(readable[0]["links"]["self"]).json()["kept"] == "kept"


def test_a_server_is_ready_again_once_the_disk_is_without_any_run(
    start: Start, small_disk: Callable[[int], SmallDisk]
) -> None:
    client, full = start(), small_disk(0)
    run = make_run(client)
    assert written(client, run) == "not_kept"
    client.delete(run["links"]["self"])
    assert client.get("/readyz").status_code == 503
    full.size = MIB
    until(lambda: client.get("/readyz").status_code == 200)


def read_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a data folder that cannot be changed, as root cannot have one by its permissions."""
    for owner, name in ((Path, "touch"), (Path, "mkdir"), (Path, "rename"), (os, "utime"), (Path, "unlink")):
        real = getattr(owner, name)

        def refusing(path: Path, *rest: Any, real: Any = real, **named: Any) -> Any:  # noqa: ANN401  any of them
            if folder in Path(path).parents and (real is not Path.mkdir or not path.exists()):
                raise OSError(errno.EROFS, "planted")
            return real(path, *rest, **named)

        monkeypatch.setattr(owner, name, refusing)


def test_a_read_only_folder_serves_what_is_stored(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = start()
    run = make_run(first)
    settle(first, run)
    read_only(tmp_path / "data", monkeypatch)
    client = start()
    told = [line for line in caplog.messages if "Read-only file system" in line]
    assert len(told) == 1
    assert "stored runs are served" in told[0]
    assert client.get(run["links"]["self"]).json()["kept"] == "kept"
    assert client.get(f"{run['links']['weights']}?layer=0&head=0").status_code == 200
    assert client.get("/readyz").json()["reasons"] == ["the data folder takes no runs: Read-only file system"]
    assert written(client, make_run(client, "another text")) == "not_kept"
    answer = client.delete(run["links"]["self"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_writable")
    assert client.get(run["links"]["self"]).status_code == 200, "it is still there"
    panel = client.post("/api/models/fake-30x9/reference", json={})
    assert panel.status_code == 200
    assert client.get("/api/models/fake-30x9/reference").json() == panel.json(), "from memory"


def run_app(data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real command, which is to end at once."""
    env = {**os.environ, "EVERYHEAD_DATA_DIR": str(data_dir), "PORT": "0", **environment}
    command = [sys.executable, "-m", "app"]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("case", ["a file in its way", "a key cut short", "no number"])
def test_what_cannot_start_says_so_in_one_sentence(tmp_path: Path, case: str) -> None:
    (tmp_path / "file").write_text("")
    data_dir = tmp_path / "file" / "data" if case == "a file in its way" else tmp_path / "data"
    if case == "a key cut short":
        data_dir.mkdir()
        (data_dir / "run-id.key").write_bytes(b"short")
    ended = run_app(data_dir, **({"EVERYHEAD_QUEUE_LIMIT": "many"} if case == "no number" else {}))
    lines = ended.stderr.strip().splitlines()
    assert ended.returncode == 1
    assert len(lines) == 1, ended.stderr
    about = {"a file in its way": "Not a directory", "a key cut short": "5 bytes", "no number": "EVERYHEAD_QUEUE_LIMIT"}
    assert about[case] in lines[0]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_no_key_and_no_room_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refusing(path: Path, content: bytes) -> int:
        raise OSError(code, "planted", str(path), len(content))

    monkeypatch.setattr(Path, "write_bytes", refusing)
    with pytest.raises(DataFolderUnusable, match=os.strerror(code)):
        load_key(tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == [], "half a key would be taken for one"


def test_only_folders_that_were_made_are_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    (tmp_path / "shared").chmod(0o755)
    load_key(tmp_path / "shared")
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o755, "it is somebody else's"
    assert stat.S_IMODE((tmp_path / "shared" / "run-id.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(private_folder(tmp_path / "shared" / "runs").stat().st_mode) == 0o700
