"""Writes docs/families.md: every family is measured, one after the other. `make families` runs it.

A fault in one family ends it with that family's name: the page is written only of a sweep without one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from transformers.utils import logging

from tests.parity.sweep.build import families, tiny_config, why_not_tried
from tests.parity.sweep.compare import Measured, measured
from tests.parity.sweep.table import PAGE, page


def main() -> None:
    """Measure and write."""
    torch.set_num_threads(1)  # the figures do not depend on the number of cores
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    found: list[Measured] = []
    not_tried: dict[str, str] = {}
    for name in families():
        if (why := why_not_tried(name)) is not None:
            not_tried[name] = why
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                found.append(measured(name, tiny_config(name), Path(folder)))
            except Exception as error:
                error.add_note(f"in the family {name}")
                raise
    PAGE.write_text(page(found, not_tried), encoding="utf-8")


if __name__ == "__main__":
    main()
