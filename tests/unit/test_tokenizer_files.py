"""A text is cut the same way each time, as the checkpoint's tokenizer.json says; other tokenizers are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from models.checkpoints import UnusableCheckpoint, read_checkpoint
from models.errors import UnsupportedModel
from models.gpt2_weights import own_model_from
from models.huggingface import HuggingFaceModel
from models.tokenizer_files import load_tokenizer, without_sampling
from tests.unit.test_checkpoints import edit_json
from tests.unit.test_fit import save_llama
from tests.unit.tiny_checkpoints import save_gpt2

TEXT = "the cat saw the cat again and again, and then it went away"
FILE = "tokenizer.json"
Edit = Callable[[dict[str, Any]], object]


def save_byte_level(folder: Path, size: int = 300) -> Path:
    """A byte-level BPE that has learned the words of TEXT."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([TEXT] * 4, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return folder


def edit(folder: Path, change: Edit) -> None:
    """Change tokenizer.json."""
    content = json.loads((folder / FILE).read_text())
    change(content)
    (folder / FILE).write_text(json.dumps(content))


def ids(folder: Path, text: str = TEXT) -> list[int]:
    """What the text becomes."""
    found: list[int] = load_tokenizer(folder).tokenizer(text, add_special_tokens=False)["input_ids"]
    return found


@pytest.mark.parametrize("named", ["TokenizersBackend", "GPT2Tokenizer", "PreTrainedTokenizerFast"])
def test_dropout_is_off(tmp_path: Path, named: str) -> None:
    expected = ids(save_byte_level(tmp_path))
    edit_json(tmp_path / "tokenizer_config.json", tokenizer_class=named)
    edit(tmp_path, lambda content: content["model"].update(dropout=0.5))
    assert [ids(tmp_path) for _ in range(8)] == [expected] * 8
    if named != "GPT2Tokenizer":  # which builds its own without dropout
        assert "dropout 0.5" in " ".join(load_tokenizer(tmp_path).notes)


def test_sampling_is_off() -> None:
    """Unigram's counterpart of dropout, which no file keeps but a class may set."""
    pieces = [
        ("<unk>", 0.0),
        *((piece, -1.0) for piece in ("the", "th", "t", "h", "e", "he", " ", "cat", "c", "a", "at")),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    expected = tokenizer.encode("the cat").ids
    model: Any = tokenizer.model
    model.alpha, model.nbest_size = 0.1, 8
    assert without_sampling(tokenizer) == "alpha 0.1, nbest_size 8"
    assert [tokenizer.encode("the cat").ids for _ in range(20)] == [expected] * 20


def test_truncation_and_padding_are_off(tmp_path: Path) -> None:
    """Whatever tokenizer.json says of them: no token is lost, none is added."""
    save_gpt2(tmp_path)
    model = HuggingFaceModel.load(tmp_path, weight_precision="float32", revision="r")
    whole = [token.id for token in model.tokenize("the cat saw the cat")]
    stated = PreTrainedTokenizerFast.from_pretrained(tmp_path).backend_tokenizer
    stated.enable_truncation(2, stride=1)
    stated.enable_padding(length=12, pad_id=0, pad_token="<unk>")
    stated.save(str(tmp_path / FILE))
    model = HuggingFaceModel.load(tmp_path, weight_precision="float32", revision="r")
    assert [token.id for token in model.tokenize("the cat saw the cat")] == whole


@pytest.mark.parametrize("named", ["GPT2Tokenizer", "Qwen2Tokenizer", "CodeGenTokenizer", "BertTokenizer"])
def test_texts_are_cut_as_tokenizer_json_says(tmp_path: Path, named: str) -> None:
    """The class beside it brings another splitting of words and no lower case."""
    save_byte_level(tmp_path)

    def other(tokenizer: Tokenizer) -> None:
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(use_regex=False)]
        )

    stated = Tokenizer.from_file(str(tmp_path / FILE))
    other(stated)
    stated.save(str(tmp_path / FILE))
    edit_json(tmp_path / "tokenizer_config.json", tokenizer_class=named)
    text = "The CAT saw 12 cats"
    assert ids(tmp_path, text) == stated.encode(text, add_special_tokens=False).ids
    assert f"not made for {named}" in load_tokenizer(tmp_path).notes[0]


def test_a_tokenizer_of_its_own_class_has_no_note(tmp_path: Path) -> None:
    save_byte_level(tmp_path)
    for named in ("GPT2Tokenizer", "TokenizersBackend"):
        edit_json(tmp_path / "tokenizer_config.json", tokenizer_class=named)
        assert load_tokenizer(tmp_path).notes == ()


def test_a_tokenizer_that_cannot_be_loaded(tmp_path: Path) -> None:
    save_byte_level(tmp_path)
    edit_json(tmp_path / "tokenizer_config.json", tokenizer_class="T5Tokenizer")
    with pytest.raises(UnsupportedModel, match="its tokenizer cannot be loaded"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("save", [save_gpt2, save_llama])
def test_slow_tokenizers_are_refused(tmp_path: Path, save: Callable[[Path], Path]) -> None:
    """By the list and by either implementation, in the same words."""
    save(tmp_path)
    (tmp_path / FILE).unlink()
    (tmp_path / "vocab.json").write_text(json.dumps({"<unk>": 0, "the</w>": 1, "cat</w>": 2}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nt h\n")
    edit_json(tmp_path / "tokenizer_config.json", tokenizer_class="CTRLTokenizer")
    with pytest.raises(UnusableCheckpoint, match="no character offsets"):
        read_checkpoint(tmp_path, within=tmp_path)
    loads = [HuggingFaceModel.load, *([own_model_from] if save is save_gpt2 else [])]
    for load in loads:
        with pytest.raises(UnsupportedModel, match="no character offsets"):
            load(tmp_path, weight_precision="float32", revision="r")


@pytest.mark.parametrize("save", [save_gpt2, save_llama])
def test_more_tokens_than_the_table_of_embeddings_has(tmp_path: Path, save: Callable[[Path], Path]) -> None:
    save(tmp_path)
    save_byte_level(tmp_path)
    sizes = r"tokenizer has \d{3} tokens and its table of embeddings 8 rows"
    with pytest.raises(UnusableCheckpoint, match=sizes):
        read_checkpoint(tmp_path, within=tmp_path)
    for load in [HuggingFaceModel.load, *([own_model_from] if save is save_gpt2 else [])]:
        with pytest.raises(UnsupportedModel, match=sizes):
            load(tmp_path, weight_precision="float32", revision="r")
