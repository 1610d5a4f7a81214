"""A whole character belongs to its token, whatever a tokenizer makes of it, in time that follows the length."""

from __future__ import annotations

import time
from functools import cache
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE, Unigram, WordLevel, WordPiece
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from models.errors import Cancelled
from models.token_spans import character_starts
from models.tokens import CharacterUnknown, Token, tokens_from_text
from models.units import Segmenter
from tests.unit.test_tokens import minilm, smollm2

ACUTE = "\N{COMBINING ACUTE ACCENT}"
FLAG = "\N{REGIONAL INDICATOR SYMBOL LETTER D}\N{REGIONAL INDICATOR SYMBOL LETTER E}"
LETTERS = r"\p{L}\p{M}*|\s+|[^\s\p{L}]+"


def letters(*steps: normalizers.Normalizer) -> PreTrainedTokenizerBase:
    """Qwen's kind: the text is normalised, then cut at letters, then spelled in bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: i for i, piece in enumerate([*alphabet, "Ã©"])}
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=[("Ã", "©")]))
    tokenizer.normalizer = normalizers.Sequence(list(steps))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LETTERS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


NORMALISED: dict[str, list[normalizers.Normalizer]] = {
    "NFC": [normalizers.NFC()],
    "NFKC": [normalizers.NFKC()],
    "strip accents": [normalizers.NFD(), normalizers.StripAccents()],
    "lower case": [normalizers.Lowercase(), normalizers.NFC()],
}


real = {"minilm": cache(minilm), "smollm2": cache(smollm2)}  # each takes seconds to read


def of(tokenizer: PreTrainedTokenizerBase, text: str) -> list[Token]:
    """The tokens of the text alone."""
    return tokens_from_text(tokenizer, text, add_special_tokens=False)


@pytest.mark.parametrize("steps", NORMALISED.values(), ids=NORMALISED)
def test_an_accent_belongs_to_the_token_of_its_letter(steps: list[normalizers.Normalizer]) -> None:
    tokens = of(letters(*steps), f"cafe{ACUTE}s e{ACUTE}")
    assert [token.text for token in tokens] == ["c", "a", "f", f"e{ACUTE}", "s", " ", f"e{ACUTE}"]
    assert [(one.end, other.start) for one, other in pairwise(tokens) if one.end != other.start] == []


def test_an_accent_that_minilm_strips_belongs_to_its_word() -> None:
    assert [token.text for token in of(real["minilm"](), f"cafe{ACUTE} e{ACUTE}t x")] == [
        f"cafe{ACUTE}",
        f"e{ACUTE}t",
        "x",
    ]


@pytest.mark.parametrize("marks", [1, 8, 31, 32, 33, 200])
def test_any_number_of_accents_stays_with_its_letter(marks: int) -> None:
    text = "Z" + ACUTE * marks
    assert [token.text for token in of(real["minilm"](), f"{text} a")] == [text, "a"]


@pytest.mark.parametrize(
    "character",
    [
        "\u1112\u1161\u11ab",  # Hangul letters of one syllable
        "\u0938\u094d\u0924\u0947",  # Devanagari, of which MiniLM drops a vowel
        "\u2764\ufe0f",  # a heart, and that it is to be a picture
        "\U0001f469\U0001f3fd\u200d\U0001f4bb",  # joined, with a tone of skin
        "\u0130",  # one letter, two when lower-cased
        "\ufb01",  # one letter, two when compatible
    ],
    ids=ascii,
)
@pytest.mark.parametrize("kind", [*NORMALISED, "minilm"])
def test_all_of_a_character_is_in_some_token(kind: str, character: str) -> None:
    tokenizer = real["minilm"]() if kind == "minilm" else letters(*NORMALISED[kind])
    text = f"x {character} y"
    touching = [token for token in of(tokenizer, text) if token.start < 2 + len(character) and token.end > 2]
    assert {token.text for token in touching} == {character}
    assert (min(token.start for token in touching), max(token.end for token in touching)) == (2, 2 + len(character))
    units = Segmenter().units(of(tokenizer, text), "character")
    assert character in [unit.text for unit in units]


CLUSTER = st.sampled_from(
    [*FLAG, "a", ACUTE, "\u200d", "\u0600", "\u0903", "\r", "\n", "\u1100", "\u1161", "\U0001f469"]
)


@given(st.lists(CLUSTER, max_size=14).map("".join))
def test_characters_begin_where_unicode_says(text: str) -> None:
    apart = text.replace("\r\n", "\r\t")  # a line end counts as two characters: so does this
    assert character_starts(text) == {len(text), *(match.start() for match in regex.finditer(r"\X", apart))}


ROWS = {
    "flags": FLAG,
    "accents": ACUTE,
    "joined": "\U0001f469\u200d",
    "tags": "\U000e0067",
    "syllables": "\u1161",
    "numbers": "\u0600",
    "halant": "\u0915\u094d",
    "lines": "\r\n",
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("name", real)
def test_a_row_of_them_takes_time_that_follows_its_length(name: str, row: str) -> None:
    tokenizer = real[name]()

    def seconds(length: int) -> float:
        text = (row * length)[:length]
        times = []
        for _ in range(3):
            started = time.process_time()
            of(tokenizer, text)
            times.append(time.process_time() - started)
        return min(times)

    short, long = seconds(4_000), seconds(32_000)
    # eight times the text; the square of it would be 64. Twice as much again for memory and a busy machine, and a
    # tenth of a second for what is too short to time.
    assert long < 16 * short + 0.1


def test_the_work_ends_when_nobody_waits() -> None:
    asked: list[int] = []

    def gone() -> bool:
        asked.append(len(asked))
        return len(asked) > 4  # it has begun to write the tokens by then

    with pytest.raises(Cancelled):
        tokens_from_text(real["smollm2"](), FLAG * 20_000, should_stop=gone)


def unknown() -> dict[str, Tokenizer]:
    """Tokenizers without a token for what they do not know."""
    return {
        "unigram": Tokenizer(Unigram([("a", -1.0), ("b", -2.0), (" ", -2.0)])),
        "word level": Tokenizer(WordLevel({"a": 0, "b": 1}, unk_token="?")),
        "word piece": Tokenizer(WordPiece({"a": 0, "b": 1, "##b": 2}, unk_token="?")),
    }


@pytest.mark.parametrize("kind", unknown())
def test_a_character_without_a_token_is_named(kind: str) -> None:
    backend = unknown()[kind]
    backend.pre_tokenizer = pre_tokenizers.Whitespace() if kind != "unigram" else None
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    assert [token.text for token in of(tokenizer, "a b") if token.text != " "] == ["a", "b"]
    with pytest.raises(CharacterUnknown, match=r"U\+2603 \(SNOWMAN\)") as caught:
        of(tokenizer, "a b \N{SNOWMAN} a")
    assert (caught.value.position, caught.value.character) == (4, "\N{SNOWMAN}")
