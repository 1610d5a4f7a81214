"""How a Transformer knows the order of its tokens: five kinds of positions.

    none        nothing is added: permuting the input permutes the output
    sinusoidal  fixed waves, added once to the embeddings at the input            sinusoidal_positions
    learned     a table of vectors, added once to the embeddings at the input     LearnedPositions
    rotary      query and key turned by an angle that grows with the position     rotate
    alibi       scores lowered in proportion to the distance                      alibi_bias

The first three act at the input, the last two inside attention, on queries, keys and scores. This module knows nothing
of layers or of who asks.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from models.errors import ConfigError, ShapeError

Positions = Literal["none", "sinusoidal", "learned", "rotary", "alibi"]

BASE = 10_000.0  # wavelengths run from 2π to BASE · 2π, in the sinusoids and in the rotations alike


def sinusoidal_positions(first: int, length: int, d_model: int) -> Tensor:
    """Give each position a vector of sines and cosines of falling frequency.

    Shapes:  -> (length, d_model), float32; row i is position first + i
    Values:  [p, 2k] = sin(p / BASE^(2k / d_model)), [p, 2k + 1] = cos of the same
    Raises:  ConfigError if d_model is odd
    Source:  Vaswani et al. 2017, §3.5
    """
    angles = _angles(first, length, d_model)  # (length, d_model / 2)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2).float()  # sine and cosine take turns


class LearnedPositions(nn.Module):
    """One trained vector for each position, up to a limit.

    Source:  Gehring et al. 2017, §3.1; Radford et al. 2019 (GPT-2)
    """

    def __init__(self, max_tokens: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_tokens, d_model)

    def forward(self, first: int, length: int) -> Tensor:
        """Look up the vectors of the positions first … first + length − 1.

        Shapes:  -> (length, d_model)
        Raises:  ShapeError if a position is past the table: there is no vector for it
        """
        known = self.table.num_embeddings
        if first + length > known:
            raise ShapeError(f"this model has learned positions for {known} tokens, got {first + length}")
        vectors: Tensor = self.table(torch.arange(first, first + length, device=self.table.weight.device))
        return vectors


def rotate(x: Tensor, first: int = 0) -> Tensor:
    """Turn each pair of numbers of a query or key by an angle in proportion to its position.

    The product of a turned query and a turned key then depends on the distance between the two alone.

    Shapes:  x (…, seq_len, d_head) -> same; x[…, i, :] is at position first + i
    Values:  the pair (x[k], x[k + d_head / 2]) is turned by position / BASE^(2k / d_head)
    Raises:  ConfigError if d_head is odd
    Source:  Su et al. 2021, §3.4.2, with the halves as pairs (as in GPT-NeoX and Llama) rather than neighbours
    """
    seq_len, d_head = x.shape[-2:]
    angles = _angles(first, seq_len, d_head).to(device=x.device)  # (seq_len, d_head / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    left, right = x.chunk(2, -1)  # each (…, seq_len, d_head / 2)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def alibi_slopes(n_heads: int) -> Tensor:
    """Give each head its own strength of preferring near keys, in geometric steps.

    Shapes:  -> (n_heads), float32
    Values:  for n_heads a power of two 2^(−8 · (head + 1) / n_heads); else those of the next lower power of two, then
             every second one of the next higher
    Source:  Press et al. 2022, §3 and its appendix on other numbers of heads
    """
    lower = 1 << (n_heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * (head + 1) / lower) for head in range(lower)]
    slopes += [2.0 ** (-8 * (head + 1) / (2 * lower)) for head in range(0, 2 * (n_heads - lower), 2)]
    return torch.tensor(slopes)


def alibi_bias(slopes: Tensor, query_len: int, key_len: int) -> Tensor:
    """Lower each score by slope · distance; queries are the last positions of the keys.

    Shapes:  slopes (n_heads) -> (n_heads, query_len, key_len)
    Values:  −slope · |query − key|, which is the paper's −slope · (query − key) wherever a causal mask lets one look;
             where both sides are seen, a text and its reverse get the same biases, so an encoder cannot tell them apart
    Source:  Press et al. 2022, §3
    """
    query_pos = torch.arange(key_len - query_len, key_len, device=slopes.device)
    distance = (query_pos[:, None] - torch.arange(key_len, device=slopes.device)).abs()  # (query_len, key_len)
    return -slopes[:, None, None] * distance


def _angles(first: int, length: int, width: int) -> Tensor:
    # (length, width / 2), float64: position · frequency; float32 would lose digits of a position's angle as it grows
    if width % 2:
        raise ConfigError(f"sines and cosines come in pairs, so the width must be even, got {width}")
    frequencies = BASE ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.arange(first, first + length, dtype=torch.float64)[:, None] * frequencies
