"""GPT-2's weights in our own Transformer: the same numbers as transformers' GPT-2, and faults found where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import snapshot_download
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from models import transformer
from models.capture import Capture
from models.errors import Cancelled, ShapeError
from models.gpt2_weights import config_from_gpt2, copy_gpt2_weights, own_model_from
from models.layers import TransformerLayer
from models.own import OwnModel
from models.protocol import CaptureReader
from models.stages import IN_LAYER, compare_stages
from models.transformer import Transformer
from tests.unit.tiny_checkpoints import save_gpt2

TINY: dict[str, Any] = {
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 64,
    "vocab_size": 96,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
PUBLISHED: dict[str, Any] = {}  # transformers' defaults are the shape of the 124M model
N_TOKENS = 24
# What the work is judged by: float32 as initialised. Seen at worst: logits 1.9e-6, weights 3e-7. With peaked attention
# float32 cannot be judged: rounding of large scores alone moves weights by 6e-5.
LOGITS, WEIGHTS = 1e-4, 1e-5
PEAKED = 1e-10  # float64 with peaked attention; seen at worst 3e-13 (logits of the 124M shape)

Pair = tuple[Transformer, GPT2LMHeadModel]


@pytest.fixture(autouse=True, scope="module")
def one_seed() -> Iterator[None]:
    """Random weights, the same at every call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def pair(shape: dict[str, Any], dtype: torch.dtype = torch.float32) -> Pair:
    """transformers' GPT-2 with random weights, and ours with the same."""
    theirs = GPT2LMHeadModel(GPT2Config(**shape)).eval()
    nn.Module.to(theirs, dtype)
    ours = Transformer(config_from_gpt2(theirs.config)).to(dtype)
    copy_gpt2_weights(ours, theirs.state_dict())
    return ours, theirs


def peak(theirs: GPT2LMHeadModel, factor: float) -> None:
    """Scale query and key, so that attention looks at few tokens."""
    with torch.no_grad():
        blocks: Any = theirs.transformer.h
        for block in blocks:
            block.attn.c_attn.weight[:, : 2 * theirs.config.n_embd] *= factor


def some_ids(theirs: GPT2LMHeadModel, n_tokens: int = N_TOKENS) -> list[int]:
    return torch.randint(0, theirs.config.vocab_size, (n_tokens,)).tolist()


@torch.no_grad()
def eager(theirs: GPT2LMHeadModel, ids: list[int]) -> tuple[Tensor, Tensor]:
    """transformers' logits (seq_len, vocabulary) and weights (n_layers, n_heads, query_len, key_len)."""
    theirs.set_attn_implementation("eager")
    output = theirs(torch.tensor([ids]), output_attentions=True, use_cache=False)
    return output.logits[0], torch.cat(output.attentions)


@torch.no_grad()
def own(ours: Transformer, ids: list[int]) -> tuple[Tensor, Tensor]:
    """Our logits, and the weights as a run keeps them."""
    model = OwnModel(ours, None, family="gpt2", weight_precision="float32", revision="test")
    result = model.run(ids)
    assert result.card.verdict == "pass"
    return ours(torch.tensor([ids]))[0], captured(result.capture)


def captured(capture: CaptureReader) -> Tensor:
    """All weights of a run of a decoder, (n_layers, n_heads, query_len, key_len)."""
    assert isinstance(capture, Capture)
    site = capture.sites[0]
    rows, heads = list(range(site.query_len)), (0, site.n_heads)
    return torch.stack(
        [capture.weights("decoder.self", n, heads, rows, (0, site.key_len)) for n in range(site.n_layers)]
    )


def largest(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


@pytest.mark.parametrize(
    ("shape", "factor"),
    [pytest.param(TINY, 16, id="tiny"), pytest.param(PUBLISHED, 4, id="124M", marks=pytest.mark.slow)],
)
def test_the_same_numbers(shape: dict[str, Any], factor: float) -> None:
    ours, theirs = pair(shape)
    ids = some_ids(theirs)
    (logits, weights), (their_logits, their_weights) = own(ours, ids), eager(theirs, ids)
    assert largest(logits, their_logits) <= LOGITS
    assert largest(weights, their_weights) <= WEIGHTS
    found = compare_stages(ours, theirs, ids)
    assert found.first_over is None
    assert [stage.name for stage in found.stages] == stage_names(theirs.config.n_layer)

    peak(theirs.double(), factor)
    copy_gpt2_weights(ours.double(), theirs.state_dict())
    (logits, weights), (their_logits, their_weights) = own(ours, ids), eager(theirs, ids)
    assert their_weights.amax(-1).mean() >= 0.5  # peaked
    assert largest(logits, their_logits) <= PEAKED
    assert largest(weights, their_weights) <= PEAKED
    found = compare_stages(ours, theirs, ids)
    assert found.first_over is None
    assert found.dtype == "float64"


def stage_names(n_layers: int) -> list[str]:
    inside = [f"layers.{n}.{stage}" for n in range(n_layers) for stage in IN_LAYER]
    return ["embeddings", *inside, "final_norm", "logits"]


def test_stages_are_those_of_a_layer() -> None:
    attention = ("attention_norm", "query", "key", "value", "scores", "weights", "attention_output")
    assert (*attention, "feed_forward_norm", "feed_forward", "residual") == IN_LAYER


# ------------------------------------------------------------------------------------------------------ faults, located


def layer(ours: Transformer, n: int) -> TransformerLayer:
    assert ours.decoder is not None
    found = ours.decoder.layers[n]
    assert isinstance(found, TransformerLayer)
    return found


def no_scaling(ours: Transformer) -> None:
    layer(ours, 1).self_attention.scaling = 1.0


def key_transposed(ours: Transformer) -> None:
    _replace(layer(ours, 2).self_attention.key.weight, lambda weight: weight.T)


def output_transposed(ours: Transformer) -> None:
    _replace(layer(ours, 0).self_attention.output.weight, lambda weight: weight.T)


def position_shifted(ours: Transformer) -> None:
    assert ours.decoder_input is not None
    assert ours.decoder_input.positions is not None
    _replace(ours.decoder_input.positions.table.weight, lambda table: table.roll(-1, 0))


def another_norm(ours: Transformer) -> None:
    layer(ours, 1).feed_forward_norm.eps = 1e-4


def another_activation(ours: Transformer) -> None:
    layer(ours, 2).feed_forward.activation = nn.GELU()


def heads_interleaved(ours: Transformer) -> None:
    """Value numbers of a head strewn over all heads: the usual fault of a view without a transpose."""
    _replace(layer(ours, 0).self_attention.value.weight, lambda weight: weight.view(4, 8, -1).mT.reshape(32, -1).mT)


def norm_skipped(ours: Transformer) -> None:
    assert ours.decoder is not None
    ours.decoder.final_norm = nn.Identity()


def _replace(parameter: Tensor, change: Callable[[Tensor], Tensor]) -> None:
    with torch.no_grad():
        parameter.copy_(change(parameter.clone()))


@pytest.mark.parametrize(
    ("plant", "where"),
    [
        (no_scaling, "layers.1.scores"),
        (key_transposed, "layers.2.key"),
        (position_shifted, "embeddings"),
        (output_transposed, "layers.0.attention_output"),
        (heads_interleaved, "layers.0.value"),
        (another_norm, "layers.1.feed_forward_norm"),
        (another_activation, "layers.2.feed_forward"),
        (norm_skipped, "final_norm"),
    ],
)
def test_a_fault_is_found_where_it_is(plant: Callable[[Transformer], None], where: str) -> None:
    ours, theirs = pair(TINY, torch.float64)
    peak(theirs, 16)
    copy_gpt2_weights(ours, theirs.state_dict())
    ids = some_ids(theirs)
    assert compare_stages(ours, theirs, ids).first_over is None
    plant(ours)
    found = compare_stages(ours, theirs, ids)
    assert found.first_over is not None
    assert found.first_over.name == where


def _mask(diagonal: int) -> Callable[..., Tensor]:
    return lambda query_len, key_len, **_: torch.ones(query_len, key_len, dtype=torch.bool).tril(diagonal)


def test_a_look_ahead_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pair(TINY, torch.float64)
    monkeypatch.setattr(transformer, "causal_mask", _mask(1))
    found = compare_stages(ours, theirs, some_ids(theirs)).first_over
    assert found is not None
    assert found.name == "layers.0.scores"


def test_a_token_that_is_hidden_here_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pair(TINY, torch.float64)
    monkeypatch.setattr(transformer, "causal_mask", _mask(-1))
    found = compare_stages(ours, theirs, some_ids(theirs)).first_over
    assert found is not None
    assert found.name == "layers.0.weights"


def test_a_number_that_is_none_is_over() -> None:
    ours, theirs = pair(TINY)
    _replace(layer(ours, 1).self_attention.query.bias, lambda bias: bias * torch.nan)
    found = compare_stages(ours, theirs, some_ids(theirs)).first_over
    assert found is not None
    assert found.name == "layers.1.query"


def test_the_reference_is_left_as_it_was() -> None:
    ours, theirs = pair(TINY)
    theirs.set_attn_implementation("sdpa")
    compare_stages(ours, theirs, some_ids(theirs))
    assert theirs.config._attn_implementation == "sdpa"
    assert not any(module._forward_hooks for model in (ours, theirs) for module in model.modules())


def test_a_model_without_an_output_layer_is_compared_up_to_the_final_norm() -> None:
    ours, theirs = pair(TINY)
    found = compare_stages(ours, theirs.transformer, some_ids(theirs))
    assert [stage.name for stage in found.stages] == stage_names(TINY["n_layer"])[:-1]
    assert found.first_over is None


def test_groups_of_layers_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pair(TINY, torch.float64)
    ids = some_ids(theirs)
    whole = compare_stages(ours, theirs, ids)
    monkeypatch.setattr("models.stages.HELD_BYTES", 1)
    assert compare_stages(ours, theirs, ids) == whole


@pytest.mark.parametrize("n_tokens", [0, 1025])
def test_too_many_tokens_are_refused_with_the_reason(n_tokens: int) -> None:
    ours, theirs = pair(TINY)
    with pytest.raises(ShapeError, match=f"1 to 1024 tokens, got {n_tokens}: the scores and weights of every head"):
        compare_stages(ours, theirs, [1] * n_tokens)


def test_it_can_be_stopped() -> None:
    ours, theirs = pair(TINY)
    with pytest.raises(Cancelled):
        compare_stages(ours, theirs, some_ids(theirs), should_stop=lambda: True)


@pytest.mark.parametrize("options", [{"n_inner": 40}, {"layer_norm_epsilon": 1e-3}, {"activation_function": "gelu"}])
def test_what_the_configuration_says_is_done(options: dict[str, Any]) -> None:
    ours, theirs = pair(TINY | options, torch.float64)
    assert compare_stages(ours, theirs, some_ids(theirs)).first_over is None


# ------------------------------------------------------------------------------------------------- a folder, as it lies


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({}, "float32"),
        ({"shard": "4KB"}, "float32"),
        ({"dtype": torch.float16}, "float32"),
        ({"dtype": torch.float64}, "float64"),
    ],
    ids=["whole", "sharded", "float16", "float64"],
)
def test_a_folder_is_run_as_it_lies(tmp_path: Path, options: dict[str, Any], dtype: str) -> None:
    folder = save_gpt2(tmp_path / "tiny", **options)
    model = own_model_from(folder, weight_precision="as saved", revision="1", device=torch.device("cpu"))
    about = model.description
    assert (about.family, about.kind, about.implementation, about.dtype) == ("gpt2", "decoder", "own", dtype)
    assert (about.n_layers, about.n_heads, about.max_tokens) == (2, 2, 16)
    assert [token.id for token in model.tokenize("cat")] == [2]
    ids = [1, 2, 3, 1, 2]
    result = model.run(ids)
    assert result.card.verdict == "pass"
    assert all(check.status in ("pass", "info") for check in result.card.checks)
    theirs = GPT2LMHeadModel.from_pretrained(folder, dtype=getattr(torch, dtype))
    assert largest(captured(result.capture), eager(theirs, ids)[1]) <= WEIGHTS
    assert compare_stages(model.model, theirs, ids).first_over is None


@pytest.mark.network
def test_the_published_weights(tmp_path: Path) -> None:
    folder = Path(
        snapshot_download("gpt2", local_dir=tmp_path, allow_patterns=["*.json", "*.txt", "model.safetensors"])
    )
    model = own_model_from(folder, weight_precision="float32", revision="main", device=torch.device("cpu"))
    ids = [token.id for token in model.tokenize("When Mary and John went to the store, John gave a drink to Mary.")]
    assert model.run(ids).card.verdict == "pass"
    theirs = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    found = compare_stages(model.model, theirs, ids)
    assert found.first_over is None
    assert found.stages[-1].name == "logits"
