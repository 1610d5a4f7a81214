"""Tokens of pairs, of given targets and of texts that a model wrote, with tiny vocabularies of each kind."""

from __future__ import annotations

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from models.errors import UnsupportedModel
from models.target_tokens import special_token, tokens_from_ids
from models.tokens import TextNotEncodable, Token, builds_pairs, tokens_from_text

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
MIXED = "a 北京 é 👩🏽 end"


def byte_level() -> PreTrainedTokenizerFast:
    """One token for each byte, and one of two letters."""
    vocab = {"</s>": 0, "<pad>": 1, **{piece: i + 2 for i, piece in enumerate(BYTES)}}
    vocab["en"] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab, [("e", "n")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="<pad>")


def characters() -> PreTrainedTokenizerFast:
    """One token for each character, as everyhead-dates has it."""
    vocab = {name: i for i, name in enumerate(["<pad>", "<unk>", *sorted(set(MIXED))])}
    tokenizer = Tokenizer(models.WordLevel(vocab, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>")


def byte_fallback() -> PreTrainedTokenizerFast:
    """SentencePiece's way: words with a mark for the space before them, and bytes for what is not in the vocabulary."""
    names = ["</s>", "▁", "▁a", "▁end", *(f"<0x{byte:02X}>" for byte in range(256))]
    vocab = [(name, -1.0 - i / 1000) for i, name in enumerate(["<unk>", *names])]
    tokenizer = Tokenizer(models.Unigram(vocab, 0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")


def pairs(types: bool = True) -> PreTrainedTokenizerFast:
    """BERT's way of building pairs, with or without types."""
    vocab = {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "the": 3, "cat": 4, "saw": 5, "it": 6}
    tokenizer = Tokenizer(models.WordLevel(vocab, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    second = ":1" if types else ""
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair=f"[CLS] $A [SEP] $B{second} [SEP]{second}",
        special_tokens=[("[CLS]", 0), ("[SEP]", 1)],
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]")


def spelled(tokens: list[Token]) -> str:
    """The text that the labels give together: each shared label once."""
    return "".join(token.text for token in tokens if token.part == 1 and not token.special)


@pytest.mark.parametrize("make", [byte_level, characters, byte_fallback])
def test_labels_spell_what_was_written(make: object) -> None:
    tokenizer = make()  # type: ignore[operator]
    ids = tokenizer(MIXED, add_special_tokens=False).input_ids
    tokens = tokens_from_ids(tokenizer, ids)
    assert [token.id for token in tokens] == ids
    assert [token.index for token in tokens] == list(range(len(ids)))
    assert spelled(tokens) == MIXED
    assert all(MIXED[token.start : token.end] == token.text for token in tokens)


def test_written_tokens_are_labelled_as_given_ones_are() -> None:
    """Byte-level pieces: the same labels, parts and bytes as for a text that was pasted; only words are not known."""
    tokenizer = byte_level()
    given = tokens_from_text(tokenizer, MIXED)
    written = tokens_from_ids(tokenizer, [token.id for token in given])
    for one, other in zip(given, written, strict=True):
        assert (one.text, one.start, one.end, one.part, one.parts, one.bytes) == (
            other.text,
            other.start,
            other.end,
            other.part,
            other.parts,
            other.bytes,
        )
        assert other.word is None
    character = [token for token in written if token.text == "北"]
    assert [(token.part, token.parts, token.bytes) for token in character] == [(1, 3, "E5"), (2, 3, "8C"), (3, 3, "97")]


def test_half_a_character_is_a_token_all_the_same() -> None:
    tokenizer = byte_level()
    ids = [token.id for token in tokens_from_text(tokenizer, "a北b")]
    tokens = tokens_from_ids(tokenizer, [ids[0], *ids[1:3], ids[4]])
    assert [token.text for token in tokens] == ["a", "\ufffd", "\ufffd", "b"]
    assert [(token.part, token.parts, token.bytes) for token in tokens[1:3]] == [(1, 2, "E5"), (2, 2, "8C")]
    assert tokens[-1].end == 3


def test_special_ids_stand_for_no_text() -> None:
    tokenizer = byte_level()
    ids = [1, *tokenizer("end").input_ids, 0]
    tokens = tokens_from_ids(tokenizer, ids)
    assert [(token.text, token.special, token.start, token.end) for token in tokens] == [
        ("<pad>", True, 0, 0),
        ("en", False, 0, 2),
        ("d", False, 2, 3),
        ("</s>", True, 3, 3),
    ]
    assert special_token(tokenizer, 0) == Token(0, 0, "</s>", "</s>", 0, 0, True, None, 1, 1, None)
    assert special_token(tokenizer, 0).at(4).index == 4
    assert tokens_from_ids(tokenizer, []) == []


def test_the_second_text_of_a_pair_has_offsets_of_its_own() -> None:
    tokens = tokens_from_text(pairs(), "the cat", text_pair="saw it saw")
    assert [token.index for token in tokens] == list(range(8))
    assert [(token.text, token.segment, token.start, token.end) for token in tokens] == [
        ("[CLS]", 0, 0, 0),
        ("the", 0, 0, 3),
        ("cat", 0, 4, 7),
        ("[SEP]", 0, 7, 7),
        ("saw", 1, 0, 3),
        ("it", 1, 4, 6),
        ("saw", 1, 7, 10),
        ("[SEP]", 1, 10, 10),
    ]


def test_a_pair_is_the_tokenizers_own() -> None:
    tokenizer = pairs()
    tokens = tokens_from_text(tokenizer, "the cat", text_pair="saw it saw")
    known = tokenizer("the cat", "saw it saw", return_token_type_ids=True)
    assert [token.id for token in tokens] == known.input_ids
    assert [token.segment for token in tokens] == known.token_type_ids
    bare = tokens_from_text(tokenizer, "the cat", text_pair="it", add_special_tokens=False)
    assert [(token.text, token.segment) for token in bare] == [("the", 0), ("cat", 0), ("it", 1)]


def test_who_builds_pairs() -> None:
    assert builds_pairs(pairs())
    assert not builds_pairs(pairs(types=False))


def test_half_a_surrogate_in_the_second_text() -> None:
    with pytest.raises(TextNotEncodable):
        tokens_from_text(pairs(), "the", text_pair="\ud800")


def test_tokenizers_without_offsets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = pairs()
    monkeypatch.setattr(type(tokenizer), "is_fast", False)
    assert not builds_pairs(tokenizer)
    with pytest.raises(UnsupportedModel, match="offsets"):
        tokens_from_text(tokenizer, "the")
