"""Statistics of heads, taken from each block of weights while it exists: nothing of size n² is kept.

Per head and version (all keys; the first key left out; the first and all special keys left out, the rest of each row
divided by what is left): the mean weight on the targets of each score with its chance, the entropy, the mass by
distance, and how much the most-read key gets. `models/head_targets.py` says which keys and rows count.

What is collected from a block are sums over rows or over targets. Columns that a version leaves out are set to 0 or
passed over, so that nothing large is subtracted from sums. This module knows one layer; `models/head_sums.py` turns
what is collected into figures.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from models.blocks import Block
from models.diagonals import sum_by_offset
from models.head_sums import LEFT, TINY, Collected, layer_figures
from models.head_targets import PLACE, HeadTargets


class HeadCollector:
    """Collects one layer, block by block, then sums up."""

    def __init__(self, targets: HeadTargets, n_heads: int, like: Tensor) -> None:
        self._targets = targets
        versions = [targets.of(name) for name in targets.versions]
        counting = [torch.stack([of.usable for of in versions])]
        counting += [
            torch.stack([of.counted[PLACE[name]] * of.usable for of in versions]) for name in targets.known_columns
        ]
        self._counting = torch.stack(counting).to(like.dtype)  # (1 + known columns, versions, query_len)
        mask, n_versions = targets.mask, len(versions)
        n_offsets = mask.query_len * (1 if mask.looks_back else 2) - (0 if mask.looks_back else 1)
        n_kinds = 0 if targets.repeats is None else len(targets.repeats.kinds)
        self._found = Collected(
            left=like.new_ones(n_versions, n_heads, mask.query_len),
            special_entropy=like.new_zeros(n_heads, mask.query_len),
            by_key=like.new_zeros(n_heads, len(counting), n_versions, mask.key_len),
            by_offset=like.new_zeros(n_heads, n_versions, n_offsets if targets.same_sequence else 0),
            repeated=like.new_zeros(n_heads, n_kinds, mask.query_len),
        )

    def begin_block(self, weights: Tensor, first: Tensor, block: Block, total: Tensor | None) -> Tensor:
        """Record what the rows of a block have left, once for each block and before `add`; tell the factors of rows.

        Rows are multiplied with these in the sums over rows that `add` is to be given.

        Shapes:  weights (n_heads, rows, cols), first (n_heads, rows), the first key's; total (n_heads, rows), what each
                 row sums to, None for 1 -> (n_heads, (1 + known columns) · versions, rows)
        """
        here = slice(*block.rows)
        left = self._found.left[:, :, here]  # (versions, n_heads, rows), all ones
        if total is not None:
            left[:] = total
        left[1:] -= first
        if self._targets.has_special:
            taken = weights[..., self._special_columns(block)]  # (n_heads, rows, special keys)
            left[2] -= taken.sum(-1)
            self._found.special_entropy[:, here] = (taken * taken.clamp(min=TINY).log()).sum(-1)
        factors = (left >= LEFT).to(left.dtype)
        factors[1:] /= left[1:].clamp(min=LEFT)
        return (factors.transpose(0, 1)[:, None] * self._counting[:, :, here]).flatten(1, 2)

    def add(self, weights: Tensor, scratch: Tensor, block: Block, factors: Tensor, sums: Tensor) -> None:
        """Collect a block; its weights are spoilt, and so is `scratch`.

        Shapes:  weights, scratch (n_heads, rows, cols); factors as given, sums of the weights with them (n_heads, n,
                 cols)
        """
        targets, by_key = self._targets, self._found.by_key
        stop = min(block.cols[1], targets.mask.key_len)  # beyond are padded keys, whose weights are 0
        here = sums[..., : stop - block.cols[0]]
        by_key[..., block.cols[0] : stop] += here.unflatten(1, by_key.shape[1:3])
        if targets.same_sequence:
            self._note_repeats(weights, scratch, block)
            if block.cols[0] == 0:
                weights[..., 0] = 0.0
            by_row = factors.unflatten(1, by_key.shape[1:3])[:, 0].clone()  # (n_heads, versions, rows)
            by_row[:, 0] /= self._found.left[0, :, slice(*block.rows)].clamp(min=LEFT)
            self._note_offsets(weights, by_row[:, :2], block, 0)  # "all" gets the first key after the pass
            if targets.has_special:
                weights[..., self._special_columns(block)] = 0.0
                self._note_offsets(weights, by_row[:, 2:], block, 2)

    def figures(self, entropy: Tensor, first: Tensor, near: Tensor) -> dict[str, Tensor]:
        """Sum up the layer, after its last block.

        Shapes:  those of `models.head_sums.layer_figures`
        """
        return layer_figures(self._targets, self._found, entropy, first, near)

    def _special_columns(self, block: Block) -> Tensor:
        columns = self._targets.columns["special"]
        return columns[(columns >= block.cols[0]) & (columns < block.cols[1])] - block.cols[0]

    def _note_repeats(self, weights: Tensor, scratch: Tensor, block: Block) -> None:
        assert self._targets.repeats is not None
        places = self._targets.repeats.places(block.rows, block.cols, len(weights))
        repeated = self._found.repeated[..., block.rows[0] : block.rows[1]]
        if places.marked is not None:
            for kind, marked in enumerate(places.marked):
                repeated[:, kind] = torch.mul(weights, marked, out=scratch).sum(-1)
        else:
            # A bag is what one row of one head has of one kind: gathering and summing in one go takes half the time of
            # index_select and index_add.
            sums = embedding_bag(places.flat, weights.view(-1, 1), places.starts, mode="sum")
            repeated[:] = sums.view(repeated.shape)

    def _note_offsets(self, weights: Tensor, factors: Tensor, block: Block, version: int) -> None:
        mask, n = self._targets.mask, self._targets.mask.query_len
        own = block.rows[0] - block.cols[0]
        offset, sums = sum_by_offset(weights, factors, own, looks_back=mask.looks_back)
        first = offset + n - 1
        held = self._found.by_offset[:, version : version + factors.shape[1], first : first + sums.shape[2]]
        held += sums[..., : held.shape[2]]  # beyond are padded keys, whose weights are 0
