"""A marked link is of words: another run of the same text asks for the same characters, of another text it says so."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen, deep
from tests.browser.screen import Screen, until
from tests.browser.test_pairs import assert_opened, mark, settled, shown_in

TEXT = "When Mary and John went to the store, John gave a drink to"
OTHER = {"en": "marked on another text", "zh": "标记于另一段文本"}
NO_TOKEN = {"en": "no such token here", "zh": "这里没有这个词元"}


def without_special(screen: Screen) -> None:
    """The next run's tokens all stand one place before."""
    screen.page.locator("details.options summary").click()
    screen.part("special").uncheck()


def names(screen: Screen) -> list[str]:
    """The links as the page lists them, without their positions and notes."""
    rows = screen.part("link-list").locator(".link-text").all_inner_texts()
    return [row.split("(")[0].strip() for row in rows]


def test_the_same_text_with_other_tokens_is_asked_for_the_same_words(shown: Screen) -> None:
    mark(shown, 10, 4)
    assert_opened(shown, "10:4")
    before = names(shown)
    without_special(shown)
    shown.run(TEXT)
    assert_opened(shown, "9:3")  # and the best head for them is open
    assert names(shown) == before
    expect(shown.part("link-list")).not_to_contain_text(OTHER["en"])
    shown.page.go_back()
    settled(shown, "10:4")
    shown.wait_for_map()
    assert names(shown) == before


def test_a_link_of_the_address_is_of_its_runs_words(shown: Screen) -> None:
    shown.js("() => { location.hash += '&pairs=10-11:4'; }")
    settled(shown, "10-11:4")
    without_special(shown)
    shown.run(TEXT)
    settled(shown, "9-10:3")


@pytest.mark.parametrize("lang", ["en", deep("zh")])
def test_another_text_has_its_own_words_at_these_places(open_screen: OpenScreen, fake_server: str, lang: str) -> None:
    screen = open_screen(fake_server, lang=lang)
    screen.run(TEXT)
    mark(screen, 10, 4)
    settled(screen, "10:4")
    screen.run("Yesterday the tall man and his two dogs ran over a green field")
    settled(screen, "10:4")
    row = screen.part("link-list").locator("li")
    expect(row).to_contain_text(OTHER[lang])
    without_special(screen)
    screen.run("Yesterday the tall man and his two dogs ran over a green field")
    settled(screen, "9:3")  # the words that it was said to name
    expect(row).to_contain_text(OTHER[lang])
    screen.run(TEXT)
    settled(screen, "9:3")  # the words that were marked
    expect(row).not_to_contain_text(OTHER[lang])


@pytest.mark.parametrize("lang", [deep("en"), "zh"])
def test_a_token_that_a_run_lacks_is_not_another_one(open_screen: OpenScreen, fake_server: str, lang: str) -> None:
    screen = open_screen(fake_server, lang=lang)
    screen.run(TEXT)
    mark(screen, 10, 0)
    settled(screen, "10:0")
    before = names(screen)
    without_special(screen)
    screen.run(TEXT)
    row = screen.part("link-list").locator("li")
    expect(row).to_contain_text(NO_TOKEN[lang])
    assert [name.replace(NO_TOKEN[lang], "").strip() for name in names(screen)] == before
    assert screen.fragment("pairs") is None
    screen.part("special").check()
    screen.run(TEXT)
    settled(screen, "10:0")
    expect(row).not_to_contain_text(NO_TOKEN[lang])


def test_a_run_made_here_opens_its_best_head_unless_another_was_chosen(shown: Screen) -> None:
    mark(shown, 10, 4)
    assert_opened(shown, "10:4")
    shown.choose_model("fake-pairs")
    shown.run(TEXT)
    assert_opened(shown, "10:4")
    shown.part("layer").select_option("2")
    shown.part("head").select_option("5")
    shown.choose_model("fake-30x9")
    shown.run("When Mary and John went to the shop, John gave a drink to")
    settled(shown, "10:4")
    shown.wait_for_map()
    assert shown_in(shown) == ("2", "5")
    mark(shown, 9, 5)
    assert_opened(shown, "10:4,9:5")
    shown.choose_model("fake-pairs")
    shown.run(TEXT)
    assert_opened(shown, "10:4,9:5")


def test_a_link_that_is_run_here_shows_its_own_head(shown: Screen) -> None:
    shown.witness.allow("404")
    shown.js("() => { location.hash = 'run=eeee&layer=2&head=3&pairs=3:2&text=a+text+of+five+words'; }")
    shown.part("problem").get_by_role("button", name="Run it here").click()
    until(lambda: shown.fragment("run") not in (None, "eeee"))
    settled(shown, "3:2")
    shown.wait_for_map()
    assert shown_in(shown) == ("2", "3")


def cut(*pieces: str) -> list[dict[str, Any]]:
    """Tokens of a text that is cut so; what is in brackets or angles is special, and 鱼 is three tokens."""
    tokens: list[dict[str, Any]] = []
    end = 0
    for text in pieces:
        special = text[0] in "[<"
        stop = end + (0 if special else len(text))
        parts = 3 if text == "鱼" else 1
        same = {"text": text, "special": special, "start": end, "end": stop, "segment": 0, "parts": parts}
        tokens += [{**same, "part": part} for part in range(1, parts + 1)]
        end = stop
    return tokens


SETTLED = """async ([before, after, link]) => {
    const { settled } = await import('/static/js/link-places.js');
    const run = (id, source) => ({ id, tokens: { source, target: [] }, text: { characters: 20 } });
    const [one, other] = [run('a', before), run('b', after)];
    const sides = 'source>source';
    const there = settled(other, sides, settled(one, sides, link));
    return { there, back: settled(one, sides, there) };
}"""


def link(query: list[int], key: list[int]) -> dict[str, Any]:
    """A link as one marks it."""
    return {"query": query, "key": key}


@pytest.mark.parametrize(
    ("before", "after", "marked", "there"),
    [
        ((" Mary", " gave"), ("[CLS]", " ", "Mary", " ", "gave", "[SEP]"), link([1, 1], [0, 0]), link([4, 4], [2, 2])),
        (("🙂", "ab", "cd"), ("[CLS]", "🙂a", "bc", "d"), link([2, 2], [1, 1]), link([2, 3], [1, 2])),
        (("[CLS]", "ab", "[SEP]"), ("[A]", "ac", "[Z]"), link([2, 2], [1, 1]), None),
        (("[CLS]", "ab", "[SEP]"), ("[A]", "a", "b", "[X]", "[Z]"), link([2, 2], [0, 0]), link([4, 4], [0, 0])),
        (("猫", "鱼"), ("猫", "鱼"), link([2, 2], [0, 0]), link([2, 2], [0, 0])),  # one piece of a character
    ],
)
def test_tokens_that_cover_the_same_characters(
    screen: Screen,
    before: tuple[str, ...],
    after: tuple[str, ...],
    marked: dict[str, Any],
    there: dict[str, Any] | None,
) -> None:
    found = screen.js(SETTLED, [cut(*before), cut(*after), marked])
    assert {name: found["back"][name] for name in marked} == marked
    if there is None:  # another text
        assert found["there"]["apart"]
        return
    assert not found["there"]["apart"]
    assert {name: found["there"][name] for name in there} == there
