"""Encoder–decoders and pairs of texts against transformers' own generation and attentions, with tiny random models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BertConfig,
    BertModel,
    MarianConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    T5Config,
)

from models.errors import Cancelled, UnsupportedModel
from models.huggingface import HuggingFaceModel

LETTERS = [*"abcdefghijklmnopqrstuvwxyz "]
NAMES = ["<pad>", "<s>", "</s>", "<unk>", *LETTERS, "[CLS]", "[SEP]"]
SIZES: dict[str, Any] = {
    "vocab_size": len(NAMES),
    "d_model": 48,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "eos_token_id": 2,
}
T5_SIZES: dict[str, Any] = {
    "vocab_size": len(NAMES),
    "d_model": 48,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 3,
    "num_heads": 4,
    "eos_token_id": 2,
}
START: dict[str, Any] = {"decoder_start_token_id": 0}
BART: dict[str, Any] = {"bos_token_id": 1, "decoder_start_token_id": 2, "forced_bos_token_id": 1}
# How each style begins what its decoder reads, and how its tokenizer marks a text.
STYLES: dict[str, tuple[Callable[[], PreTrainedConfig], str, list[str]]] = {
    "t5": (lambda: T5Config(**T5_SIZES, **START), "$A </s>", ["<pad>"]),
    "bart": (
        lambda: BartConfig(**SIZES, **BART),
        "<s> $A </s>",
        ["</s>", "<s>"],
    ),
    "marian": (lambda: MarianConfig(**SIZES, **START), "$A </s>", ["<pad>"]),
}
TOLERANCE = 1e-6  # of weights up to 1 in float32, rounded differently in blocks and in one product


def tokenizer_of(single: str, pair: str | None = None) -> PreTrainedTokenizerFast:
    """One token for each letter."""
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(NAMES)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    specials = [(name, NAMES.index(name)) for name in ("<s>", "</s>", "[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=specials)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="</s>", bos_token="<s>", pad_token="<pad>", unk_token="<unk>"
    )


@pytest.fixture(params=STYLES)
def style(request: pytest.FixtureRequest) -> str:
    """Each way of beginning a target."""
    name: str = request.param
    return name


@pytest.fixture
def folder(style: str, tmp_path: Path) -> Path:
    """A checkpoint whose attention is peaked enough for its decoder to write different tokens."""
    config, single, _ = STYLES[style]
    torch.manual_seed(3)
    model: Any = AutoModelForSeq2SeqLM.from_config(config())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(1.0 if "norm" in name or style == "t5" else 8.0)
    model.save_pretrained(tmp_path)
    tokenizer_of(single).save_pretrained(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder: Path) -> HuggingFaceModel:
    """That checkpoint, looked into."""
    return HuggingFaceModel.load(folder, weight_precision="float32", revision="tiny", device=torch.device("cpu"))


def test_a_given_target_begins_as_the_model_wants_it(style: str, model: HuggingFaceModel) -> None:
    tokens = model.tokenize_target("bonjour")
    begin = STYLES[style][2]
    assert [token.text for token in tokens] == [*begin, *"bonjour"]
    assert [token.special for token in tokens] == [True] * len(begin) + [False] * 7
    assert [token.index for token in tokens] == list(range(len(tokens)))
    assert tokens[len(begin)].start == 0


def test_what_is_written_is_transformers_own_greedy_text(style: str, folder: Path, model: HuggingFaceModel) -> None:
    source = [token.id for token in model.tokenize("hello world")]
    written = model.write_target(source, should_stop=lambda: False)
    theirs: Any = AutoModelForSeq2SeqLM.from_pretrained(folder)
    known = theirs.generate(torch.tensor([source]), do_sample=False, num_beams=1, max_new_tokens=63)[0].tolist()
    known = known[:-1] if known[-1] == theirs.generation_config.eos_token_id else known
    assert [token.id for token in written][:64] == known[: len(written)]
    assert len(written) >= min(64, len(known))
    assert [token.index for token in written] == list(range(len(written)))
    assert written[0].text == STYLES[style][2][0]
    assert model.model.config._attn_implementation == "everyhead", "our attention is back in its place"


def test_three_sites_are_transformers_own_attentions(folder: Path, model: HuggingFaceModel) -> None:
    source = [token.id for token in model.tokenize("hello world")]
    target = [token.id for token in model.tokenize_target("bonjour")]
    result = model.run(source, target_ids=target)
    assert result.card.verdict == "pass"
    theirs: Any = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        known = theirs(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]), output_attentions=True
        )
    attentions = (known.encoder_attentions, known.decoder_attentions, known.cross_attentions)
    assert [site.site for site in result.capture.sites] == ["encoder.self", "decoder.self", "decoder.cross"]
    for site, layers in zip(result.capture.sites, attentions, strict=True):
        assert (site.n_layers, site.n_heads) == (len(layers), layers[0].shape[1])
        for layer, weights in enumerate(layers):
            for head in range(site.n_heads):
                ours = result.capture.window(site.site, layer, head, None, None, 65_536, "max").weights.nan_to_num(0.0)
                torch.testing.assert_close(ours, weights[0, head], atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize(("n_tokens", "n_target"), [(60, 20), (20, 60)])
def test_capture_bytes_is_what_a_capture_takes(model: HuggingFaceModel, n_tokens: int, n_target: int) -> None:
    result = model.run([5] * n_tokens, target_ids=[6] * n_target)
    taken = sum(tensor.nbytes for tensor in result.capture.tensors().values())
    assert taken <= model.capture_bytes(n_tokens, n_target) <= 1.15 * taken  # masks and biases of tiny models weigh


def test_writing_can_be_stopped(model: HuggingFaceModel) -> None:
    asked: list[int] = []

    def should_stop() -> bool:
        asked.append(1)
        return True

    with pytest.raises(Cancelled):
        model.write_target([5, 6], should_stop=should_stop)
    assert len(asked) == 1
    assert model.run([5, 6], target_ids=[0]).card.verdict == "pass", "and the model is as before"


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A BERT whose tokenizer builds pairs."""
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(NAMES), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32
    )
    BertModel(config).save_pretrained(tmp_path)
    tokenizer_of("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1").save_pretrained(tmp_path)
    return tmp_path


def test_a_pair_runs_with_its_segments(bert: Path) -> None:
    model = HuggingFaceModel.load(bert, weight_precision="float32", revision="tiny", device=torch.device("cpu"))
    assert model.description.takes_pair
    tokens = model.tokenize("the cat", text_pair="saw it")
    ids, segments = [token.id for token in tokens], [token.segment for token in tokens]
    theirs: Any = BertModel.from_pretrained(bert, attn_implementation="eager").eval()
    with torch.no_grad():
        known = theirs(torch.tensor([ids]), token_type_ids=torch.tensor([segments]), output_attentions=True)
    result = model.run(ids, segments=segments)
    for layer, weights in enumerate(known.attentions):
        ours = result.capture.window("encoder.self", layer, 1, None, None, 65_536, "max").weights
        torch.testing.assert_close(ours, weights[0, 1], atol=TOLERANCE, rtol=0)
    alone = model.run(ids).capture.window("encoder.self", 0, 1, None, None, 65_536, "max").weights
    assert (alone - known.attentions[0][0, 1]).abs().max() > 10 * TOLERANCE, "segments change the weights"


def test_who_takes_no_pair_and_no_target(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    tokenizer_of("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]").save_pretrained(bert)  # both texts of type 0
    model = HuggingFaceModel.load(bert, weight_precision="float32", revision="tiny", device=torch.device("cpu"))
    assert not model.description.takes_pair
    with pytest.raises(UnsupportedModel, match="pair"):
        model.tokenize("the cat", text_pair="saw it")
    with pytest.raises(UnsupportedModel, match="encoder–decoder"):
        model.tokenize_target("a")
    with pytest.raises(UnsupportedModel, match="encoder–decoder"):
        model.write_target([5], should_stop=lambda: False)
    folder = tmp_path_factory.mktemp("no-start")
    AutoModelForSeq2SeqLM.from_config(T5Config(**T5_SIZES)).save_pretrained(folder)
    tokenizer_of("$A </s>").save_pretrained(folder)
    with pytest.raises(UnsupportedModel, match="no token with which its decoder begins"):
        HuggingFaceModel.load(folder, weight_precision="float32", revision="tiny")
