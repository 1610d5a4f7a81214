"""What single families need beyond the general shrinking."""

from __future__ import annotations

from typing import Any

OVERRIDES: dict[str, dict[str, Any]] = {}
WITHOUT: dict[str, tuple[str, ...]] = {}
