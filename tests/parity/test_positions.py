"""Each kind of positions against transformers' own, called as it is."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from models.positions import alibi_bias, alibi_slopes, rotate, sinusoidal_positions
from tests.parity.own import largest

FAR = 500  # theirs takes angles in float32: at position p they are off by up to p · 6e-8, so sines by 3e-5
FLOAT32_ANGLES = 6e-5


@pytest.mark.parametrize("d_model", [2, 48, 64])
def test_sinusoids_are_those_of_marian_with_the_halves_interleaved(d_model: int) -> None:
    theirs = MarianSinusoidalPositionalEmbedding(FAR, d_model).create_weight()  # all sines, then all cosines
    ours = sinusoidal_positions(0, FAR, d_model)
    assert largest(ours[:, 0::2], theirs[:, : d_model // 2]) <= 1e-6  # both from float64 angles, kept in float32
    assert largest(ours[:, 1::2], theirs[:, d_model // 2 :]) <= 1e-6
    assert torch.equal(sinusoidal_positions(7, 20, d_model), ours[7:27])


@pytest.mark.parametrize("d_head", [2, 12, 64])
@pytest.mark.parametrize("first", [0, 450])
def test_rotations_are_those_of_llama(d_head: int, first: int) -> None:
    shape = LlamaConfig(hidden_size=4 * d_head, num_attention_heads=4, max_position_embeddings=FAR)
    query, key = torch.randn(1, 4, 50, d_head), torch.randn(1, 2, 50, d_head)
    cos, sin = LlamaRotaryEmbedding(shape)(query, torch.arange(first, first + 50)[None])
    their_query, their_key = apply_rotary_pos_emb(query, key, cos, sin)
    bound = FLOAT32_ANGLES * float(query.abs().max()) * 2 if first else 1e-5
    assert largest(rotate(query, first), their_query) <= bound
    assert largest(rotate(key, first), their_key) <= bound


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 6, 8, 12, 16, 20])
def test_alibi_is_that_of_bloom(n_heads: int) -> None:
    theirs = build_alibi_tensor(torch.ones(1, 30), n_heads, torch.float32)  # (n_heads, 1, key_len): slope · key
    slopes = alibi_slopes(n_heads)
    assert largest(slopes, theirs[:, 0, 1]) <= 1e-7  # float32
    ours = alibi_bias(slopes, 30, 30)
    # Theirs leaves out what is the same for a whole row, slope · query, and relies on a causal mask.
    whole_rows = slopes[:, None, None] * torch.arange(30)[:, None]
    assert largest((ours + whole_rows).tril(), theirs.expand(-1, 30, -1).tril()) <= 1e-5


@pytest.mark.parametrize("move", [1, 17, 3_000])
def test_rotary_scores_depend_on_the_distance_alone(move: int) -> None:
    query, key = (torch.randn(4, 20, 12, dtype=torch.float64) for _ in range(2))
    here = rotate(query) @ rotate(key).transpose(-1, -2)
    there = rotate(query, move) @ rotate(key, move).transpose(-1, -2)
    assert largest(here, there) <= 1e-10  # float64: an angle of 3,000 leaves 12 digits
    assert largest(here, rotate(query, move) @ rotate(key).transpose(-1, -2)) > 0.1  # another distance, other scores
    assert largest(rotate(query, move).norm(dim=-1), query.norm(dim=-1)) <= 1e-12  # turning keeps lengths
