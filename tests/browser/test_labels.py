"""Inputs that broke other viewers: every token is labelled with exactly its own text, and none of it becomes markup."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen

HARD = {
    "repeated words": "the cat saw the cat",
    "numbers with exponents": "1E1 2A 3E2",
    "dates": "2024-01 2024-02 2024-03",
    "tags": "<s> <b>x</b> &lt;",
    "nested signs": 'a<b<c <b>x</b> "quoted" &lt;',
    "script by handler": "<img src=x onerror=alert(1)>",
    "script": "</script><script>alert(1)</script>",
    "TeX": "$x^2$",
    "TeX link": r"$\href{javascript:alert(1)}{x}$",
    "pieces of a character": "北京 👩‍💻 ok",
    "Arabic": "القط يجلس على السجادة",
    "line ends and tabs": "one\n\ttwo\n\nthree",
}
MARKS = str.maketrans({" ": "·", "\n": "↵", "\r": "␍", "\t": "⇥"})
JOINER = "\u200d"  # the fake cuts an emoji apart: what joined it is by itself then, and has a sign
SIGN = "⟨U+200D⟩"


def label_of(token: dict[str, object]) -> str:
    """What a token's label must say."""
    text = SIGN if token["text"] == JOINER else str(token["text"]).translate(MARKS)
    return f"{text} {token['part']}/{token['parts']}" if token["parts"] != 1 else text


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_labels_are_verbatim_and_inert(screen: Screen, text: str) -> None:
    elements = "() => document.querySelectorAll('script, img, b, a, iframe').length"
    screen.run(text)
    expect(screen.part("score")).not_to_be_empty()  # its words are the last to come
    before = screen.js(elements)
    tokens = screen.tokens()
    labels = [label_of(token) for token in tokens]
    assert [label.replace("\u200b", "") for label in screen.row_labels()] == labels
    assert screen.col_labels() == labels
    _strip_holds_the_text(screen, tokens, text)
    _readout_holds_the_label(screen, labels)
    assert screen.js(elements) == before
    assert screen.js("() => document.title") == "Everyhead: see every attention head of a text"


def _strip_holds_the_text(screen: Screen, tokens: list[dict[str, object]], text: str) -> None:
    """Each token's element, or its bracket, says the token's text; together they are the text."""
    shown = screen.js(
        """() => [...document.querySelectorAll('[data-ref=strip] .tok')].map((node) =>
            node.closest('.pieces')?.querySelector('.pieces-text').textContent ?? node.textContent)"""
    )
    plain = [str(token["text"]).strip().replace(JOINER, SIGN) for token in tokens]
    assert [one.strip(" ·↵⇥␍") for one in shown] == [one.strip(" ·↵⇥␍") for one in plain]
    groups = screen.js(
        """() => [...document.querySelectorAll('.strip .tok:not(.piece, .is-special), .strip .pieces-text')]
            .map((node) => node.textContent).join('')"""
    )
    bare = groups.translate(str.maketrans("", "", " ·↵⇥␍\n\t"))
    assert bare.replace(SIGN, JOINER) == "".join(text.split())


def _readout_holds_the_label(screen: Screen, labels: list[str]) -> None:
    """Pointing at the first cell of the last row reads both tokens verbatim."""
    last = len(labels) - 1
    screen.point_at(last, 0)
    screen.part("readout").locator("data").wait_for()
    read = screen.part("readout").locator(".token-label").all_text_contents()
    assert read == [labels[last], labels[0]]


def test_repeated_tokens_have_a_row_and_a_column_each(screen: Screen) -> None:
    screen.run("the cat saw the cat")
    count = len(screen.tokens())
    shape = screen.js(
        "() => { const z = document.querySelector('[data-ref=plot]').data[0].z; return [z.length, z[0].length]; }"
    )
    assert shape == [count, count]
    assert len(screen.row_labels()) == count


def test_right_to_left_text_is_isolated(screen: Screen) -> None:
    screen.run("القط يجلس")
    direction = screen.js("() => getComputedStyle(document.querySelector('.strip-line')).direction")
    assert direction in ("rtl", "ltr")  # as the first strong character of the line says; a special token may come first
    assert screen.js("() => getComputedStyle(document.querySelector('[data-ref=readout]')).direction") == "ltr"
    screen.point_at(1, 0)
    assert screen.part("readout").locator("bdi").count() == 2


def test_pieces_of_one_character_tell_their_bytes(screen: Screen) -> None:
    screen.run("猫 ok")
    pieces = screen.page.locator(".pieces").first.locator(".tok")
    assert pieces.all_text_contents() == ["1/3", "2/3", "3/3"]
    pieces.nth(1).hover()
    strip = screen.part("strip")
    screen.page.wait_for_timeout(200)
    assert "8C" in (strip.get_attribute("title") or "")
