"""Heads for tests, made of queries and keys: the real capture is built from them, so only the model is a fake.

Heads are peaked in five ways (previous token, itself, first token, look-alikes, spread out; in cross-attention: along
the diagonal, last token, first token, look-alikes, spread out). The weights are random, so nothing here says anything
about a real model.
"""

from __future__ import annotations

import torch
from torch import Tensor

from models.blockwise import AttentionInputs
from models.masks import MaskLayout
from models.projections import output_norms

CONTENT, TURNS, WIDTH = 8, 12, 8 + 2 * 12 + 1  # what a token is, where it is (cosines and sines), whether it is first
PEAK = 12.0  # score of the aim; of another position about 2.4 times a normal deviate
KINDS = 5
VOCABULARY = 50_400
_SPEEDS = torch.rand(TURNS, generator=torch.Generator().manual_seed(3)) * 3.1  # radians a position: none repeats


def kind_of(layer: int, head: int, n_heads: int) -> int:
    """Which of the five ways a head is peaked in."""
    return (layer * n_heads + head) % KINDS


def fake_inputs(
    site: str, layer: int, n_heads: int, ids: tuple[list[int], list[int]], *, number: int, mask: MaskLayout
) -> AttentionInputs:
    """One attention module over token ids, (queries, keys); `number` is the module's own.

    Shapes:  query (n_heads, query_len, WIDTH), key (n_kv_heads, key_len, WIDTH), value (n_kv_heads, key_len, CONTENT)
    """
    cross, n_kv_heads = site.endswith("cross"), max(1, n_heads // 3)
    n_kv_heads = n_kv_heads if n_heads % n_kv_heads == 0 else n_heads
    table = torch.randn(VOCABULARY, CONTENT, generator=torch.Generator().manual_seed(7))
    generator = torch.Generator().manual_seed(number)
    turn = torch.randn(n_heads + 2 * n_kv_heads, CONTENT, CONTENT, generator=generator) / 3
    of_query, of_key, of_value = turn.split([n_heads, n_kv_heads, n_kv_heads])
    query_ids, key_ids = ids
    content = 2.0 * table[query_ids] @ of_query  # (n_heads, query_len, CONTENT)
    place = torch.arange(len(query_ids), dtype=torch.float32)
    along = (place * len(key_ids) / max(1, len(query_ids))).floor()
    last = torch.full_like(place, len(key_ids) - 1)
    queries = []
    for head in range(n_heads):
        kind = kind_of(layer, head, n_heads)
        strength = {3: 1.0, 4: 0.1}.get(kind, 0.3)
        aim = {0: along if cross else place - 1, 1: last if cross else place}.get(kind)
        turns = torch.zeros(len(query_ids), 2 * TURNS) if aim is None else _turns(aim) * PEAK / TURNS
        first = torch.full((len(query_ids), 1), PEAK if kind == 2 else 0.0)
        queries.append(torch.cat([content[head] * strength, turns, first], -1))
    key_place = torch.arange(len(key_ids), dtype=torch.float32)
    where = torch.cat([_turns(key_place), (key_place == 0).float()[:, None]], -1)
    key = torch.cat([table[key_ids] @ of_key, where.expand(n_kv_heads, -1, -1)], -1)
    return AttentionInputs(torch.stack(queries), key, table[key_ids] @ of_value, 1.0, mask, same_sequence=not cross)


def fake_norms(inputs: AttentionInputs) -> Tensor:
    """What an output projection of random weights would make of the values.

    Shapes:  -> (n_heads, key_len)
    """
    n_heads = inputs.query.shape[0]
    projection = torch.randn(n_heads * CONTENT, 16, generator=torch.Generator().manual_seed(1))
    return output_norms(inputs.value, projection, n_heads)


def _turns(position: Tensor) -> Tensor:
    # (length,) -> (length, 2 · TURNS): the product of two such rows is largest, TURNS, where the positions are equal
    angles = position[:, None] * _SPEEDS
    return torch.cat([angles.cos(), angles.sin()], -1)
