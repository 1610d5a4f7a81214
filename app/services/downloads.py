"""Downloads from the model hub that a user asked for: safetensors, configuration and tokenizer, nothing else.

The only module that reaches the network, and only in `Downloads.start`. It does not know what a model is for.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.constants import HF_HUB_CACHE
from huggingface_hub.errors import (
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)
from huggingface_hub.file_download import repo_folder_name

logger = logging.getLogger("everyhead.downloads")

POLL_S = 0.5  # how often bytes on disk are counted
HEARTBEAT_S = 5.0  # a follower hears at least this often
SUPPORT_FILES = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|model\.safetensors\.index\.json|vocab\.txt|merges\.txt|chat_template\.jinja|(spiece|tokenizer|sentencepiece\.bpe)\.model"
)
COMMIT = re.compile(r"[0-9a-f]{40}")
SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")

OnBytes = Callable[[int, int], None]  # (done, total)
Fetch = Callable[[str, Path, OnBytes], None]  # repository, hub cache
Status = Literal["progress", "done", "failed"]


class DownloadFailed(Exception):
    """A download that did not end well; the message is the reason, fit to be shown."""


@dataclass(frozen=True)
class Progress:
    """One moment of a download. `total` is 0 until it is known."""

    status: Status
    done: int = 0
    total: int = 0
    reason: str | None = None

    def as_event(self) -> dict[str, Any]:
        """JSON-ready, for server-sent events."""
        fraction = 1.0 if self.status == "done" else min(1.0, self.done / self.total) if self.total else 0.0
        error = {"code": "download_failed", "message": self.reason, "details": {}} if self.reason else None
        return {"status": self.status, "progress": fraction, "done": self.done, "total": self.total, "error": error}


class Downloads:
    """At most one download per repository, each in a thread of its own. Safe for several threads."""

    def __init__(self, cache_dir: Path | None = None, fetch: Fetch | None = None) -> None:
        self._cache_dir = cache_dir or Path(HF_HUB_CACHE)
        self._fetch = fetch or fetch_from_hub
        self._changed = threading.Condition()
        self._progress: dict[str, Progress] = {}

    def start(self, repo: str) -> None:
        """Begin, unless it is running already. A failed download begins again and keeps the files it has."""
        with self._changed:
            now = self._progress.get(repo)
            if now and now.status == "progress":
                return
            self._progress[repo] = Progress("progress")
        threading.Thread(target=self._work, args=(repo,), name=f"download-{repo}", daemon=True).start()

    def progress(self, repo: str) -> Progress | None:
        """How it stands; None if none was started since the service was."""
        with self._changed:
            return self._progress.get(repo)

    def events(self, repo: str) -> Iterator[Mapping[str, Any]]:
        """Each change from now on, and the present state at least every few seconds, until it ends."""
        last = self.progress(repo)
        while last and last.status == "progress":
            yield last.as_event()
            with self._changed:
                self._changed.wait_for(lambda: self._progress[repo] != last, HEARTBEAT_S)  # noqa: B023 - called at once
                last = self._progress[repo]
        yield (last or Progress("failed", reason="No download of this model was started.")).as_event()

    def cache_folder(self, repo: str) -> Path:
        """Where the hub cache keeps everything of the repository; its snapshots link inside it."""
        return self._cache_dir / repo_folder_name(repo_id=repo, repo_type="model")

    def cached_snapshot(self, repo: str) -> Path | None:
        """The main snapshot of the repository in the hub cache, whole or not. Never asks the network."""
        folder = self.cache_folder(repo)
        try:
            commit = (folder / "refs" / "main").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None
        snapshot = folder / "snapshots" / commit
        return snapshot if COMMIT.fullmatch(commit) and snapshot.is_dir() else None

    def _work(self, repo: str) -> None:
        try:
            self._fetch(repo, self._cache_dir, lambda done, total: self._set(repo, Progress("progress", done, total)))
        except DownloadFailed as error:
            self._fail(repo, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a library raises in this thread must reach the followers
            self._fail(repo, f"The download stopped: {type(error).__name__}.")
        else:
            with self._changed:
                self._progress[repo] = replace(self._progress[repo], status="done")
                self._changed.notify_all()

    def _fail(self, repo: str, reason: str) -> None:
        logger.warning("download of %s failed: %s", repo, reason)
        with self._changed:
            self._progress[repo] = replace(self._progress[repo], status="failed", reason=reason)
            self._changed.notify_all()

    def _set(self, repo: str, progress: Progress) -> None:
        with self._changed:
            self._progress[repo] = progress
            self._changed.notify_all()


def wanted_files(names: list[str]) -> list[str]:
    """The files of a repository to fetch. Raises DownloadFailed if it has no safetensors weights."""
    support = [name for name in names if SUPPORT_FILES.fullmatch(name)]
    if "model.safetensors" in names:
        return ["model.safetensors", *(name for name in support if name != "model.safetensors.index.json")]
    shards = [name for name in names if SHARD.fullmatch(name)]
    if not shards or "model.safetensors.index.json" not in names:
        raise DownloadFailed("This model has no safetensors weights; pickled ones are never loaded.")
    return [*shards, *support]


def fetch_from_hub(repo: str, cache_dir: Path, on_bytes: OnBytes) -> None:
    """Fetch what `wanted_files` names into the hub cache; weights come last. Raises DownloadFailed."""
    try:
        info = HfApi().model_info(repo, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        names = sorted(wanted_files(list(sizes)), key=lambda name: (name.endswith(".safetensors"), name))
        total = sum(sizes[name] for name in names)
        done, blobs = 0, cache_dir / repo_folder_name(repo_id=repo, repo_type="model") / "blobs"
        for name in names:
            with _Polling(blobs, partial(_tell, on_bytes, done, total)):
                hf_hub_download(repo, name, cache_dir=cache_dir)
            done += sizes[name]
            on_bytes(done, total)
    except OfflineModeIsEnabled as error:
        raise DownloadFailed("Downloads are switched off by HF_HUB_OFFLINE.") from error
    except RepositoryNotFoundError as error:
        raise DownloadFailed("The hub has no model of this name, or it needs permission.") from error
    except HfHubHTTPError as error:
        raise DownloadFailed("The hub refused the download. Try again later.") from error
    except (OSError, LocalEntryNotFoundError) as error:
        raise DownloadFailed(f"The hub cannot be reached, or the disk is full ({type(error).__name__}).") from error


def _tell(on_bytes: OnBytes, before: int, total: int, extra: int) -> None:
    on_bytes(min(before + extra, total), total)


class _Polling:
    """While a file is fetched: tells, twice a second, how much of it is on the disk."""

    def __init__(self, blobs: Path, tell: Callable[[int], None]) -> None:
        self._blobs, self._tell = blobs, tell
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="download-progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._over.wait(POLL_S):
            try:
                self._tell(max((file.stat().st_size for file in self._blobs.glob("*.incomplete")), default=0))
            except OSError:
                continue  # it was renamed between listing and asking
