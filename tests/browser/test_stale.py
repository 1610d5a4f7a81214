"""Answers that come late or out of order never leave a picture of something else."""

from __future__ import annotations

import threading

import pytest
from playwright.sync_api import Route, expect

from tests.browser.screen import WINDOW_ROUNDING, Screen, until


def hold_back(screen: Screen, part: str, times: int) -> list[float]:
    """Delays the first `times` answers whose address holds `part`, each less than the one before: they overtake."""
    held: list[float] = []
    lock = threading.Lock()

    def handle(route: Route) -> None:
        with lock:
            number = len(held)
            held.append(number)
        if number < times:
            screen.page.wait_for_timeout(400 * (times - number) / times)
        route.continue_()

    screen.page.route(lambda url: part in url, handle)
    return held


def never_answer(_: Route) -> None:
    """Leaves a request waiting."""


def test_quick_head_changes_end_with_the_last_head(shown: Screen) -> None:
    hold_back(shown, "/weights", 3)
    for layer in ("3", "9", "14", "21"):
        shown.part("layer").select_option(layer)
    shown.wait_for_map()
    shown.page.wait_for_timeout(900)
    assert shown.fragment("layer") == "21"
    shown.point_at(10, 6)
    expect(shown.part("readout").locator("data")).to_be_visible()
    assert shown.read_weight() == pytest.approx(shown.weight(10, 6, layer=21), rel=WINDOW_ROUNDING)


def test_walking_over_thumbnails_and_leaving_shows_the_chosen_head(shown: Screen) -> None:
    box = shown.part("canvas").bounding_box()
    assert box is not None
    for step in range(12):
        shown.page.mouse.move(box["x"] + 60 + step * 12, box["y"] + 60 + step * 40)
    shown.page.mouse.move(box["x"] + 60, box["y"] - 40)
    shown.wait_for_map()
    shown.page.wait_for_timeout(500)
    shown.point_at(10, 6)
    expect(shown.part("readout").locator("data")).to_be_visible()
    assert shown.read_weight() == pytest.approx(shown.weight(10, 6), rel=WINDOW_ROUNDING)


def test_the_picture_never_says_more_than_its_own_head(shown: Screen) -> None:
    """While the next head's weights are on their way nothing of the head before is readable."""
    shown.page.route("**/weights?*", never_answer)
    shown.part("layer").select_option("11")
    shown.page.wait_for_timeout(500)
    shown.point_at(10, 6)
    expect(shown.part("readout")).to_contain_text("fetching the exact weight")
    expect(shown.part("readout").locator("data")).to_have_count(0)
    drawn = shown.js("() => document.querySelector('[data-ref=plot]').dataset.key")
    assert shown.drawn_key(drawn)[2] == "11"
    assert shown.js("() => document.querySelector('[data-ref=plot]').dataset.exact") == "false"


def test_quick_text_changes_end_with_the_last_text(shown: Screen) -> None:
    texts = ("first words here", "second words are here now", "third and last")
    for text in texts:
        shown.type(text)
        # cancel and run in one go: a run that ends between the two would make of the next click another one
        shown.js(
            """() => {
                const button = document.querySelector('[data-ref=run]');
                if (button.textContent === 'Cancel') button.click();
                button.click();
            }"""
        )
        shown.page.wait_for_timeout(20)
    strip = shown.page.locator(".tok")
    # the picture of before stays until the last run's is there
    until(lambda: [word.strip() for word in strip.all_text_contents()][1:] == texts[-1].split())
    shown.wait_for_map()
    shown.page.wait_for_timeout(600)  # time for a late answer to an earlier text to do harm
    words = [str(token["text"]).strip() for token in shown.tokens()]
    assert words[1:] == texts[-1].split()
    assert [label.lstrip("·") for label in shown.row_labels()] == words
    assert [word.strip() for word in strip.all_text_contents()] == words


def test_a_run_that_was_replaced_does_not_come_back(shown: Screen) -> None:
    """The first run's summary is answered only after the second run is on the screen."""
    state = {"held": False}

    def late(route: Route) -> None:
        if not state["held"] and "slow one" in (route.request.post_data or ""):
            state["held"] = True
            shown.page.wait_for_timeout(1500)
        route.continue_()

    shown.page.route("**/api/runs", late)
    shown.js(
        """() => {
            const area = document.querySelector('#text');
            const type = (text) => { area.value = text; area.dispatchEvent(new Event('input')); };
            const run = document.querySelector('[data-ref=run]');
            type('slow one'); run.click();
            setTimeout(() => { run.click(); type('quick one wins'); run.click(); }, 100);
        }"""
    )
    while not state["held"]:
        shown.page.wait_for_timeout(20)  # lets the handler above run
    shown.page.wait_for_timeout(2500)
    shown.wait_for_map()
    assert [label.lstrip("·") for label in shown.row_labels()] == ["<s>", "quick", "one", "wins"]
