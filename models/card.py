"""The correctness card: what was checked about one run, with figures.

A card is data only. It knows neither how a check is measured (`models/checks.py`) nor how it is worded on a page.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["pass", "fail", "not_compared", "info"]


@dataclass(frozen=True)
class Check:
    """One line of the card.

    id      stable name: modules, eval_mode, weights, arithmetic, masks, row_sums, outside_mask, read_back, kept,
            overviews, figures, non_finite, module_output, whole_pass
    value   what was measured (a number, or a short word); None where nothing was
    bound   the value up to which the check passes; None for checks without one
    detail  further figures, JSON-ready; text in it is in plain English for API users
    """

    id: str
    status: Status
    value: float | int | str | None
    bound: float | int | str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Card:
    """All checks of one run, in the order in which they are shown."""

    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Literal["pass", "fail", "partial"]:
        """fail if any check failed, partial if a comparison was not made, pass only if nothing is open."""
        found = {check.status for check in self.checks}
        return "fail" if "fail" in found else "partial" if "not_compared" in found else "pass"

    def replace(self, check: Check) -> Card:
        """This card with the check of the same id replaced; unchanged if it has none."""
        return Card(tuple(check if old.id == check.id else old for old in self.checks))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: {"verdict", "checks": [{id, status, value, bound, detail}]}."""
        return {"verdict": self.verdict, "checks": [asdict(check) for check in self.checks]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Card:
        """The card that `as_dict` gave."""
        return cls(tuple(Check(**check) for check in data["checks"]))
