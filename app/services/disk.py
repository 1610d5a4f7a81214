"""Whether a folder takes what is written to it, and what an error of writing means. It knows nothing of runs."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from pathlib import Path

from app.services.identity import private_folder

PARTIAL = ".partial-"  # begins the names of what is being written
FULL = (errno.ENOSPC, errno.EDQUOT)
PROBE_BYTES = 64 * 1024  # a disk that takes this much of a new file takes a small run
MIB = 1024**2
OS_ERROR = re.compile(r"os error (\d+)")  # how the safetensors library tells it


class Disk:
    """What is known of the folder now. `trouble` says why it takes nothing, in the system's words; None if it does."""

    def __init__(self, folder: Path) -> None:
        self.trouble: str | None = None
        self._folder = folder

    def probe(self) -> bool:
        """Make the folder and write a file into it: True, and no trouble any more, if both succeed."""
        path = self._folder / f"{PARTIAL}probe-{os.getpid()}"
        try:
            private_folder(self._folder)
            path.touch(mode=0o600)
            path.write_bytes(bytes(PROBE_BYTES))
        except OSError as error:
            self.note(error)
        else:
            self.trouble = None
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
        return self.trouble is None

    def note(self, error: Exception) -> None:
        """Something could not be written."""
        self.trouble = words_of(error)

    def could_hold(self, needed: int, ours: int) -> bool:
        """Whether so many bytes would fit if everything of ours made room."""
        try:
            return shutil.disk_usage(self._folder).free + ours >= needed
        except OSError:
            return False


def being_written(partial: Path) -> bool:
    """Whether another process that lives is at it (a second server on the same folder); its number ends the name."""
    number = partial.name.rpartition("-")[2]
    if not number.isdecimal() or int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def is_full(error: Exception) -> bool:
    """Whether what failed would succeed with more room."""
    return _number_of(error) in FULL


def words_of(error: Exception) -> str:
    """The system's words for an error, without paths."""
    number = _number_of(error)
    return os.strerror(number) if number else type(error).__name__


def enough(freed: int, needed: int) -> bool:
    """Whether so much was freed that, if the disk is still full, something else fills it."""
    return freed > 2 * needed + MIB


def _number_of(error: Exception) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    found = OS_ERROR.search(str(error))
    return int(found[1]) if found else None
