"""What could not be loaded once is told with its reason and asked for again on request; the focus stays on the page."""

from __future__ import annotations

import json
import re
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenScreen, deep
from tests.browser.screen import Screen, until

REQUESTS = {
    "overview": re.compile(r"/overview\?"),
    "heads": re.compile(r"/heads\?site=[a-z.]+$"),
    "layers": re.compile(r"/layers\?"),
    "similarity": re.compile(r"/similarity\?.*format=json"),
    "distances": re.compile(r"/similarity\?.*format=npy"),
    "pairs": re.compile(r"/heads\?.*pairs="),
    "weights": re.compile(r"/weights\?"),
}
WHY = {"en": "does not answer", "zh": "没有响应"}
AGAIN = {"en": "Try again", "zh": "重试"}

# What is asked for, the rest of the address, where it is told, what stands there instead once it is loaded.
PLACES = [
    ("overview", "heads=pictures", "overview-state", "heads"),
    ("heads", "heads=pictures", "heads-trouble", "score"),
    ("heads", "heads=scatter&y=self", "scatter-state", "scatter-plot"),
    ("heads", "heads=table", "table-box", "score"),
    deep("heads", "heads=alike&alike=points&colour=role", "heads-trouble", "score"),
    ("layers", "heads=layers", "layers-box", "layers-box"),
    deep("similarity", "heads=layers", "layers-box", "layers-box"),
    ("distances", "heads=alike", "alike-state", "alike-map"),
    ("pairs", "pairs=7:3", "link-answer", "link-answer"),
    ("weights", "heads=pictures", "head-state", "plot"),
]


def opened_without(screen: Screen, run: str, wanted: str, rest: str, *, times: int = 1, lang: str = "en") -> None:
    """Opens a run while the first requests of one kind come to nothing."""
    screen.witness.allow("ERR_")
    screen.page.route(REQUESTS[wanted], lambda route: route.abort(), times=times)
    screen.goto(f"#run={run}&{rest}", lang)


def asked(screen: Screen, wanted: str) -> int:
    """How often the page asked for it."""
    return len([url for url in screen.witness.requests if REQUESTS[wanted].search(url)])


def again(screen: Screen, part: str, lang: str = "en") -> Locator:
    """The button in a part of the page."""
    return screen.part(part).get_by_role("button", name=AGAIN[lang])


def is_adrift(screen: Screen) -> bool:
    """Whether the focus is nowhere."""
    return bool(screen.js("() => document.activeElement === document.body"))


@pytest.fixture(scope="module")
def run(fake_server: str) -> str:
    """A run of a short text, made without a page."""
    body = json.dumps({"model": "fake-30x9", "text": "When Mary and John went to the store"}).encode()
    with urlopen(Request(f"{fake_server}/api/runs", body, {"Content-Type": "application/json"}), timeout=30) as answer:
        return str(json.load(answer)["id"])


@pytest.mark.parametrize(("wanted", "rest", "told", "loaded"), PLACES)
def test_what_could_not_be_loaded_is_asked_for_again(
    screen: Screen, run: str, wanted: str, rest: str, told: str, loaded: str
) -> None:
    opened_without(screen, run, wanted, rest)
    expect(screen.part(told)).to_contain_text(WHY["en"])
    before = asked(screen, wanted)
    again(screen, told).press("Enter")
    expect(again(screen, told)).to_have_count(0)
    expect(screen.part(loaded)).to_be_visible()
    expect(screen.part(told)).not_to_contain_text(WHY["en"])
    assert asked(screen, wanted) == before + 1
    assert not is_adrift(screen)


@pytest.mark.parametrize("lang", [deep("en"), "zh"])
def test_asked_in_vain_it_can_be_asked_once_more(
    open_screen: OpenScreen, fake_server: str, run: str, lang: str
) -> None:
    other = open_screen(fake_server, lang=lang)
    opened_without(other, run, "heads", "heads=scatter&y=self", times=2, lang=lang)
    expect(other.part("scatter-state")).to_contain_text(WHY[lang])
    with other.page.expect_request(REQUESTS["heads"]):
        again(other, "scatter-state", lang).press("Enter")
    expect(again(other, "scatter-state", lang)).to_be_visible()
    assert not is_adrift(other)
    again(other, "scatter-state", lang).click()
    expect(other.part("scatter-plot")).to_be_visible()
    expect(other.part("score")).not_to_be_empty()


def test_one_press_asks_for_all_that_is_missing(screen: Screen, run: str) -> None:
    screen.page.route(REQUESTS["heads"], lambda route: route.abort(), times=1)
    opened_without(screen, run, "overview", "heads=pictures&pairs=7:3")
    expect(screen.part("overview-state")).to_contain_text(WHY["en"])
    expect(screen.part("heads-trouble")).to_be_hidden()  # it would say the same once more
    again(screen, "overview-state").click()
    expect(screen.part("heads")).to_be_visible()
    expect(screen.part("score")).not_to_be_empty()
    assert (asked(screen, "overview"), asked(screen, "heads"), asked(screen, "pairs")) == (2, 2, 1)  # no more than that


def test_a_link_that_could_not_be_asked_for_opens_its_best_head_in_the_end(shown: Screen) -> None:
    shown.witness.allow("ERR_")
    shown.page.route(REQUESTS["pairs"], lambda route: route.abort(), times=1)
    shown.part("mark").click()
    for index in (10, 4):
        shown.part("strip").locator(f'.tok[data-i="{index}"]').click()
    expect(shown.part("link-answer")).to_contain_text(WHY["en"])
    again(shown, "link-answer").click()
    heads = shown.part("link-answer").locator(".link-head")
    expect(heads.first).to_have_attribute("aria-pressed", "true")
    expect(shown.part("mark")).to_be_focused()
    best = [heads.first.get_attribute(name) for name in ("data-layer", "data-head")]
    until(lambda: [shown.fragment("layer"), shown.fragment("head")] == best)


def test_the_focus_goes_to_the_tab_that_is_open_then(screen: Screen, run: str) -> None:
    opened_without(screen, run, "heads", "heads=alike&alike=points&colour=role")
    expect(again(screen, "heads-trouble")).to_be_visible()
    screen.page.locator('[data-tab="pictures"]').click()
    again(screen, "heads-trouble").press("Enter")
    expect(again(screen, "heads-trouble")).to_have_count(0)
    assert screen.js("() => document.activeElement.dataset.tab") == "pictures"
