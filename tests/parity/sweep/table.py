"""The table in docs/families.md: written from what the sweep measured, and read again by the tests.

It knows nothing of how a family is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.parity.sweep.compare import EQUAL, LENGTHS, Measured

PAGE = Path(__file__).resolve().parents[3] / "docs" / "families.md"
HEAD = "| family | kind | sites: layers × heads | shown, or why not | largest difference |\n|---|---|---|---|---|\n"
SHOWN = "shown"


def row(found: Measured) -> str:
    """One line of the table."""
    if found.difference is None:
        return f"| {found.family} | {found.kind} | | {found.reason} | |"
    return f"| {found.family} | {found.kind} | {found.sites} | {SHOWN} | {found.difference:.0e} |"


def rows_of(page: str) -> dict[str, list[str]]:
    """The table's lines as family -> its further cells."""
    lines = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| family ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


def not_tried_in(page: str) -> set[str]:
    """The families that the page names as not tried."""
    return {line.removeprefix("- ").partition(":")[0] for line in page.splitlines() if line.startswith("- ")}


def page(found: Iterable[Measured], not_tried: Mapping[str, str]) -> str:
    """The whole page."""
    rows = sorted(found, key=lambda one: one.family)
    shown = [one.difference for one in rows if one.difference is not None]
    untried = "\n".join(f"- {name}: {why}" for name, why in sorted(not_tried.items()))
    return f"""\
# Families of models

Made by `make families`, which takes a minute or two; not to be edited. Each family of text models in transformers'
tables, as a tiny random model with peaked attention: its folder is listed, loaded, run over texts of {LENGTHS[0]}
and of {LENGTHS[1]} tokens, and every weight of every head is compared with transformers' own eager `output_attentions`.

{len(shown)} are shown, with differences of at most {max(shown):.0e} (float32, from end to end; the tests allow
{EQUAL:.0e}). {len(rows) - len(shown)} are refused where models are listed, before any run, for the reason given.
Granite's eager weights leave its attention sinks out; they are compared after the sinks took their share.

{HEAD}{chr(10).join(row(one) for one in rows)}

## Not tried

No small random model of these could be made here, for the reason that transformers gave, or because their sizes are not
in the configuration. When such a checkpoint is loaded, a trial over a few tokens tells whether it can be shown.

{untried}
"""
