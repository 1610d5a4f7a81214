"""Are tokens cut from the user's own text, whatever the tokenizer does? Real tokenizers, and tiny ones of each kind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from models.errors import ConfigError
from models.packaged import MINILM, SMOLLM2, find_weights
from models.tokens import TextNotEncodable, Token, tokens_from_text, truncate_tokens

HARD_TEXTS = [
    "the cat saw the cat",  # H01
    "1E1 2A 3E2",  # H02
    "2024-01 2024-02 2024-03",  # H03
    'a<b<c <b>x</b> "quoted" &lt;',  # H04
    "<img src=x onerror=alert(1)>",  # H05
    "$x^2$ \\href{https://example.org}{y}",  # H06
    "東京",  # H07
    "ok 💩💩",  # H08
    "dž \u01c6 d\u017e",  # H11
    "مرحبا بالعالم",  # H13
    " 北京 👩‍💻 ok",
    "cafe\u0301 नमस्ते 🏳️‍🌈🇨🇳👍🏽",
    "a\x00b\r\n\tc  d \u200b",
    "[CLS] <s> </s> [SEP] <|endoftext|> <|im_start|>",
    "İstanbul ﬁ ½ ㎏ Ａｂ ﷺ",
    "   ",
    "",
]


def byte_level(*, trimmed: bool = False) -> PreTrainedTokenizerFast:
    """GPT-2's kind: every piece is one byte but "he" and " he". Trimmed: RoBERTa's offsets, a space before the text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: i for i, piece in enumerate(["<s>", "</s>", *alphabet, "he", "Ġhe"])}
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=[("h", "e"), ("Ġ", "he")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=trimmed, trim_offsets=trimmed)
    tokenizer.decoder = decoders.ByteLevel()
    if trimmed:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim_offsets=True)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def byte_fallback() -> PreTrainedTokenizerFast:
    """Llama 2's kind: ▁ for spaces and one before the text, <0xE5> for what is not in the vocabulary."""
    pieces = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "h", "i", "▁h", "▁hi"]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=[("▁", "h"), ("▁h", "i")], byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", unk_token="<unk>")


def decomposing() -> PreTrainedTokenizerFast:
    """T5's kind, with a normaliser that takes characters apart."""
    names = ["<pad>", "</s>", "<unk>", "▁", "▁hi", "d", "z", "\u030c"]
    tokenizer = Tokenizer(Unigram([(name, -float(i)) for i, name in enumerate(names)], unk_id=2))
    tokenizer.normalizer = normalizers.NFKD()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


def smollm2() -> PreTrainedTokenizerBase:
    """The real tokenizer, from its GGUF file."""
    source = find_weights(SMOLLM2)
    assert source is not None
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    return tokenizer


def minilm() -> PreTrainedTokenizerBase:
    """The real BERT tokenizer, whose file truncates to 128 and pads."""
    folder = find_weights(MINILM)
    assert folder is not None
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    return tokenizer


KINDS: dict[str, Callable[[], PreTrainedTokenizerBase]] = {
    "smollm2": smollm2,
    "minilm": minilm,
    "byte_level": byte_level,
    "trimmed": lambda: byte_level(trimmed=True),
    "byte_fallback": byte_fallback,
    "decomposing": decomposing,
}


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, PreTrainedTokenizerBase]:
    """One tokenizer of each kind."""
    return {name: make() for name, make in KINDS.items()}


def check_cut(tokens: list[Token], text: str) -> None:
    """What must hold of any tokens of any text."""
    for i, token in enumerate(tokens):
        assert token.index == i
        assert 0 <= token.start <= token.end <= len(text)
        assert 1 <= token.part <= token.parts
        assert (token.bytes is None) or token.parts > 1
        if token.special:
            assert (token.text, token.start, token.word) == (token.piece, token.end, None)
        else:
            assert token.text == text[token.start : token.end]
    assert all(a.start <= b.start for a, b in pairwise(tokens))
    shared = [(a, b) for a, b in pairwise(tokens) if b.part > 1]
    assert all((a.start, a.end, a.part + 1, a.parts) == (b.start, b.end, b.part, b.parts) for a, b in shared)
    assert all(a.part == a.parts for a, b in pairwise(tokens) if b.part == 1)


def shown(tokens: list[Token]) -> list[tuple[str, int, int, str | None]]:
    """The label side of tokens."""
    return [(token.text, token.part, token.parts, token.bytes) for token in tokens]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", HARD_TEXTS)
def test_labels_are_slices_of_the_text(tokenizers: dict[str, PreTrainedTokenizerBase], kind: str, text: str) -> None:
    for add_special_tokens in (True, False):
        tokens = tokens_from_text(tokenizers[kind], text, add_special_tokens=add_special_tokens)
        check_cut(tokens, text)
        assert [token.id for token in tokens] == tokenizers[kind](text, add_special_tokens=add_special_tokens).input_ids
        assert add_special_tokens or not any(token.special for token in tokens)


@pytest.mark.parametrize("kind", ["smollm2", "byte_level", "trimmed"])
@pytest.mark.parametrize("text", HARD_TEXTS)
def test_byte_level_labels_cover_the_whole_text(
    tokenizers: dict[str, PreTrainedTokenizerBase], kind: str, text: str
) -> None:
    """Nothing of the text is lost between two labels, spaces included."""
    tokens = tokens_from_text(tokenizers[kind], text)
    assert "".join(token.text for token in tokens if token.part == 1 and not token.special) == text
    spelled = [bytes.fromhex(token.bytes or token.text.encode().hex()) for token in tokens if not token.special]
    assert b"".join(spelled) == text.encode()


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("he \u0301\u200d👩💻🇨🇳가각नि्"), max_size=12)
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text(tokenizers: dict[str, PreTrainedTokenizerBase], text: str) -> None:
    for tokenizer in tokenizers.values():
        check_cut(tokens_from_text(tokenizer, text), text)


def test_pieces_of_one_character(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    tokens = tokens_from_text(tokenizers["smollm2"], " 北京 💩")
    assert shown(tokens) == [
        (" 北", 1, 3, "20 E5"),
        (" 北", 2, 3, "8C"),
        (" 北", 3, 3, "97"),
        ("京", 1, 2, "E4 BA"),
        ("京", 2, 2, "AC"),
        (" 💩", 1, 3, "20 F0 9F"),
        (" 💩", 2, 3, "92"),
        (" 💩", 3, 3, "A9"),
    ]


@pytest.mark.parametrize("character", ["👩‍💻", "e\u0301", "🇨🇳", "👍🏽", "नि"])
def test_characters_of_several_code_points_are_one(
    tokenizers: dict[str, PreTrainedTokenizerBase], character: str
) -> None:
    tokens = tokens_from_text(tokenizers["byte_level"], f"x{character}y")
    count = len(character.encode())
    expected = [(character, i + 1, count, f"{byte:02X}") for i, byte in enumerate(character.encode())]
    assert shown(tokens) == [("x", 1, 1, None), *expected, ("y", 1, 1, None)]


def test_a_line_end_is_two_characters(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    assert [token.text for token in tokens_from_text(tokenizers["byte_level"], "a\r\nb")] == ["a", "\r", "\n", "b"]


def test_a_heap_of_marks_is_not_one_character(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    """Labels of 2,000 pieces that all showed the same 1,000 marks would be megabytes."""
    tokens = tokens_from_text(tokenizers["byte_level"], "a" + "\u0301" * 1000)
    assert max(len(token.text) for token in tokens) == 1
    assert len(tokens) == 2001


def test_trimmed_offsets_get_their_space_back(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    tokens = tokens_from_text(tokenizers["trimmed"], "he he  he")
    assert [token.text for token in tokens] == ["<s>", "he", " he", " ", " he", "</s>"]
    assert [(token.start, token.end) for token in tokens if token.special] == [(0, 0), (9, 9)]


def test_byte_fallback_pieces(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    tokens = tokens_from_text(tokenizers["byte_fallback"], "東 hi")
    assert shown(tokens) == [
        ("<s>", 1, 1, None),
        ("", 1, 1, None),  # the tokenizer's own space
        ("東", 1, 3, "E6"),
        ("東", 2, 3, "9D"),
        ("東", 3, 3, "B1"),
        (" hi", 1, 1, None),
    ]


def test_pieces_of_a_character_that_was_taken_apart(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    """H11: one code point, three pieces after normalising; whose bytes are whose is not known."""
    tokens = tokens_from_text(tokenizers["decomposing"], "\u01c6")
    assert [(token.piece, *label) for token, label in zip(tokens, shown(tokens), strict=True)] == [
        ("▁", "", 1, 1, None),
        ("d", "\u01c6", 1, 3, None),
        ("z", "\u01c6", 2, 3, None),
        ("\u030c", "\u01c6", 3, 3, None),
        ("</s>", "</s>", 1, 1, None),
    ]


def test_special_tokens_and_words_of_bert(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    tokens = tokens_from_text(tokenizers["minilm"], "Unbelievable [SEP] cat")
    assert [(token.text, token.special) for token in tokens] == [
        ("[CLS]", True),
        ("Unbelievable", False),
        ("[SEP]", False),  # typed by the user
        ("cat", False),
        ("[SEP]", True),
    ]
    assert [token.word for token in tokens] == [None, 0, 1, 2, None]
    assert (tokens[0].start, tokens[-1].start) == (0, 22)


def test_nothing_is_truncated_or_padded(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    assert len(tokens_from_text(tokenizers["minilm"], "cat " * 600)) == 602
    assert len(tokens_from_text(tokenizers["minilm"], "cat")) == 3


def test_lone_surrogates_are_refused(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    with pytest.raises(TextNotEncodable, match="character 2 ") as caught:
        tokens_from_text(tokenizers["byte_level"], "ab\ud83dc")
    assert caught.value.position == 2


def test_a_long_text_takes_linear_time(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    """20,000 tokens in well under a second; with quadratic work it is minutes, which the suite's limit shows."""
    text = "he 北京 " * 2000
    tokens = tokens_from_text(tokenizers["byte_level"], text)
    assert sum(len(token.text) for token in tokens if token.part == 1) == len(text)


@pytest.mark.parametrize(("how", "kept", "edges"), [("cut_head", ["c", "d"], (4, 7)), ("cut_tail", ["a", "b"], (0, 3))])
def test_truncation_keeps_special_tokens(
    tokenizers: dict[str, PreTrainedTokenizerBase], how: str, kept: list[str], edges: tuple[int, int]
) -> None:
    tokens = tokens_from_text(tokenizers["minilm"], "a b c d")
    cut = truncate_tokens(tokens, 4, "cut_head" if how == "cut_head" else "cut_tail")
    assert [token.text for token in cut] == ["[CLS]", *kept, "[SEP]"]
    assert [token.index for token in cut] == [0, 1, 2, 3]
    assert (cut[0].start, cut[-1].end) == edges
    assert [token.start for token in cut[1:3]] == ["a b c d".index(letter) for letter in kept]
    check_cut(cut, "a b c d")


def test_truncation_leaves_short_texts_and_refuses_no_room(tokenizers: dict[str, PreTrainedTokenizerBase]) -> None:
    tokens = tokens_from_text(tokenizers["minilm"], "a b")
    assert truncate_tokens(tokens, 4, "cut_tail") == tokens
    with pytest.raises(ConfigError, match="no room"):
        truncate_tokens(tokens, 2, "cut_tail")
