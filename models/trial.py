"""A short pass right after loading: each attention module calls as the configuration says, and masks show the design.

What no other text would mend is found here and said once, before anybody waits for a run. From the shapes that came the
size of a capture is computed, layer by layer. This module knows neither families nor the service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from models.blockwise import AttentionInputs
from models.checkpoints import one_line
from models.checks import modules_check
from models.errors import CaptureError, UnsupportedModel
from models.handed_masks import HandedMask
from models.recorder import ModuleCall, Recorder

TRIAL_TOKENS = 4  # enough to tell a causal mask from a full one, and heads from tokens


@dataclass(frozen=True)
class TriedModule:
    """One attention module as it called.

    sees_later  whether a query attends to a later token; None across two texts
    selects     whether the keys of each query were selected, so that its mask is its own
    """

    site: str
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_value: int
    sees_later: bool | None
    selects: bool


class Trial(Recorder):
    """A recorder that notes of each module what a run has to know before it begins."""

    def __init__(self, names: dict[int, str], expected: dict[str, int]) -> None:
        super().__init__(names, expected, on_layer=lambda _done, _total: None, should_stop=lambda: False, keep=False)
        self.modules: list[TriedModule] = []

    def _inputs(self, call: ModuleCall, site: str, handed: HandedMask) -> AttentionInputs:
        inputs = super()._inputs(call, site, handed)
        (n_heads, query_len, d_head), (n_kv_heads, key_len, d_value) = call.query.shape, call.value.shape
        sees_later = None
        if query_len == key_len > 1 and not site.endswith(".cross"):
            sees_later = inputs.mask.key_range((0, 1))[1] > 1
        self.modules.append(TriedModule(site, n_heads, n_kv_heads, d_head, d_value, sees_later, call.selects))
        return inputs


def tried(trial: Trial, run: Callable[[], object]) -> tuple[TriedModule, ...]:
    """The modules that called in a pass over a few tokens.

    Raises:  UnsupportedModel with the reason, if the pass fails or other modules called than were expected
    """
    try:
        run()
    except (MemoryError, torch.OutOfMemoryError, UnsupportedModel):
        raise  # the first two may pass; the last says it all
    except CaptureError as error:
        raise UnsupportedModel(str(error)) from error
    except Exception as error:  # any library may raise anything, and no text of a user is in it
        raise UnsupportedModel(
            f"a trial over {TRIAL_TOKENS} tokens failed, so no text can be shown ({type(error).__name__}: "
            f"{one_line(error)})"
        ) from error
    check = modules_check(trial.record)
    if check.status == "fail":
        raise UnsupportedModel(_unexpected(check.detail["expected"], check.detail["seen"], trial))
    for site in trial.record.expected:
        heads = {module.n_heads for module in trial.modules if module.site == site}
        if len(heads) > 1:
            raise UnsupportedModel(
                f"its layers have different numbers of heads ({sorted(heads)}), which cannot be shown"
            )
    return tuple(trial.modules)


def trial_ids(vocabulary: int, special: Sequence[int | None]) -> list[int]:
    """A few different token ids that mark nothing, where the vocabulary has as many."""
    plain = [token for token in range(min(vocabulary, 64)) if token not in special]
    return (plain or [0])[:TRIAL_TOKENS]


def _unexpected(expected: dict[str, int], seen: dict[str, int], trial: Trial) -> str:
    total, calls = sum(expected.values()), sum(seen.values())
    if not calls:
        return f"none of its {total} attention modules calls where attention can be read"
    if expected == seen:
        names = [module.name for module in trial.record.modules]
        return f"its attention modules call in another order than their names say ({', '.join(names[:4])} …)"
    sites = ", ".join(f"{site}: {seen.get(site, 0)} of {expected.get(site, 0)}" for site in {**expected, **seen})
    return (
        f"its configuration says {total} attention modules and {calls} calls came where attention can be read "
        f"({sites}), so its picture would be incomplete or wrong"
    )
