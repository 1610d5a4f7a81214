"""Characters that nobody can see, and those that turn the text around them, are shown by a sign in their own token."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.browser.screen import Screen

UNSEEN = {
    "\u200b": "⟨U+200B⟩",
    "\u00ad": "⟨U+00AD⟩",
    "\ufeff": "⟨U+FEFF⟩",
    "\u2028": "⟨U+2028⟩",
    "\u202e": "⟨U+202E⟩",
    "\x00": "⟨U+0000⟩",
    "\ufff9": "⟨U+FFF9⟩",
    "\ue000": "⟨U+E000⟩",
    "\u2060": "⟨U+2060⟩",
    "\u2009": "⟨U+2009⟩",
    "\u200f": "⟨U+200F⟩",
}


def test_what_is_not_seen_has_its_sign(screen: Screen) -> None:
    text = "a" + "b".join(UNSEEN) + "f"
    screen.run(text)
    screen.point_at(2, 2)
    screen.part("readout").locator("data").wait_for()
    strip = screen.part("strip").text_content() or ""
    labels = [*screen.row_labels(), *screen.col_labels()]
    readout = screen.part("readout").text_content() or ""
    assert readout.count("⟨U+200B⟩") == 2
    names = screen.js("() => [...document.querySelectorAll('.strip [aria-label]')].map((one) => one.ariaLabel)")
    for character, sign in UNSEEN.items():
        assert sign in strip
        assert any(label.startswith(sign) for label in labels), sign
        assert not any(character in shown for shown in (strip, readout, *labels, *names)), sign


def test_no_token_turns_another(screen: Screen) -> None:
    """After an override, and between words that run the other way, tokens stand in the order of the text."""
    screen.run("sptth end \u202e/moc.elpmaxe القط one القط يجلس two")
    places = screen.js(
        """() => [...document.querySelectorAll('.strip .tok:not(.piece, .is-special), .strip .pieces-text')]
            .map((node) => node.getClientRects()[0].toJSON())"""
    )
    assert len(places) > 10
    for one, other in pairwise(places):  # to the right of it, or on a later line; half a pixel for rounding
        assert other["left"] >= one["right"] - 0.5 or other["top"] >= one["bottom"] - 0.5
    labels = screen.js(
        "() => [...document.querySelectorAll('[data-ref=plot] .xtick text')].map((one) => one.textContent)"
    )
    assert labels
    assert all(label.count("\u2068") == 1 and label.endswith("\u2069") for label in labels)


@pytest.mark.parametrize("joined", ["👩\u200d💻", "❤\ufe0f", "می\u200cخ"], ids=ascii)
def test_what_joins_what_is_seen_stays(screen: Screen, joined: str) -> None:
    """A sign in their midst would take an emoji or a word apart. The page's module is asked: the fake cuts them up."""
    shown = screen.page.evaluate(
        """async (text) => (await import('/static/js/labels.js')).labelText({ text, parts: 1 })""", joined
    )
    assert shown == f"\u2068{joined}\u2069"
