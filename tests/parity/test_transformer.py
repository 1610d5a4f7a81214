"""Our layers and stacks against torch's with the same weights; fused against explicit; what positions change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from models.attention import causal_mask, combine_masks, padding_mask
from models.fused import fused_attention
from models.layers import Stack, TransformerLayer
from models.multi_head import MultiHeadAttention, explicit_attention
from models.positions import alibi_bias, alibi_slopes
from models.transformer_config import Kind
from tests.parity.own import KINDS, POSITIONS, copy_layer, copy_stack, largest, random_ids, scrambled
from tests.parity.own import small_config as config
from tests.parity.own import small_model as model

# The same formula in another order, three layers deep. Seen: 1.2e-6 and 2.3e-15; room for other machines.
BOUNDS = {torch.float32: 1e-5, torch.float64: 1e-10}
BATCH, LENGTH, SOURCE = 2, 9, 13
IS_TOKEN = torch.tensor([[True] * SOURCE, [True] * 8 + [False] * 5])

every_norm = pytest.mark.parametrize("norm", ["pre", "post"])
every_activation = pytest.mark.parametrize("activation", ["gelu", "relu"])
every_dtype = pytest.mark.parametrize("dtype", list(BOUNDS))


def torch_options(norm: str, activation: str, dtype: torch.dtype, **others: Any) -> dict[str, Any]:
    return {
        "d_model": 48,
        "nhead": 4,
        "dim_feedforward": 64,
        "dropout": 0.0,
        "activation": activation,
        "batch_first": True,
        "norm_first": norm == "pre",
        "dtype": dtype,
        **others,
    }


def hides(mask: Tensor, dtype: torch.dtype, *, additive: bool) -> Tensor:
    """A mask of ours in torch's two forms: True = may NOT attend, or −inf added to the score."""
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, float("-inf")) if additive else ~mask


@torch.no_grad()
@every_norm
@every_activation
@every_dtype
@pytest.mark.parametrize("masked", ["no", "padding", "causal", "both"])
@pytest.mark.parametrize("bias", [True, False])
def test_an_encoder_layer_is_torchs(norm: str, activation: str, dtype: torch.dtype, masked: str, bias: bool) -> None:
    theirs = scrambled(nn.TransformerEncoderLayer(**torch_options(norm, activation, dtype, bias=bias)))
    ours = TransformerLayer(config("encoder", norm=norm, activation=activation, bias=bias)).to(dtype).eval()
    copy_layer(ours, theirs)
    x = torch.randn(BATCH, SOURCE, 48, dtype=dtype)
    causal = causal_mask(SOURCE) if masked in ("causal", "both") else None
    padding = IS_TOKEN if masked in ("padding", "both") else None
    mask = combine_masks(causal, None if padding is None else padding_mask(padding))
    for additive in (False, True):
        expected = theirs(
            x,
            src_mask=None if causal is None else hides(causal, dtype, additive=additive),
            src_key_padding_mask=None if padding is None else hides(padding, dtype, additive=additive),
        )
        # torch's fast path leaves the rows of padding out; nobody reads them
        assert largest(ours(x, mask)[IS_TOKEN], expected[IS_TOKEN]) <= BOUNDS[dtype]


@torch.no_grad()
@every_norm
@every_activation
@every_dtype
@pytest.mark.parametrize("additive", [False, True])
def test_a_decoder_layer_is_torchs(norm: str, activation: str, dtype: torch.dtype, additive: bool) -> None:
    theirs = scrambled(nn.TransformerDecoderLayer(**torch_options(norm, activation, dtype)))
    ours = TransformerLayer(config("encoder-decoder", norm=norm, activation=activation), cross=True).to(dtype).eval()
    copy_layer(ours, theirs)
    x = torch.randn(BATCH, LENGTH, 48, dtype=dtype)
    memory = torch.randn(BATCH, SOURCE, 48, dtype=dtype)
    expected = theirs(
        x,
        memory,
        tgt_mask=hides(causal_mask(LENGTH), dtype, additive=additive),
        memory_key_padding_mask=hides(IS_TOKEN, dtype, additive=additive),
    )
    assert largest(ours(x, causal_mask(LENGTH), memory, padding_mask(IS_TOKEN)), expected) <= BOUNDS[dtype]


def torch_stack(name: str, norm: str, dtype: torch.dtype) -> nn.Module:
    layer = getattr(nn, f"Transformer{name}Layer")(**torch_options(norm, "gelu", dtype))
    final = nn.LayerNorm(48, dtype=dtype) if norm == "pre" else None
    options: dict[str, Any] = {"enable_nested_tensor": False} if name == "Encoder" else {}
    return scrambled(getattr(nn, f"Transformer{name}")(layer, 3, final, **options))  # each layer gets its own biases


@torch.no_grad()
@every_norm
@every_dtype
def test_stacks_are_torchs(norm: str, dtype: torch.dtype) -> None:
    encoder, decoder = torch_stack("Encoder", norm, dtype), torch_stack("Decoder", norm, dtype)
    shape = config("encoder-decoder", norm=norm)
    our_encoder, our_decoder = (Stack(shape, cross=cross).to(dtype).eval() for cross in (False, True))
    copy_stack(our_encoder, encoder)
    copy_stack(our_decoder, decoder)
    source = torch.randn(BATCH, SOURCE, 48, dtype=dtype)
    x = torch.randn(BATCH, LENGTH, 48, dtype=dtype)
    memory = our_encoder(source, padding_mask(IS_TOKEN))
    expected = encoder(source, src_key_padding_mask=~IS_TOKEN)
    assert largest(memory[IS_TOKEN], expected[IS_TOKEN]) <= BOUNDS[dtype]
    ours = our_decoder(x, causal_mask(LENGTH), memory, padding_mask(IS_TOKEN))
    theirs = decoder(x, expected, tgt_mask=~causal_mask(LENGTH), memory_key_padding_mask=~IS_TOKEN)
    assert largest(ours, theirs) <= BOUNDS[dtype]


@torch.no_grad()
def test_a_norm_in_the_other_place_is_seen() -> None:
    theirs = scrambled(nn.TransformerEncoderLayer(**torch_options("pre", "gelu", torch.float64)))
    ours = TransformerLayer(config("encoder", norm="post")).double().eval()
    copy_layer(ours, theirs)
    x = torch.randn(BATCH, SOURCE, 48, dtype=torch.float64)
    assert largest(ours(x), theirs(x)) > 0.1


# --------------------------------------------------------------------------------------------------- fused and explicit

NO_KEYS = causal_mask(9).clone()
NO_KEYS[4] = False  # a row that may look at nothing
TWO_TEXTS = torch.tensor([[True] * 9, [False] * 3 + [True] * 6])  # padding on the left: rows without keys
MASKS = {
    "none": None,
    "causal": causal_mask(9),
    "padding": padding_mask(TWO_TEXTS),
    "both": combine_masks(causal_mask(9), padding_mask(TWO_TEXTS)),
    "a row without keys": NO_KEYS,
}


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("masked", MASKS)
def test_fused_attention_is_the_explicit_one(masked: str, biased: bool, n_kv_heads: int) -> None:
    module = MultiHeadAttention(24, 4, n_kv_heads=n_kv_heads).double()
    bias = alibi_bias(alibi_slopes(4).double(), 9, 9) if biased else None
    inputs = [torch.randn(2, heads, 9, 6, dtype=torch.float64) for heads in (4, n_kv_heads, n_kv_heads)]
    aim = torch.randn(2, 4, 9, 6, dtype=torch.float64)
    outputs, gradients = [], []
    for attend in (explicit_attention, fused_attention):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        output, _weights = attend(module, leaves[0], leaves[1], leaves[2], MASKS[masked], bias)
        (output * aim).sum().backward()
        outputs.append(output.detach())
        gradients.append([leaf.grad for leaf in leaves])
    assert largest(*outputs) <= 1e-12  # float64: rounding
    for one, other in zip(*gradients, strict=True):
        assert one is not None
        assert other is not None
        assert bool(other.isfinite().all())
        assert largest(one, other) <= 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_whole_model_gives_the_same_loss_and_gradients_fused(kind: Kind, positions: str) -> None:
    ours = model(kind, positions=positions, n_kv_heads=2)
    ids, target = random_ids(SOURCE, batch=2), random_ids(LENGTH, 4, 2) if kind == "encoder-decoder" else None
    found = []
    for attend in (explicit_attention, fused_attention):
        ours.zero_grad()
        ours(ids, target, is_token=IS_TOKEN, attend=attend).square().mean().backward()
        found.append({name: p.grad for name, p in ours.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys() == dict(ours.named_parameters()).keys()
    assert max(largest(gradient, found[1][name]) for name, gradient in found[0].items()) <= 1e-10  # float64 drift


def test_dropout_of_weights_is_torchs_in_the_mean() -> None:
    """Both leave out a share and enlarge the rest: over many draws the mean output is that without dropout."""
    module = MultiHeadAttention(8, 1, dropout=0.5).train()
    query, key, value = (torch.randn(4_000, 1, 3, 8) for _ in range(3))
    query, key, value = (tensor[:1].expand_as(tensor) for tensor in (query, key, value))
    whole, _ = explicit_attention(module.eval(), query[:1], key[:1], value[:1], None, None)
    for attend in (explicit_attention, fused_attention):
        output, _ = attend(module.train(), query, key, value, None, None)
        assert largest(output[0], output[1]) > 0.0
        assert largest(output.mean(0, keepdim=True), whole) <= 0.1  # of up to 2.3 between two draws; seen: 0.03


# ----------------------------------------------------------------------------------------------------------- positions


@torch.no_grad()
def test_without_positions_permuting_the_input_permutes_the_output() -> None:
    ours, ids = model("encoder", positions="none"), random_ids(SOURCE)
    order = torch.randperm(SOURCE)
    assert largest(ours(ids[:, order]), ours(ids)[:, order]) <= 1e-12  # float64: sums in another order
    assert bool((ours(ids[:, order]).argmax(-1) == ours(ids)[:, order].argmax(-1)).all())


ME_HIT_YOU, YOU_HIT_ME = torch.tensor([[11, 12, 13]]), torch.tensor([[13, 12, 11]])  # 我打你 and 你打我


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_with_positions_who_hits_whom_matters(positions: str) -> None:
    """Without positions 打 is the same vector in both sentences; with them it is not."""
    ours, blind = model("encoder", positions=positions), model("encoder", positions="none")
    assert largest(blind(ME_HIT_YOU)[:, 1], blind(YOU_HIT_ME)[:, 1]) <= 1e-12
    assert largest(ours(ME_HIT_YOU)[:, 1], ours(YOU_HIT_ME)[:, 1]) > 1e-3


@torch.no_grad()
def test_alibi_knows_how_far_but_not_on_which_side() -> None:
    """An encoder's ALiBi sees distances alone: a sentence read backwards gives the same, another order does not."""
    ours, ids = model("encoder", positions="alibi"), random_ids(SOURCE)
    order = torch.randperm(SOURCE)
    assert largest(ours(ids[:, order]), ours(ids)[:, order]) > 1e-3
    assert largest(ours(ids.flip(1)), ours(ids).flip(1)) <= 1e-12
    decoder = model("decoder", positions="alibi")  # which looks to one side only
    assert largest(decoder(ME_HIT_YOU)[:, 2], decoder(torch.tensor([[12, 11, 13]]))[:, 2]) > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_decoder_does_not_see_what_comes_later(positions: str) -> None:
    ours, ids = model("decoder", positions=positions), random_ids(SOURCE)
    changed = ids.clone()
    changed[0, 8:] = (changed[0, 8:] + 1) % 61
    assert largest(ours(ids)[:, :8], ours(changed)[:, :8]) == 0.0
    assert largest(ours(ids)[:, 8:], ours(changed)[:, 8:]) > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_changes_nothing(kind: Kind, positions: str) -> None:
    """A text beside a longer one gives what it gives alone."""
    ours = model(kind, positions=positions)
    ids, target = random_ids(SOURCE, batch=2), random_ids(LENGTH, 4, 2) if kind == "encoder-decoder" else None
    together = ours(ids, target, is_token=IS_TOKEN)[1]
    alone = ours(ids[1:, :8], None if target is None else target[1:])[0]
    assert largest(together if target is not None else together[:8], alone) <= 1e-10
