"""Our pass as it is but for the correctness card, for the measurement of what the card costs: nothing else does so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from torch import Tensor

from models.blockwise import AttentionInputs, AttentionSummary
from models.capture import Capture
from models.card import Check
from models.checks import SDPA, ModuleRecord
from models.handed_masks import HandedMask
from models.inspectable import InspectableModel
from models.recorder import ModuleCall, Recorder


@contextmanager
def without_card() -> Iterator[None]:
    """Nothing is sampled, fingerprinted, read back or compared; the capture is made as always."""
    with (
        mock.patch.object(Recorder, "_sample", _not_sampled),
        mock.patch.object(InspectableModel, "_checked", _not_checked),
        mock.patch.object(InspectableModel, "_compare_part", _not_compared),
        mock.patch.object(InspectableModel, "_compare", _not_compared),
    ):
        yield


def _not_sampled(
    _self: Recorder,
    call: ModuleCall,
    _inputs: AttentionInputs,
    _handed: HandedMask,
    _summary: AttentionSummary,
    name: str,
    site: str,
    layer: int,
) -> ModuleRecord:
    nothing: Tensor = call.query.new_empty(0)
    return ModuleRecord(name, site, layer, None, [], None, 0.0, 0, False, 0.0, SDPA, 0, None, nothing, 0.0, {})


def _not_checked(_self: InspectableModel, recorder: Recorder, _seed: int) -> tuple[Capture, list[Check]]:
    return recorder.capture(), []


def _not_compared(*_given: object) -> Check:
    return Check("whole_pass", "not_compared", None)
