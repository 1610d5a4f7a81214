"""What a Transformer is told wrongly, and what the error says: what was expected, what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from models.errors import ConfigError, ShapeError
from models.fused import fused_attention
from models.multi_head import Attend, MultiHeadAttention, explicit_attention
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
        ({"n_heads": 0}, "at least one head, got n_heads=0"),
        ({"d_model": 0}, "d_model must be at least 1, got 0"),
        ({"d_model": 6, "positions": "rotary"}, "even for rotary positions, got 3"),
        ({"d_model": 9, "n_heads": 3, "positions": "sinusoidal"}, "even for sinusoidal positions, got 9"),
        ({"positions": "relative"}, "positions must be one of .*'alibi'.*, got relative"),
        ({"kind": "both"}, "kind must be one of .*'encoder-decoder'.*, got both"),
        ({"norm": "rms"}, "norm must be one of .*, got rms"),
        ({"activation": "tanh"}, "activation must be one of .*, got tanh"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"initial_std": 0.0}, "initial_std must be above 0, got 0.0"),
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
        ("encoder", lambda m: m(IDS, TARGET), "this is a encoder; given: one"),
        ("encoder-decoder", lambda m: m(IDS), "this is a encoder-decoder; given: none"),
        ("decoder", lambda m: m.encode(IDS), "a decoder has no encoder"),
        ("encoder", lambda m: m.decode(IDS), "a encoder has no decoder"),
        ("decoder", lambda m: m.decode(IDS, torch.zeros(1, 3, 8)), "a memory .* is a decoder; given: one"),
        ("encoder-decoder", lambda m: m.decode(IDS), "a memory .* given: none"),
        ("decoder", lambda m: generate(m, IDS, start=TARGET, max_new_tokens=2), "start is for .* this is a decoder"),
        ("encoder-decoder", lambda m: generate(m, IDS, max_new_tokens=2), "start is for encoder–decoder"),
        ("encoder", lambda m: generate(m, IDS, max_new_tokens=2), "a encoder has no decoder"),
    ],
)
def test_the_wrong_kind(kind: str, run: Callable[[Transformer], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(build(kind=kind))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "encoder-decoder"])
@pytest.mark.parametrize("ids", [torch.tensor([1, 2]), torch.tensor([[[1, 2]]]), torch.tensor(1)])
def test_ids_of_another_number_of_axes(kind: str, ids: torch.Tensor) -> None:
    message = rf"token ids must be \(batch, seq_len\), got \({', '.join(map(str, ids.shape))}"
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
        with pytest.raises(ShapeError, match="learned positions for 6 tokens, got 7"):
            generate(build(), IDS, max_new_tokens=5)  # in the fifth step; nothing is cut silently
        assert generate(build(), IDS, max_new_tokens=4).shape == (1, 7)  # the last token is never read


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


@pytest.mark.parametrize("attend", [explicit_attention, fused_attention])
@pytest.mark.parametrize("is_token", [torch.ones(1, 4), torch.ones(3), torch.ones(2, 3)])
def test_padding_of_another_shape(attend: Attend, is_token: torch.Tensor) -> None:
    for kind, target in (("encoder", None), ("decoder", None), ("encoder-decoder", TARGET)):
        with pytest.raises(ShapeError, match=r"\((1, 4|3,|2, 3|1, 1, 1, 4|2, 1, 1, 3|2, 1, 3, 3)\)"):
            build(kind=kind)(IDS, target, is_token=is_token, attend=attend)
