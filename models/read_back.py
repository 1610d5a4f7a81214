"""Weights given back from what the pass kept: query, key, and of each row its largest score, its sum and its top key.

    weight = exp(score − row maximum) / row sum

Float32 products of another size than the pass's are some last digits away from its, which beside a score of 34 is 1e-5
of the weight. So the row maximum and the scores of weights that are not small are computed anew in float64: few in a
row, since all sum to 1. What is left is nearly all what the pass itself rounded.

A few weights of each layer take longer to ask for than to compute, so modules that differ in nothing but their numbers
are computed beside each other.

Knows modules, not where they are stored. Tensors are sliced before any arithmetic, so that of a stored one only that is
read which a window needs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.attention import SoftmaxParts, attention_scores, mask_scores, row_sum_about, softmax_parts
from models.masks import BiasLayout, MaskLayout, positions
from models.protocol import Rows, Span

SMALL = 1 / 32  # 1e-5 of a weight up to here is less than 4e-7

EXACT_AT_ONCE = 50_000  # pairs of a query and a key in memory together, 100 MB in float64 at 128 numbers a head
TOGETHER = 1_000_000  # numbers of modules that are computed beside each other, 4 MB in float32


@dataclass(frozen=True)
class KeptModule:
    """What is kept of one module.

    Shapes:  query (n_heads, query_len, d_head), key (n_kv_heads, key_len, d_head); row_max, row_sum, top_key (n_heads,
             query_len), top_key −1 for a row without keys; sink_logits (n_heads)
    """

    query: Tensor
    key: Tensor
    row_max: Tensor
    row_sum: Tensor
    top_key: Tensor
    scaling: float
    softcap: float | None
    mask: MaskLayout
    bias: BiasLayout | None
    sink_logits: Tensor | None

    @property
    def kind(self) -> Hashable:
        """The same for modules that differ in nothing but their numbers."""
        shapes = self.query.shape, self.key.shape, self.sink_logits is None
        return *shapes, self.scaling, self.softcap, id(self.mask), id(self.bias)


def read_weights(modules: Sequence[KeptModule], heads: Span, rows: Rows, cols: Rows) -> Tensor:
    """Give back the weights of neighbouring heads of some modules; rows and columns are each a span or a list.

    Shapes:  -> (modules, heads, rows, cols), in the dtype of the query
    Values:  0 where the mask hides the key
    """
    by_kind: dict[Hashable, list[int]] = {}
    for place, module in enumerate(modules):
        by_kind.setdefault(module.kind, []).append(place)
    places: list[int] = []
    parts: list[Tensor] = []
    for alike in by_kind.values():
        step = _how_many_together(modules[alike[0]], heads, rows, cols)
        for first in range(0, len(alike), step):
            some = alike[first : first + step]
            places += some
            parts.append(_read_together([modules[place] for place in some], heads, rows, cols))
    if len(parts) == 1:
        return parts[0]
    together = torch.cat(parts)
    return together if places == sorted(places) else together[torch.tensor(places).argsort()]


def _how_many_together(module: KeptModule, heads: Span, rows: Rows, cols: Rows) -> int:
    n_rows, n_cols = (span[1] - span[0] if isinstance(span, tuple) else len(span) for span in (rows, cols))
    numbers = (heads[1] - heads[0]) * (n_rows * n_cols + (n_rows + n_cols) * module.query.shape[-1])
    return max(1, TOGETHER // numbers)


def _read_together(modules: Sequence[KeptModule], heads: Span, rows: Rows, cols: Rows) -> Tensor:
    # modules of one kind -> (modules, heads, rows, cols)
    cut = _Cut(modules, heads, rows, cols)
    row_max = cut.exact_row_max()
    row_sum = row_sum_about(row_max, cut.row_max, cut.row_sum)  # of the whole row, not of some columns

    scores = mask_scores(cut.scores(), modules[0].mask.visible(rows, cols))
    dtype = scores.dtype
    weights = _weights(scores, row_max.to(dtype), row_sum.to(dtype))
    places = (weights > SMALL).nonzero()
    for start in range(0, len(places), EXACT_AT_ONCE):
        module, head, row, col = at = places[start : start + EXACT_AT_ONCE].unbind(-1)
        of_row = module, head, row
        key = cut.key[module, cut.kv_head[head], col]
        exact = cut.exact_scores(cut.query[of_row], key, cut.head_pos[head], cut.query_pos[row], cut.key_pos[col])
        weights[at] = _weights(exact[:, None], row_max[of_row], row_sum[of_row])[:, 0].to(dtype)
    return weights


def _weights(scores: Tensor, row_max: Tensor, row_sum: Tensor) -> Tensor:
    exponentials = softmax_parts(scores, row_max=row_max).exponentials
    return SoftmaxParts(exponentials, row_max, row_sum).weights()


def _beside(of_modules: list[Tensor]) -> Tensor:
    # (modules, …): a module alone is not copied
    return of_modules[0][None] if len(of_modules) == 1 else torch.stack(of_modules)


class _Cut:
    """What a window needs of modules of one kind, beside each other, and how its scores come of it.

    Shapes:  query (modules, heads, rows, d_head), key (modules, kv_heads, cols, d_head); row_max, row_sum, top_key
             (modules, heads, rows); kv_head (heads): which of the cut's key heads each head reads; head_pos, query_pos,
             key_pos: heads, rows and columns as the modules count them
    """

    def __init__(self, modules: Sequence[KeptModule], heads: Span, rows: Rows, cols: Rows) -> None:
        self.modules, self.heads, self.rows, self.cols = modules, heads, rows, cols
        self.how = modules[0]
        self.group = len(self.how.query) // len(self.how.key)
        first = heads[0] // self.group
        self.head_pos, self.query_pos, self.key_pos = torch.arange(*heads), positions(rows), positions(cols)
        self.kv_head = self.head_pos // self.group - first
        # a list becomes a tensor once, not for each module
        rows_at = slice(*rows) if isinstance(rows, tuple) else self.query_pos
        cols_at = slice(*cols) if isinstance(cols, tuple) else self.key_pos
        here, kv_heads = (slice(*heads), rows_at), slice(first, (heads[1] - 1) // self.group + 1)
        self.query = _beside([module.query[here] for module in modules])
        self.key = _beside([module.key[kv_heads, cols_at] for module in modules])
        self.row_max = _beside([module.row_max[here] for module in modules])
        self.row_sum = _beside([module.row_sum[here] for module in modules])
        self.top_key = _beside([module.top_key[here] for module in modules])

    def scores(self) -> Tensor:
        """All scores of the window, in the dtype of the query.

        Shapes:  -> (modules, heads, rows, cols)
        """
        how, key, bias = self.how, self.key, None
        if any(end % self.group for end in self.heads):  # part of a group: its key once for each query head
            key = key[:, self.kv_head]
        if how.bias is not None:
            bias = how.bias.block(self.rows, self.cols)
            bias = bias[slice(*self.heads)] if len(bias) > 1 else bias
        return attention_scores(self.query, key, how.scaling, softcap=how.softcap, position_bias=bias)

    def exact_row_max(self) -> Tensor:
        """The score of each row's top key, or the sink where that is more; 0 without keys.

        Shapes:  -> (modules, heads, rows), float64
        """
        top_key, kv_head = self.top_key.clamp(min=0), self.head_pos[:, None] // self.group
        key = _beside([module.key[kv_head, top] for module, top in zip(self.modules, top_key, strict=True)])
        row_max = self.exact_scores(self.query, key, self.head_pos[:, None], self.query_pos, top_key)
        sinks = [module.sink_logits[self.head_pos] for module in self.modules if module.sink_logits is not None]
        if sinks:
            row_max = torch.maximum(row_max, _beside(sinks)[..., None])
        return row_max.masked_fill(self.top_key < 0, 0.0)

    def exact_scores(self, query: Tensor, key: Tensor, head: Tensor, query_pos: Tensor, key_pos: Tensor) -> Tensor:
        """Scores of queries, each beside its one key.

        Shapes:  query and key (…, d_head); head, query_pos, key_pos broadcastable to (…): where they stand -> (…)
        Values:  float64
        """
        how = self.how
        bias = None if how.bias is None else how.bias.at(head, query_pos, key_pos).reshape(-1, 1, 1)
        queries, keys = (vectors.reshape(-1, 1, vectors.shape[-1]).double() for vectors in (query, key))
        # (n, 1, d_head): to `attention_scores` each is a head of its own
        scores = attention_scores(queries, keys, how.scaling, softcap=how.softcap, position_bias=bias)
        return scores.view(query.shape[:-1])
