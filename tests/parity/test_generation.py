"""Writing with a key/value cache gives what writing without one gives: tokens, and the weights of every step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from models.multi_head import KeyValueCache
from models.transformer import Transformer, generate
from models.transformer_config import Kind
from tests.parity.own import POSITIONS, explicit_weights, largest, noting, random_ids, small_model

# The same sums over fewer rows at once: rounding of three layers. Seen: 4e-6 and 6e-15.
BOUNDS = {torch.float32: 1e-5, torch.float64: 1e-12}
NEW = 12
START = torch.tensor([[7]])

every_model = pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
every_position = pytest.mark.parametrize("positions", POSITIONS)


def writer(kind: Kind, dtype: torch.dtype = torch.float64, **changes: Any) -> Transformer:
    """A model that does not fall into writing one token for ever: nothing in it favours a token."""
    model = small_model(kind, dtype, tied=False, bias=False, **changes)
    for name, parameter in model.named_parameters():
        if name.endswith(("tokens.weight", "outer.weight", "value.weight")):
            parameter.detach().mul_(4.0)  # so that what is read says more about what is written
    return model


def written(model: Transformer, **options: Any) -> torch.Tensor:
    start = START if model.config.kind == "encoder-decoder" else None
    return generate(model, random_ids(11), start=start, max_new_tokens=NEW, **options)


@pytest.mark.parametrize(("dtype", "n_kv_heads"), [(torch.float32, 2), (torch.float64, 4), (torch.float64, 1)])
@every_position
@every_model
def test_with_and_without_a_cache(kind: Kind, positions: str, n_kv_heads: int, dtype: torch.dtype) -> None:
    model = writer(kind, dtype, positions=positions, n_kv_heads=n_kv_heads)
    cached, plain = {}, {}  # type: ignore[var-annotated]
    with_cache = written(model, use_cache=True, attend=noting(model, cached))
    without = written(model, use_cache=False, attend=noting(model, plain))
    assert with_cache.tolist() == without.tolist()
    assert with_cache.shape == (1, (1 if kind == "encoder-decoder" else 11) + NEW)
    for place, weights in cached.items():
        if place[0] != "encoder.self":
            assert weights.shape[-2] == 1  # a step computes one position
            assert largest(weights, plain[place][..., -1:, :]) <= BOUNDS[dtype], place


@torch.no_grad()
@every_position
@every_model
def test_a_cache_takes_several_tokens_at_once(kind: Kind, positions: str) -> None:
    """In pieces of 1, 4 and 6 tokens, every row of weights and every hidden state is that of the whole text."""
    model = small_model(kind, positions=positions)
    source = random_ids(11)
    text = random_ids(11, 5) if kind == "encoder-decoder" else source
    memory = model.encode(source) if kind == "encoder-decoder" else None
    whole = model.decode(text, memory)
    expected = explicit_weights(model, source, text if memory is not None else None)
    cache, done = KeyValueCache(), 0
    for piece in text.split([1, 4, 6], 1):
        noted: dict[tuple[str, int], torch.Tensor] = {}
        hidden = model.decode(piece, memory, cache=cache, attend=noting(model, noted))
        rows = slice(done, done + piece.shape[1])
        assert largest(hidden, whole[:, rows]) <= BOUNDS[torch.float64]
        for (site, layer), weights in noted.items():
            keys = slice(None) if site == "decoder.cross" else slice(0, rows.stop)
            assert largest(weights, expected[site, layer][..., rows, keys]) <= BOUNDS[torch.float64]
        done = rows.stop
    assert cache.positions == 11


def test_it_stops_at_the_stop_token() -> None:
    model = writer("decoder")
    free = written(model)[0, 11:].tolist()
    stop = free[6]
    stopped = written(model, stop_id=stop)[0, 11:].tolist()
    assert stopped == free[: free.index(stop) + 1]


def test_a_cache_with_a_wrong_position_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that such a cache most often has: every new token at position 0."""
    model = writer("decoder", positions="rotary")
    right = written(model)
    assert len(set(right[0, 11:].tolist())) > 5  # one token for ever would hide much
    monkeypatch.setattr(KeyValueCache, "length", lambda _self, _module: 0)
    assert written(model).tolist() != right.tolist()
    assert written(model, use_cache=False).tolist() == right.tolist()
