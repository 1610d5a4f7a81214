"""Where the measurements keep what they need: outside of version control, shared with the tests."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "build" / "test-data"
CONVERTED = DATA / "models"
RESULTS = ROOT / "bench" / "results.md"
LOCAL = DATA / "local"  # checkpoints made for the measurement
