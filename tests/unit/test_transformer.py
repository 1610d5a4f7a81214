"""What a Transformer is told wrongly, and what the error says: what was expected, what was given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from models.errors import Cancelled, ConfigError, ShapeError
from models.fused import fused_attention
from models.multi_head import Attend, KeyValueCache, MultiHeadAttention, explicit_attention
from models.transformer import Transformer, generate
from models.transformer_config import TransformerConfig

SMALL: dict[str, Any] = {
    "kind": "decoder",
    "vocab_size": 11,
    "d_model": 8,
    "n_heads": 2,
    "n_layers": 1,
    "d_ff": 8,
    "max_tokens": 6,
}
IDS, TARGET = torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]])


def build(**changes: Any) -> Transformer:
    return Transformer(TransformerConfig(**(SMALL | changes))).eval()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_heads": 3}, "d_model=8, n_heads=3"),
        ({"n_heads": 4, "n_kv_heads": 3}, "n_heads=4, n_kv_heads=3"),
        ({"d_model": "8"}, "d_model must be an integer, got '8'"),
        ({"n_heads": True}, "n_heads must be an integer, got True"),
        ({"n_layers": 1.0}, "n_layers must be an integer, got 1.0"),
        ({"n_kv_heads": "2"}, "n_kv_heads must be an integer or None, got '2'"),
        ({"n_kv_heads": 0}, "at least one head, got n_heads=2, n_kv_heads=0"),
        ({"dropout": "0.1"}, "dropout must be a number, got '0.1'"),
        ({"tied": "no"}, "tied must be True or False, got 'no'"),
        ({"norm_eps": math.nan}, "norm_eps must be at least 0 and finite, got nan"),
        ({"initial_std": math.inf}, "initial_std must be above 0 and finite, got inf"),
        ({"n_heads": 0}, "at least one head, got n_heads=0"),
        ({"d_model": 0}, "d_model must be at least 1, got 0"),
        ({"d_model": 6, "positions": "rotary"}, "even for rotary positions, got 3"),
        ({"d_model": 9, "n_heads": 3, "positions": "sinusoidal"}, "even for sinusoidal positions, got 9"),
        ({"positions": "relative"}, "positions must be one of .*'alibi'.*, got 'relative'"),
        ({"kind": "both"}, "kind must be one of .*'encoder-decoder'.*, got 'both'"),
        ({"norm": "rms"}, "norm must be one of .*, got 'rms'"),
        ({"activation": "tanh"}, "activation must be one of .*, got 'tanh'"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"initial_std": 0.0}, "initial_std must be above 0 and finite, got 0.0"),
        ({"dropout": 1.0}, "dropout must be from 0 to below 1, got 1.0"),
        ({"attention_dropout": -0.1}, "attention_dropout must be .*, got -0.1"),
    ],
)
def test_shapes_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TransformerConfig(**(SMALL | changes))


def test_the_spread_of_fresh_weights() -> None:
    torch.manual_seed(0)
    wide, narrow = (build(d_model=64, d_ff=64, n_layers=2, initial_std=std).decoder for std in (0.3, 0.02))
    for stack, std in ((wide, 0.3), (narrow, 0.02)):
        assert stack is not None
        attention = stack.layers[0].get_submodule("self_attention")
        query, output = (
            attention.get_parameter(f"{name}.weight").detach().std().item() for name in ("query", "output")
        )
        # 4,096 numbers: their spread is known to 1.1 % (one in √(2 · 4,096)), five of these are allowed
        assert query == pytest.approx(std, rel=0.055)
        assert output == pytest.approx(std / 2, rel=0.055), "two layers add to the residual stream twice each"


def test_a_configuration_from_json() -> None:
    config = TransformerConfig(**SMALL)
    assert TransformerConfig.from_dict(config.as_dict()) == config
    with pytest.raises(ConfigError, match=r"unknown fields .*: d_modle, layers"):
        TransformerConfig.from_dict({**SMALL, "layers": 3, "d_modle": 8})
    with pytest.raises(ConfigError, match=r"not complete: .*d_ff"):
        TransformerConfig.from_dict({name: value for name, value in SMALL.items() if name != "d_ff"})


@pytest.mark.parametrize(
    ("kind", "run", "message"),
    [
        ("decoder", lambda m: m(IDS, TARGET), "a target is for encoder–decoder models, this is a decoder; given: one"),
        ("encoder", lambda m: m(IDS, TARGET), "this is an encoder; given: one"),
        ("encoder-decoder", lambda m: m(IDS), "this is an encoder-decoder; given: none"),
        ("decoder", lambda m: m.encode(IDS), "a decoder has no encoder"),
        ("encoder", lambda m: m.decode(IDS), "^an encoder has no decoder"),
        ("decoder", lambda m: m.decode(IDS, torch.zeros(1, 3, 8)), "a memory .* is a decoder; given: one"),
        ("encoder-decoder", lambda m: m.decode(IDS), "a memory .* given: none"),
        ("decoder", lambda m: generate(m, IDS, start=TARGET, max_new_tokens=2), "start is for .* this is a decoder"),
        ("encoder-decoder", lambda m: generate(m, IDS, max_new_tokens=2), "start .* this is an encoder-decoder"),
        ("encoder", lambda m: generate(m, IDS, max_new_tokens=2), "^an encoder has no decoder"),
    ],
)
def test_the_wrong_kind(kind: str, run: Callable[[Transformer], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(build(kind=kind))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "encoder-decoder"])
@pytest.mark.parametrize("ids", [torch.tensor([1, 2]), torch.tensor([[[1, 2]]]), torch.tensor(1)])
def test_ids_of_another_number_of_axes(kind: str, ids: torch.Tensor) -> None:
    message = rf"token ids must be \(batch, seq_len\), at least one, got \({', '.join(map(str, ids.shape))}"
    target = IDS if kind == "encoder-decoder" else None
    with pytest.raises(ShapeError, match=message):
        build(kind=kind)(ids, target)
    if target is not None:
        with pytest.raises(ShapeError, match=message):
            build(kind=kind)(target, ids)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "encoder-decoder"])
def test_a_text_past_the_learned_positions(kind: str) -> None:
    long, target = torch.ones(1, 7, dtype=torch.int64), IDS if kind == "encoder-decoder" else None
    with pytest.raises(ShapeError, match="learned positions for 6 tokens, got 7"):
        build(kind=kind)(long, target)
    if kind == "encoder-decoder":
        with pytest.raises(ShapeError, match="learned positions for 6 tokens, got 7"):
            build(kind=kind)(IDS, long)
    if kind == "decoder":
        assert generate(build(), IDS, max_new_tokens=4).shape == (1, 7)  # the last token is never read


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "alibi", "none"])
def test_writing_more_than_the_longest_text(positions: str) -> None:
    """It is said before the first token is written; positions that have no end would go on without a word."""
    read: list[int] = []
    model = build(positions=positions, d_model=8)
    model.output.register_forward_hook(lambda *_: read.append(1))
    with pytest.raises(ShapeError, match="at most 6 tokens and one that is not read, got 3 and 5 new ones"):
        generate(model, IDS, max_new_tokens=5)
    assert read == []
    assert generate(model, IDS, max_new_tokens=4).shape == (1, 7)
    both = build(kind="encoder-decoder", positions=positions)
    with pytest.raises(ShapeError, match="got 2 and 6 new ones"):
        generate(both, IDS, start=TARGET, max_new_tokens=6)


@pytest.mark.parametrize("attend", [explicit_attention, fused_attention])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3), (2, 1, 3, 3), (5, 3, 3), (1, 1, 1, 3, 3)])
def test_a_mask_of_the_wrong_shape(attend: Attend, shape: tuple[int, ...]) -> None:
    """Also one that is larger than the scores: broadcasting would make more of them."""
    mask = torch.ones(shape, dtype=torch.bool)
    with pytest.raises(ShapeError, match=r"mask of shape \(.*\) does not fit scores of shape \(1, 2, 3, 3\)"):
        MultiHeadAttention(8, 2)(torch.randn(1, 3, 8), attn_mask=mask, attend=attend)


@pytest.mark.parametrize("attend", [explicit_attention, fused_attention])
def test_a_mask_of_another_polarity(attend: Attend) -> None:
    with pytest.raises(ShapeError, match=r"boolean with True = may attend, got torch\.float32"):
        MultiHeadAttention(8, 2)(torch.randn(1, 3, 8), attn_mask=torch.zeros(3, 3), attend=attend)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "encoder-decoder"])
@pytest.mark.parametrize(
    "is_token",
    [
        torch.ones(1, 4).bool(),
        torch.ones(3).bool(),
        torch.ones(2, 3).bool(),
        torch.ones(1, 1).bool(),  # one for all tokens
        torch.zeros(1, 3),  # numbers to add to scores: 0 is a token there
        torch.ones(1, 3).int(),
    ],
)
def test_padding_of_another_shape_or_type(kind: str, is_token: torch.Tensor) -> None:
    target = TARGET if kind == "encoder-decoder" else None
    message = r"^is_token must be boolean, True for tokens, of shape \(1, 3\), got torch\.\w+ of shape \("
    with pytest.raises(ShapeError, match=message):
        build(kind=kind)(IDS, target, is_token=is_token)


def test_padding_of_a_memory() -> None:
    model, memory = build(kind="encoder-decoder"), torch.zeros(1, 3, 8)
    for wrong in (torch.ones(1, 1).bool(), torch.ones(2, 3).bool(), torch.ones(1, 3)):
        with pytest.raises(ShapeError, match=r"^memory_is_token must be boolean, .* of shape \(1, 3\), got"):
            model.decode(TARGET, memory, memory_is_token=wrong)
    with pytest.raises(ShapeError, match=r"^memory_is_token must be .* \(1, 0\), got"):
        build().decode(IDS, memory_is_token=torch.ones(1, 3).bool())  # there is no memory at all


@pytest.mark.parametrize("shape", [(1, 3, 8), (3, 8), (2, 0, 8), (2, 3, 4), (1, 2, 3, 8)])
def test_a_memory_of_another_shape(shape: tuple[int, ...]) -> None:
    """A memory of one text would be spread over two; one without positions would give 0."""
    message = r"must be \(2, seq_len, 8\), none of them 0, got \("
    with pytest.raises(ShapeError, match=f"^memory {message}"):
        build(kind="encoder-decoder").decode(TARGET.repeat(2, 1), torch.zeros(shape))
    with pytest.raises(ShapeError, match=f"^source {message}"):
        MultiHeadAttention(8, 2)(torch.zeros(2, 3, 8), torch.zeros(shape))


@pytest.mark.parametrize("shape", [(3, 8), (0, 3, 8), (1, 0, 8), (1, 3, 4)])
def test_vectors_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"^x must be \(batch, seq_len, 8\), none of them 0, got \("):
        MultiHeadAttention(8, 2)(torch.zeros(shape))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none"])
def test_positions_that_attention_does_not_have(positions: str) -> None:
    with pytest.raises(ConfigError, match=f"must be None, 'rotary' or 'alibi', got '{positions}'"):
        MultiHeadAttention(8, 2, positions=positions)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([[1.0, 2.0]]), r"^token ids must be int32 or int64, got torch\.float32"),
        (torch.tensor([[True]]), r"^token ids must be int32 or int64, got torch\.bool"),
        (torch.tensor([[1, 11]]), "^token ids must be from 0 to 10, got 11"),
        (torch.tensor([[-1, 3]]), "^token ids must be from 0 to 10, got -1"),
        (torch.ones(0, 3).long(), r"^token ids must be \(batch, seq_len\), at least one, got \(0, 3\)"),
        (torch.ones(1, 0).long(), r"^token ids must be \(batch, seq_len\), at least one, got \(1, 0\)"),
    ],
)
def test_ids_that_are_no_tokens(kind: str, ids: torch.Tensor, message: str) -> None:
    with pytest.raises((ShapeError, ConfigError), match=message):
        build(kind=kind)(ids)


# --------------------------------------------------------------------------------------------------------------- caches


@torch.no_grad()
def test_a_cache_with_another_memory() -> None:
    """It would answer with the keys and values of the first."""
    model, cache, memory = build(kind="encoder-decoder"), KeyValueCache(), torch.randn(1, 3, 8)
    model.decode(TARGET, memory, cache=cache)
    model.decode(TARGET, memory.clone(), cache=cache)  # the same numbers are the same memory
    for other in (memory + 1, torch.randn(1, 4, 8)):
        used = KeyValueCache()
        model.decode(TARGET, memory, cache=used)
        with pytest.raises(ConfigError, match="keys and values of another memory: take a new one"):
            model.decode(TARGET, other, cache=used)


@torch.no_grad()
def test_a_cache_that_was_left_in_the_middle_of_a_step() -> None:
    model, cache = build(n_layers=2), KeyValueCache()
    model.decode(IDS, cache=cache)

    def interrupted(*_: object) -> tuple[torch.Tensor, None]:
        raise Cancelled("stop")

    with pytest.raises(Cancelled):
        model.decode(TARGET, cache=cache, attend=interrupted)
    with pytest.raises(ConfigError, match=r"left in the middle of a step.*: take a new one"):
        model.decode(TARGET, cache=cache)
    other = KeyValueCache()
    model.decode(IDS, cache=other)
    with pytest.raises(ConfigError, match="from 0 to 10"):
        model.decode(TARGET + 20, cache=other)  # refused before the step began
    assert model.decode(TARGET, cache=other).shape == (1, 2, 8)
