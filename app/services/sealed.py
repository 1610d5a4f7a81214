"""Small JSON files with a checksum of their own: what is read back is what was written, or it is damaged.

The checksum is the first field, over everything that follows it, so that the file stays plain JSON. It finds what a
disk or a hand changed, not a forger: there is no key. It knows neither runs nor panels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BEFORE, AFTER = b'{"checksum": "', b'", '
CHECKSUM = "sha256"  # of summaries, panels and captures: 1.6 GB a second where the processor helps, a third elsewhere
HEX = 2 * hashlib.new(CHECKSUM).digest_size


class Damaged(Exception):
    """A stored file is not what was written. The message says what is wrong, in words fit for a log."""


def sealed(data: Mapping[str, Any]) -> bytes:
    """The content of a file that holds `data`, which has at least one field."""
    rest = json.dumps(data, ensure_ascii=True).encode()[1:]
    return BEFORE + _checksum(rest) + AFTER + rest


def unsealed(content: bytes) -> dict[str, Any]:
    """What `sealed` was given. Raises Damaged; nothing is parsed before its checksum is right."""
    start = len(BEFORE) + HEX + len(AFTER)
    rest = content[start:]
    if content[:start] != BEFORE + _checksum(rest) + AFTER:
        raise Damaged("its checksum is another")
    data: dict[str, Any] = json.loads(b"{" + rest)
    return data


def checksum_of_file(path: Path) -> str:
    """The checksum of a large file, read in pieces; other threads go on meanwhile."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, CHECKSUM).hexdigest()


def _checksum(content: bytes) -> bytes:
    return hashlib.new(CHECKSUM, content).hexdigest().encode()
