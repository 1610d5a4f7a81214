"""What a run shows through a lens and over units. Keeps the last units and rollouts, knows neither HTTP nor bytes."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from app.services.errors import LensRefused, OutOfRange
from app.services.kept import Kept
from app.services.records import RunRecord
from app.services.run_files import Stored
from models.errors import LensUnavailable
from models.lens_windows import Axis, LensRequest, LensWindow, formula, lens_window
from models.lenses import rollout
from models.protocol import CaptureReader
from models.tokens import Token
from models.units import Segmenter, TextUnit, Unit

Side = Literal["source", "target"]

KEPT_UNITS = 16  # sides of runs cut into units of one kind: lists of a few thousand entries
KEPT_ROLLOUTS = 8  # matrices of up to 1,024 × 1,024, 4 MB each


class LensService:
    """Lenses and units of finished runs. Any method may be called from several threads at once."""

    def __init__(self) -> None:
        self._segmenter = Segmenter()
        self._units: Kept[tuple[TextUnit, ...]] = Kept(KEPT_UNITS)
        self._rollouts: Kept[Tensor] = Kept(KEPT_ROLLOUTS)

    def forget(self, run_id: str) -> None:
        """Drop what was worked out of a run."""
        self._units.forget(run_id)
        self._rollouts.forget(run_id)

    def units(self, record: RunRecord, unit: Unit, side: Side) -> tuple[TextUnit, ...]:
        """The units of one side of a run. Raises OutOfRange where the run has no such side."""
        tokens = tokens_of(record, side)
        if not tokens:
            raise OutOfRange("side", side, "source")
        return self._units.find([record], (unit, side), lambda: tuple(self._segmenter.units(tokens, unit)))

    def axes(self, record: RunRecord, site: str, unit: Unit) -> tuple[Axis, Axis]:
        """The units of a site's rows and columns."""
        rows, cols = sides_of(record, site)
        return self._axis(record, unit, rows), self._axis(record, unit, cols)

    def window(self, run: Stored, request: LensRequest, unit: Unit) -> LensWindow:
        """One window. Raises OutOfRange, LensRefused."""
        record, capture = run
        if request.lens == "raw" and unit == "token":  # over many heads the stored overviews may stand in
            spans = request.rows, request.cols
            window = capture.window(request.site, request.layer, request.head, *spans, request.max_cells, request.pool)
            return LensWindow(window, 1.0, None, formula("raw", request.layer, request.head, plain=True))

        def rolled(of: CaptureReader, site: str, layer: int) -> Tensor:
            return self._rollout(record, of, site, layer)

        try:
            return lens_window(capture, request, *self.axes(record, request.site, unit), rolled)
        except LensUnavailable as error:
            raise LensRefused(request.lens, str(error), error.why, error.numbers) from error

    def _axis(self, record: RunRecord, unit: Unit, side: Side) -> Axis:
        if unit == "token":
            return Axis.of_tokens(len(tokens_of(record, side)))
        return Axis.of_units(self.units(record, unit, side))

    def _rollout(self, record: RunRecord, capture: CaptureReader, site: str, layer: int) -> Tensor:
        """The rollout up to a layer, going on from the nearest one below that is kept."""

        def roll() -> Tensor:
            kept = ((at, self._rollouts.get([record], (site, at))) for at in range(layer - 1, -1, -1))
            first, below = next(((at, found) for at, found in kept if found is not None), (-1, None))
            return rollout(capture, site, layer, below=below, first=first + 1)

        return self._rollouts.find([record], (site, layer), roll)


def sides_of(record: RunRecord, site: str) -> tuple[Side, Side]:
    """Which texts the rows and the columns of a site are."""
    if site == "decoder.cross":
        return "target", "source"
    side: Side = "target" if site == "decoder.self" and record.target else "source"
    return side, side


def tokens_of(record: RunRecord, side: Side) -> tuple[Token, ...]:
    """The tokens of one side of a run, none where it has no such side."""
    return record.target if side == "target" else record.tokens
