"""The way back: to the last view from other pages and on a second visit, and by history to heads, runs and texts."""

from __future__ import annotations

import json
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import WIDE, OpenScreen
from tests.browser.screen import Screen, until

REST_MS = 1_300  # a head is rested on after one second
AT_ONCE = "(hash) => { location.hash = hash; }"


def length(screen: Screen) -> int:
    """How many entries the tab's history has."""
    return int(screen.js("() => history.length"))


def head(screen: Screen) -> tuple[str | None, str | None]:
    """Layer and head in the address."""
    return screen.fragment("layer"), screen.fragment("head")


def rest(screen: Screen) -> None:
    """Looks at a head for a while."""
    screen.page.wait_for_timeout(REST_MS)


def choose(screen: Screen, layer: str, number: str = "3") -> None:
    """Chooses a head in its lists."""
    screen.part("layer").select_option(layer)
    screen.part("head").select_option(number)
    assert head(screen) == (layer, number)


@pytest.mark.parametrize("link", ["nav-explore", "brand"])
def test_other_pages_lead_back_to_the_last_view(shown: Screen, link: str) -> None:
    choose(shown, "7")
    run = shown.run_id
    shown.part("scale").select_option("linear")
    for page in ("/compare", "/docs", "/nothing-is-here"):
        shown.witness.allow("404")
        shown.page.goto(f"{shown.base}{page}")
        shown.page.locator(".brand" if link == "brand" else f'[data-ref="{link}"]').click()
        until(lambda: shown.fragment("run") == run)
        assert head(shown) == ("7", "3")
        assert shown.fragment("scale") == "linear"
        shown.wait_for_map()
        assert shown.page.input_value("#text").startswith("When Mary")


def test_a_second_visit_returns_to_the_last_view(open_screen: OpenScreen, fake_server: str) -> None:
    first = open_screen(fake_server, alone=True)
    first.run("When Mary and John went to the store")
    choose(first, "7")
    first.wait_for_map()
    assert "Mary" not in first.js("() => JSON.stringify({...localStorage})")
    page = first.page.context.new_page()
    second = Screen(page, fake_server, first.witness)
    second.goto("")
    second.wait_for_map()
    assert (second.run_id, *head(second)) == (first.run_id, "7", "3")
    page.go_back()
    assert page.url == "about:blank"  # it is one entry: nothing that Back would have to undo first


def test_a_link_with_its_text_leaves_no_text_behind(shown: Screen) -> None:
    """What a second visit returns to is kept without the text that a link carried."""
    run = shown.run_id
    shown.js(AT_ONCE, f"run={run}&layer=4&head=2&text=a+private+letter")
    until(lambda: shown.part("layer").input_value() == "4")
    until(lambda: "layer=4" in shown.js("() => JSON.stringify({...localStorage})"))
    assert "private" not in shown.js("() => JSON.stringify({...localStorage})")


def test_a_last_view_whose_run_is_gone_begins_anew(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server, alone=True)
    gone = screen.run("this will be forgotten soon")
    with urlopen(Request(f"{fake_server}/api/runs/{gone}", method="DELETE"), timeout=10):
        pass
    screen.witness.allow("404")
    second = Screen(screen.page.context.new_page(), fake_server, screen.witness)
    second.page.set_viewport_size(WIDE)
    second.goto("")
    until(lambda: second.fragment("run") not in (None, gone))  # the first example, as on a first visit
    second.wait_for_map()
    expect(second.part("problem")).to_be_hidden()


def test_back_undoes_a_head_that_was_rested_on(shown: Screen) -> None:
    rest(shown)
    before = length(shown)
    for layer in ("5", "9", "12"):
        shown.part("layer").select_option(layer)
        rest(shown)
    assert length(shown) == before + 3
    for layer in ("9", "5", "0"):
        shown.page.go_back()
        until(lambda layer=layer: shown.fragment("layer") == layer)  # type: ignore[misc]
        shown.wait_for_map()
        assert shown.part("layer").input_value() == layer
    shown.page.go_forward()
    until(lambda: shown.fragment("layer") == "5")


def test_a_walk_is_one_entry(shown: Screen) -> None:
    rest(shown)
    before = length(shown)
    shown.part("overview-title").click()
    for _ in range(6):
        shown.page.keyboard.press("]")
    until(lambda: shown.fragment("layer") == "6")
    rest(shown)
    assert length(shown) == before + 1
    shown.page.go_back()
    until(lambda: shown.fragment("layer") == "0")
    shown.wait_for_map()


def test_a_walk_that_ends_where_it_began_is_no_entry(shown: Screen) -> None:
    rest(shown)
    before = length(shown)
    shown.part("overview-title").click()
    for key in "]][[":
        shown.page.keyboard.press(key)
    rest(shown)
    assert shown.fragment("layer") == "0"
    assert length(shown) == before


def test_zoom_token_scale_and_sort_are_no_entries(shown: Screen) -> None:
    rest(shown)
    before = length(shown)
    shown.page.locator('.tok[data-i="3"]').click()
    shown.part("scale").select_option("linear")
    shown.part("zoom-in").click()
    box = shown.part("heads").bounding_box()
    assert box is not None
    for x in (30, 60, 90):
        shown.page.mouse.move(box["x"] + x, box["y"] + 60)
    shown.page.get_by_role("tab", name="Table").click()
    shown.part("table-head").locator("button").nth(3).click()
    rest(shown)
    assert shown.fragment("rows") is not None
    assert shown.fragment("heads") == "table"
    assert length(shown) == before


def test_what_was_read_at_a_head_is_there_again(shown: Screen) -> None:
    shown.page.locator('.tok[data-i="3"]').click()
    rest(shown)
    choose(shown, "8")
    rest(shown)
    shown.page.locator('.tok[data-i="5"]').click()
    shown.page.go_back()
    until(lambda: head(shown) == ("0", "0"))
    assert shown.fragment("token") == "3"
    shown.page.go_forward()
    until(lambda: head(shown) == ("8", "3"))
    assert shown.fragment("token") == "5"


def test_back_to_a_run_restores_the_whole_of_its_text(open_screen: OpenScreen, small_server: str) -> None:
    """Its tokens hold only what was kept of it."""
    screen = open_screen(small_server)
    screen.witness.allow("422")
    long = " ".join(f"w{number}" for number in range(99))
    screen.type(long)
    screen.part("run").click()
    screen.part("problem").get_by_role("button", name="cut the end").click()
    screen.wait_for_map(30)
    first = screen.run_id
    screen.run("another text altogether", 30)
    screen.page.go_back()
    until(lambda: screen.fragment("run") == first)
    screen.wait_for_map(30)
    expect(screen.page.locator("#text")).to_have_value(long)
    expect(screen.part("stale")).to_be_hidden()
    assert long not in json.dumps(screen.js("() => ({...localStorage})"))
