"""What a model hands over as a mask: which keys it hides, and what it adds to the scores of the others.

A boolean mask says it outright. An additive one hides a key by a number so low that the key's weight is 0; which number
that is differs (−inf, the lowest of the dtype, −1e9, −1e4), and a position bias may be low too. This module is the one
place where the two are told apart. It knows neither models nor captures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from models.errors import UnsupportedModel
from models.masks import BiasLayout, MaskLayout

Made = TypeVar("Made")

# The highest floor in use is −1e4, which bfloat16 rounds to −9,984. e⁻⁹⁹⁰⁰ is 0 in float64 as well, so that such a key
# has no weight whatever its score: scores would have to differ by thousands.
HIGHEST_FLOOR = -9_900.0
# Floors stand apart from biases: entries up to floor / 4 are hidden if none lies between there and floor / 8. The sum
# of two floors, and a floor on top of a bias, are within floor / 4; a slope (ALiBi at 12,000 tokens reaches −1e4) fills
# the gap, so that it remains a bias.
FLOOR_SHARE, GAP_SHARE = 4.0, 8.0


@dataclass(frozen=True)
class HandedMask:
    """A mask as it was handed over, taken apart.

    threshold  entries of an additive mask up to here hide their key; None for a boolean mask
    bias       what an additive mask adds where it does not hide; None where that is nothing
    """

    layout: MaskLayout
    bias: BiasLayout | None
    threshold: float | None

    def may_attend(self, rows: Tensor) -> Tensor:
        """Which keys some rows of the same mask let their queries see.

        Shapes:  rows (…, key_len), boolean or additive -> the same, boolean
        """
        return rows if self.threshold is None else visible_entries(rows, self.threshold)


def hidden_up_to(mask: Tensor) -> float:
    """The entry up to which an additive mask hides.

    Shapes:  mask (…, query_len, key_len), additive
    Values:  half the lowest number of the dtype where there is no other floor
    """
    lowest = float(torch.finfo(mask.dtype).min) / 2
    soft = mask.masked_fill(mask <= lowest, 0.0)
    floor = float(soft.min()) if soft.numel() else 0.0
    if floor > HIGHEST_FLOOR or floor != floor:
        return lowest
    between = (soft > floor / FLOOR_SHARE) & (soft <= floor / GAP_SHARE)
    return lowest if bool(between.any()) else floor / FLOOR_SHARE


def visible_entries(mask: Tensor, threshold: float) -> Tensor:
    """Turn an additive mask into True = may attend.

    Shapes:  mask (…, key_len) -> the same, boolean
    Values:  a row that a floor (not −inf or the lowest number) covers whole is visible whole: a softmax takes only
             differences, so that there such a floor hides nothing
    """
    seen = mask > threshold
    lowest = float(torch.finfo(mask.dtype).min) / 2
    if threshold <= lowest:
        return seen
    return seen | (~seen.any(-1, keepdim=True) & (mask > lowest))


def split_mask(mask: Tensor, dtype: torch.dtype) -> HandedMask:
    """Take a mask apart.

    Shapes:  mask (1 or n_heads, query_len, key_len), boolean or additive
    Raises:  UnsupportedModel if each head has a mask of its own
    """
    threshold = None if mask.dtype == torch.bool else hidden_up_to(mask)
    may_attend = mask if threshold is None else visible_entries(mask, threshold)
    if mask.shape[0] > 1 and not bool((may_attend == may_attend[:1]).all()):
        raise UnsupportedModel("this model gives each head a mask of its own, which cannot be shown yet")
    layout = MaskLayout.from_mask(may_attend[0])
    bias = None if threshold is None else layout_of_bias(mask.masked_fill(~may_attend, 0.0), dtype)
    return HandedMask(layout, bias, threshold)


def layout_of_bias(bias: Tensor, dtype: torch.dtype) -> BiasLayout | None:
    """Analyse what is added to the scores, None where that is nothing.

    Shapes:  bias (1 or n_heads, query_len, key_len)
    """
    return BiasLayout.from_bias(bias.to(dtype)) if bool(bias.any()) else None


class SharedTensors(Generic[Made]):
    """What was made of a mask or bias, by the tensor itself: layers that share one share the result.

    A tensor that was written to in between is another one: torch counts what is done to it in place.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[Tensor | None, Made]] = {}

    def get_or_make(self, tensor: Tensor | None, lengths: tuple[int, int], make: Callable[[], Made]) -> Made:
        """What `make` gave when this tensor (or another view of the same numbers) was met first.

        Shapes:  any
        """
        place: tuple[object, ...] = lengths
        if tensor is not None:
            if tensor.is_inference():
                return make()  # torch keeps no count of what is written to these
            written = tensor._version  # noqa: SLF001  torch gives its count of writes no other name
            place = (*lengths, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, written)
        if place not in self._made:
            self._made[place] = (tensor, make())  # holding the tensor keeps its address from being used again
        return self._made[place][1]
