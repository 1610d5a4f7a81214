"""Fetch the texts that the shipped models are trained on: `python -m scripts.fetch_training_data FOLDER`.

English: the King James Bible out of Debian's packages bible-kjv and bible-kjv-text (public domain). Chinese: poetry in
simplified characters out of the npm package chinese-poetry (public domain texts; the collection is MIT). Needs apt-get,
dpkg and npm, and the network; nothing of it is committed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHINESE = "chinese-poetry@2.0.1"
# Collections in simplified characters; the large ones of the Tang are in traditional ones.
COLLECTIONS = ("shijing", "chuci", "lunyu", "wudaishici", "songci", "yuanqu", "nalanxingde")


def main() -> None:
    """Write english.txt and chinese.txt."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/training-data")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        (folder / "english.txt").write_text(english(Path(scratch)), "utf-8")
        (folder / "chinese.txt").write_text(chinese(Path(scratch)), "utf-8")
    for path in sorted(folder.glob("*.txt")):
        sys.stdout.write(f"{path}: {len(path.read_text('utf-8')):,} characters\n")


def english(scratch: Path) -> str:
    """The whole text, one paragraph a line, a blank line between chapters."""
    _run(["apt-get", "download", "bible-kjv", "bible-kjv-text"], scratch)
    for package in scratch.glob("*.deb"):
        _run(["dpkg", "-x", package.name, "english"], scratch)
    program = scratch / "english/usr/bin/bible"
    printed = _run([str(program), "-p", "english/usr/lib", "-d", "bible.data", "gen1:1-rev22:21"], scratch)
    chapters = re.split(r"\n\n+[A-Z0-9][^\n]* \d+\n\n", "\n\n" + printed)
    return "\n\n".join(_verses(chapter) for chapter in chapters if chapter.strip()) + "\n"


def _verses(chapter: str) -> str:
    # "  1 In the beginning …" over several lines becomes one line without its number
    verses = re.split(r"(?:^|\n) {0,2}\d+ ", chapter)
    return "\n".join(" ".join(verse.split()) for verse in verses if verse.strip())


def chinese(scratch: Path) -> str:
    """All poems: a title line, the lines of the poem, a blank line."""
    _run(["npm", "pack", CHINESE], scratch)
    archive = next(scratch.glob("chinese-poetry-*.tgz"))
    _run(["tar", "-xzf", archive.name], scratch)
    poems: list[str] = []
    for collection in COLLECTIONS:
        for path in sorted((scratch / "package/dist" / collection).rglob("*.json")):
            poems.extend(_poems(json.loads(path.read_text("utf-8"))))
    return "\n".join(poems)


def _poems(found: Any) -> Iterator[str]:  # noqa: ANN401  files differ in their form
    for poem in found if isinstance(found, list) else [found]:
        lines = poem.get("paragraphs") or poem.get("content") or poem.get("para") if isinstance(poem, dict) else None
        if lines and all(isinstance(line, str) for line in lines):
            title = str(poem.get("title") or poem.get("rhythmic") or poem.get("chapter") or "")
            yield "\n".join([title, *lines]) + "\n"


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603  our own commands
    return done.stdout.decode("latin-1" if command[0].endswith("bible") else "utf-8")


if __name__ == "__main__":
    main()
