"""Small things that a reader stumbled over: what is cut off, said twice, said untruly, or left blank."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import WIDE, OpenScreen, deep
from tests.browser.screen import Screen, until

SENTENCE = "When Mary and John went to the store, John gave a drink to the unreasonably thirsty shopkeeper. "
PARAGRAPHS = "\n".join(SENTENCE * 3 for _ in range(4))
TABLET = {"width": 1024, "height": 768}
PHONE = {"width": 390, "height": 844}
LARGE = {"width": 1920, "height": 1080}
LOW = {"width": 1440, "height": 700}  # the card scrolls
TABS = ("Pictures", "Table", "Scatter", "Alike", "Layers")


def assert_nothing_cut(screen: Screen) -> None:
    """No part of the strip lies beyond the box that it scrolls in."""
    wide, room = screen.js(
        "() => { const box = document.querySelector('[data-ref=strips]'); return [box.scrollWidth, box.clientWidth]; }"
    )
    assert wide <= room


def test_the_strip_fits_after_it_has_lain_in_a_wider_place(open_screen: OpenScreen, fake_server: str) -> None:
    """Lines out of sight are not laid out again: what they once took must not count as what they need."""
    screen = open_screen(fake_server, viewport={"width": 590, "height": 844})
    screen.run("\n".join([PARAGRAPHS] * 3))  # what lies near the screen is laid out all the same
    box = screen.part("strips")
    for top in range(0, int(box.evaluate("(box) => box.scrollHeight")), 150):  # each line is drawn once
        box.evaluate("(box, top) => { box.scrollTop = top; }", top)
        screen.page.wait_for_timeout(30)
    box.evaluate("(box) => { box.scrollTop = 0; }")
    screen.page.wait_for_timeout(200)
    screen.page.set_viewport_size({"width": 390, "height": 844})
    screen.page.wait_for_timeout(300)
    assert_nothing_cut(screen)


@pytest.mark.parametrize("viewport", [TABLET, PHONE, WIDE])
def test_the_strip_fits_on_a_fresh_load(open_screen: OpenScreen, fake_server: str, viewport: dict[str, int]) -> None:
    screen = open_screen(fake_server, viewport=viewport)
    screen.run(PARAGRAPHS)
    screen.page.reload()
    screen.wait_for_map()
    assert_nothing_cut(screen)


@pytest.mark.parametrize("viewport", [LOW, WIDE, LARGE])
def test_the_page_ends_where_its_parts_end(open_screen: OpenScreen, fake_server: str, viewport: dict[str, int]) -> None:
    screen = open_screen(fake_server, viewport=viewport)
    screen.run(PARAGRAPHS)
    for tab in TABS:
        screen.page.get_by_role("tab", name=tab).click()
        high = screen.js("() => document.documentElement.scrollHeight")
        assert high <= viewport["height"], tab


@pytest.mark.parametrize("viewport", [TABLET, PHONE])
def test_a_page_that_scrolls_ends_where_its_parts_end(
    open_screen: OpenScreen, fake_server: str, viewport: dict[str, int]
) -> None:
    screen = open_screen(fake_server, viewport=viewport)
    screen.run(PARAGRAPHS)
    for tab in TABS:
        screen.page.get_by_role("tab", name=tab).click()
        high, end = screen.js(
            """() => [document.documentElement.scrollHeight,
                document.querySelector('main').getBoundingClientRect().bottom + scrollY]"""
        )
        assert high <= max(end, viewport["height"]) + 1, tab  # heights are rounded up


@pytest.mark.parametrize("path", ["/nothing-is-here", "/docs", "/compare", "/stages"])
@pytest.mark.parametrize("lang", ["en", deep("zh")])
def test_each_page_follows_the_theme_and_leads_to_the_others(
    open_screen: OpenScreen, fake_server: str, path: str, lang: str
) -> None:
    screen = open_screen(fake_server, alone=True, color_scheme="light")
    screen.witness.allow("404")
    page = screen.page
    page.goto(f"{fake_server}{path}?lang={lang}")
    before = _ground(page)
    page.locator("[data-ref=theme]").click()  # auto → light
    page.locator("[data-ref=theme]").click()  # light → dark
    until(lambda: _ground(page) < before / 2)
    page.reload()
    until(lambda: _ground(page) < before / 2)
    nav = page.locator("nav.pages")
    assert [one.get_attribute("href") for one in nav.get_by_role("link").all()] == ["/", "/compare"]
    assert page.locator(".brand").first.get_attribute("href") == "/"
    assert page.locator("header.bar [data-ref=language]").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _ground(page: Page) -> float:
    """How light the page's ground is, 0 to 255."""
    numbers = re.findall(r"[\d.]+", str(page.evaluate("getComputedStyle(document.body).backgroundColor")))
    return sum(map(float, numbers[:3])) / 3


def test_code_in_the_api_page_is_set_as_code(open_screen: OpenScreen, fake_server: str) -> None:
    page = open_screen(fake_server).page
    page.goto(f"{fake_server}/docs?lang=en")
    expect(page.locator("dd code").first).to_be_visible()
    assert "`" not in page.locator("main").inner_text()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_broken_id_is_told_from_a_run_that_is_gone(open_screen: OpenScreen, fake_server: str, lang: str) -> None:
    words = {"en": "damaged", "zh": "损坏"}[lang]
    gone = {"en": "no longer stored", "zh": "不再保存"}[lang]
    screen = open_screen(fake_server, "#run=3f2c&layer=1&head=2", lang=lang)
    screen.witness.allow("404")
    expect(screen.part("problem")).to_contain_text(words)
    expect(screen.part("overview-state")).not_to_contain_text(gone)
    screen.page.goto(f"{fake_server}/compare?lang={lang}#a=3f2c&b={'0' * 32}")
    sides = screen.page.locator("main")
    expect(sides).to_contain_text(words)
    expect(sides).to_contain_text(gone)
    screen.page.goto(f"{fake_server}/stages?lang={lang}#run=3f2c")
    expect(screen.part("finding")).to_contain_text(words)


def test_a_cut_text_is_not_over_the_limit_any_more(open_screen: OpenScreen, small_server: str) -> None:
    screen = open_screen(small_server)
    screen.witness.allow("422")
    screen.type(" ".join(f"w{number}" for number in range(99)))
    expect(screen.part("count")).to_contain_text("over the limit")
    screen.part("run").click()
    screen.part("problem").get_by_role("button", name="cut the end").click()
    screen.wait_for_map(30)
    count = screen.part("count")
    expect(count).to_contain_text("64 of 64 tokens")
    expect(count).not_to_have_class(re.compile("is-over"))
    screen.page.locator("#text").press_sequentially("x")
    expect(count).to_contain_text("over the limit")  # the next run has not been cut


def test_no_text_is_said_once(shown: Screen) -> None:
    shown.witness.allow("422")
    shown.type("")
    stale = shown.part("stale")
    expect(stale).to_have_text("Picture of the previous text.")  # Run has nothing to show instead
    shown.part("run").click()
    expect(shown.part("problem")).to_contain_text("no text")
    expect(stale).to_be_hidden()


def test_a_short_token_is_in_one_piece(open_screen: OpenScreen, fake_server: str) -> None:
    """At a line's start the space before a word stayed on the line above, with a ring of its own."""
    screen = open_screen(fake_server)
    screen.run(SENTENCE * 6)
    lines = screen.js(
        """() => {
            const nodes = [...document.querySelectorAll('[data-ref=strip] .tok')];
            const ends = nodes.map((node) => [...node.getClientRects()].length);
            const tops = new Set(nodes.map((node) => node.getBoundingClientRect().top));
            return [ends.filter((pieces) => pieces !== 1).length, tops.size];
        }"""
    )
    assert lines[1] > 3, "it must wrap"
    assert lines[0] == 0
    text = screen.js("() => document.querySelector('[data-ref=strip]').textContent")
    assert SENTENCE.strip() in text


@pytest.mark.parametrize("viewport", [WIDE, PHONE])
def test_options_leave_the_count_its_line(open_screen: OpenScreen, fake_server: str, viewport: dict[str, int]) -> None:
    screen = open_screen(fake_server, viewport=viewport)
    screen.type("one two three")
    expect(screen.part("count")).to_contain_text("4 of 8,192 tokens")
    summary = screen.page.locator(".options summary")
    before, at = screen.part("count").bounding_box(), summary.bounding_box()
    summary.click()
    after, then = screen.part("count").bounding_box(), summary.bounding_box()
    assert before is not None
    assert after is not None
    assert at is not None
    assert then is not None
    assert after["height"] == before["height"]
    assert (then["x"], then["y"]) == (at["x"], at["y"])  # it does not move away from the pointer


def test_without_a_server_the_small_picture_stands_in(shown: Screen) -> None:
    shown.witness.allow("ERR_")
    shown.page.route("**/api/**", lambda route: route.abort())
    shown.part("layer").select_option("9")
    state = shown.part("head-state")
    expect(state).to_contain_text("small picture, enlarged")
    expect(state).to_contain_text("does not answer")
    until(lambda: "|9|" in (shown.part("plot").get_attribute("data-key") or ""))
    expect(shown.part("plot")).to_be_visible()
    expect(shown.part("plot")).to_have_attribute("data-exact", "false")
    expect(shown.part("pooling")).to_have_text(re.compile("coarse"))
    figure, box = shown.part("plot").bounding_box(), state.bounding_box()
    assert figure is not None
    assert box is not None
    assert box["height"] < figure["height"] / 3, "it may not cover the picture that it speaks of"
    shown.page.unroute("**/api/**")
    state.get_by_role("button", name="Try again").click()
    shown.wait_for_map()
    expect(state).to_be_hidden()


def test_that_the_server_is_gone_is_said_once(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)
    screen.choose_model("fake-seq2seq")
    screen.run("nobody hears this")
    screen.witness.allow("ERR_")
    screen.page.route("**/api/**", lambda route: route.abort())
    screen.part("sites").locator('[data-value="decoder.cross"]').click()
    expect(screen.part("overview-state")).to_contain_text("does not answer")
    expect(screen.part("head-state")).to_contain_text("Try again")
    assert screen.page.locator("main").inner_text().count("does not answer") == 1
    screen.page.unroute("**/api/**")
    screen.part("overview-state").get_by_role("button").click()
    screen.part("head-state").get_by_role("button").click()
    screen.wait_for_map()
    expect(screen.part("score")).not_to_be_empty()


def test_the_time_of_preparing_the_model_is_apart(shown: Screen) -> None:
    run = shown.run_id

    def slow(route: object) -> None:
        answer = route.fetch()  # type: ignore[attr-defined]
        summary = answer.json()
        summary["timings"].update(wait_ms=100, prepare_ms=15_000, total_ms=15_920)
        route.fulfill(response=answer, json=summary)  # type: ignore[attr-defined]

    shown.page.route(f"**/api/runs/{run}", slow)
    shown.page.reload()
    expect(shown.part("count")).to_contain_text(re.compile(r"820 ms, after 15(\.0)? s of preparing the model"))
