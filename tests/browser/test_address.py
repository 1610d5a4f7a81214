"""The address holds the view: a link opens the same picture, and says so when its run is gone."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen
from tests.browser.screen import WINDOW_ROUNDING, Screen, until

VIEW = ("layer", "head", "token", "dir", "rows", "cols", "pool", "scale")


def set_everything(screen: Screen) -> None:
    """Chooses something unusual in every part of the view."""
    screen.part("layer").select_option("7")
    screen.part("head").select_option("3")
    screen.part("direction").locator('[data-value="col"]').click()
    screen.page.locator('.tok[data-i="4"]').click()
    screen.js("() => { location.hash += '&pool=mean'; }")  # not to be clicked while nothing is pooled
    until(lambda: screen.part("pool").locator('[data-value="mean"]').get_attribute("aria-pressed") == "true")
    screen.part("scale").select_option("linear")
    screen.part("zoom-in").click()
    screen.wait_for_map()


def test_a_link_restores_the_view(shown: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    set_everything(shown)
    before = {name: shown.fragment(name) for name in VIEW}
    assert None not in before.values()
    other = open_screen(fake_server, f"#{urlsplit(shown.page.url).fragment}", alone=True)
    other.wait_for_map()
    assert {name: other.fragment(name) for name in VIEW} == before
    assert other.part("layer").input_value() == "7"
    assert other.part("head").input_value() == "3"
    expect(other.part("scale")).to_have_value("linear")
    for part, value in (("direction", "col"), ("pool", "mean")):
        expect(other.part(part).locator(f'[data-value="{value}"]')).to_have_attribute("aria-pressed", "true")
    expect(other.page.locator('.tok[data-i="4"]')).to_have_class(re.compile("is-chosen"))
    assert other.row_labels() == shown.row_labels()
    other.point_at(9, 5)
    expect(other.part("readout").locator("data")).to_be_visible()
    assert other.read_weight() == pytest.approx(shown.weight(9, 5, layer=7, head=3), rel=WINDOW_ROUNDING)
    assert other.page.input_value("#text") == shown.page.input_value("#text")


def test_nothing_of_the_view_or_text_is_in_path_or_query(shown: Screen) -> None:
    set_everything(shown)
    parts = urlsplit(shown.page.url)
    assert (parts.path, parts.query) == ("/", "lang=en")
    assert not any("Mary" in url for url in shown.witness.requests)


def test_copied_link_is_the_address(shown: Screen) -> None:
    shown.part("copy-link").click()
    expect(shown.part("notice")).to_be_visible()
    link = shown.js("() => navigator.clipboard.readText()")
    assert urlsplit(link).fragment == urlsplit(shown.page.url).fragment
    assert "Mary" not in link


def test_link_with_text_runs_again_on_a_server_that_lacks_the_run(
    shown: Screen, open_screen: OpenScreen, small_server: str
) -> None:
    shown.part("layer").select_option("5")
    shown.part("copy-text").click()
    expect(shown.part("notice")).to_be_visible()
    fragment = urlsplit(shown.js("() => navigator.clipboard.readText()")).fragment
    assert parse_qs(fragment)["text"] == [shown.page.input_value("#text")]
    other = open_screen(small_server, f"#{fragment}")
    other.witness.allow("404")
    expect(other.part("problem")).to_contain_text("no longer stored")
    assert other.page.input_value("#text") == shown.page.input_value("#text")
    other.part("problem").get_by_role("button").click()
    until(lambda: other.fragment("run") is not None and other.part("heads").is_visible())
    other.wait_for_map()
    assert other.fragment("layer") == "5"


def test_link_with_text_carries_the_options(open_screen: OpenScreen, small_server: str) -> None:
    first = open_screen(small_server)
    first.witness.allow("422")
    first.part("special").locator("xpath=ancestor::details").locator("summary").click()
    first.part("special").uncheck()
    first.type(" ".join(f"w{number}" for number in range(99)))
    first.part("run").click()
    first.part("problem").get_by_role("button", name="cut the end").click()
    first.wait_for_map(30)
    words = [token["text"] for token in first.tokens()]
    first.part("copy-text").click()
    fragment = urlsplit(first.js("() => navigator.clipboard.readText()")).fragment
    with urlopen(Request(f"{small_server}/api/runs/{first.run_id}", method="DELETE"), timeout=10):
        pass
    other = open_screen(small_server, f"#{fragment}")
    other.witness.allow("404")
    expect(other.part("special")).not_to_be_checked()
    other.part("problem").get_by_role("button", name="Run it here").click()
    until(lambda: other.part("heads").is_visible())
    other.wait_for_map(30)
    assert [token["text"] for token in other.tokens()] == words


def test_a_long_text_is_not_offered_in_a_link(screen: Screen) -> None:
    screen.run("lamp " * 420)  # 2,100 characters
    expect(screen.part("copy-link")).to_be_visible()
    expect(screen.part("copy-text")).to_be_hidden()


def test_a_link_to_a_run_that_is_gone_says_so(shown: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    run = shown.run("this run will be forgotten")
    request = Request(f"{fake_server}/api/runs/{run}", method="DELETE")
    with urlopen(request, timeout=10):
        pass
    other = open_screen(fake_server, f"#run={run}&layer=3&head=1")
    other.witness.allow("404")
    expect(other.part("problem")).to_contain_text("no longer stored")
    expect(other.part("problem")).to_contain_text("does not carry its text")
    expect(other.part("problem").get_by_role("button")).to_have_count(0)


def test_only_a_link_that_carries_its_text_offers_to_run_it(shown: Screen) -> None:
    """The text in the field is of another run."""
    shown.witness.allow("404")
    problem = shown.part("problem")
    go = "(hash) => { location.hash = hash; }"
    shown.js(go, "run=eeee&layer=2&head=3")
    expect(problem).to_contain_text("does not carry its text")
    expect(problem.get_by_role("button")).to_have_count(0)
    shown.js(go, "run=eeee&layer=2&head=3&text=the+text+of+the+link")
    expect(problem).to_contain_text("Its text is in the link")
    shown.type("what was typed instead")
    expect(problem.get_by_role("button")).to_have_count(0)
    shown.type("the text of the link")
    problem.get_by_role("button", name="Run it here").click()
    until(lambda: shown.fragment("run") not in (None, "eeee"))
    shown.wait_for_map()
    assert (shown.fragment("layer"), shown.fragment("head")) == ("2", "3")
    assert "".join(token["text"] for token in shown.tokens()[1:]) == "the text of the link"


def test_back_returns_to_the_run_before(shown: Screen) -> None:
    first = shown.run_id
    second = shown.run("another text altogether")
    assert second != first
    shown.page.go_back()
    until(lambda: shown.fragment("run") == first)
    shown.wait_for_map()
    assert shown.row_labels()[1] == "When"
    text = shown.page.locator("#text")
    expect(text).to_have_value(re.compile("^When Mary"))
    expect(shown.part("stale")).to_be_hidden()
    shown.type("something typed meanwhile")
    shown.page.go_forward()
    until(lambda: shown.fragment("run") == second)
    shown.wait_for_map()
    expect(text).to_have_value("something typed meanwhile")
    expect(shown.part("stale")).to_be_visible()


def test_a_changed_fragment_changes_the_view(shown: Screen) -> None:
    shown.js("() => { location.hash = location.hash.replace('layer=0', 'layer=12'); }")
    until(lambda: shown.part("layer").input_value() == "12")
    shown.wait_for_map()


def test_a_nonsense_fragment_is_clamped(shown: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    run = shown.run_id
    other = open_screen(fake_server, f"#run={run}&layer=999&head=-3&token=99999&rows=5:2&cols=x&pool=median&scale=log")
    other.wait_for_map()
    assert (other.fragment("layer"), other.fragment("head"), other.fragment("token")) == ("29", "0", None)
