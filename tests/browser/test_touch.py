"""A phone: a tap reads and stays, a chosen head comes into view, controls are large enough for a finger."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen
from tests.browser.screen import WINDOW_ROUNDING, Screen, until

PHONE = {"width": 390, "height": 844}
SMALLEST_TARGET = 24  # CSS pixels, as WCAG 2.2 asks at level AA


@pytest.fixture
def phone(open_screen: OpenScreen, fake_server: str) -> Screen:
    """A phone with a run of a short text."""
    screen = open_screen(fake_server, viewport=PHONE, has_touch=True, is_mobile=True, reduced_motion="reduce")
    screen.run("When Mary and John went to the store, John gave a drink to")
    return screen


def test_a_tapped_cell_stays_read(phone: Screen) -> None:
    expect(phone.part("readout")).to_contain_text("Tap a cell")
    phone.part("figure").scroll_into_view_if_needed()
    phone.page.touchscreen.tap(*phone.place_of(9, 4))
    phone.page.wait_for_timeout(300)  # the finger has left long since
    expect(phone.part("readout").locator("data")).to_be_visible()
    assert phone.read_weight() == pytest.approx(phone.weight(9, 4), rel=WINDOW_ROUNDING)


def test_a_chosen_head_comes_into_view(phone: Screen) -> None:
    canvas = phone.part("canvas")
    canvas.scroll_into_view_if_needed()
    expect(phone.part("figure")).not_to_be_in_viewport(ratio=0.9)
    canvas.tap(position={"x": 100, "y": 100})
    expect(phone.part("figure")).to_be_in_viewport(ratio=0.9)
    assert phone.fragment("layer") != "0"


def test_choosing_from_the_lists_does_not_scroll(phone: Screen) -> None:
    phone.part("layer").select_option("3")
    phone.wait_for_map()
    before = phone.js("() => scrollY")
    phone.part("head").select_option("2")
    phone.wait_for_map()
    assert phone.js("() => scrollY") == before


def test_controls_are_large_enough_for_a_finger(phone: Screen) -> None:
    small = phone.js(
        """(least) => [...document.querySelectorAll('button, summary, select, a[href]')]
            .filter((node) => node.checkVisibility())
            .map((node) => [node.dataset.ref ?? node.textContent, node.getBoundingClientRect()])
            .filter(([, box]) => box.width < least || box.height < least)
            .map(([name, box]) => `${name}: ${box.width} x ${box.height}`)""",
        SMALLEST_TARGET,
    )
    assert small == []
    assert phone.js("() => getComputedStyle(document.querySelector('#text')).fontSize") == "16px"


def test_on_a_wide_screen_choosing_a_head_does_not_move_the_page(shown: Screen) -> None:
    shown.part("canvas").click(position={"x": 100, "y": 100})
    until(lambda: shown.fragment("layer") != "0")
    assert shown.js("() => scrollY") == 0


@pytest.mark.parametrize(("lang", "how"), [("en", "Extend makes the query longer"), ("zh", "“延长”可加长查询")])
def test_marking_asks_for_no_key_that_a_phone_lacks(
    open_screen: OpenScreen, fake_server: str, lang: str, how: str
) -> None:
    phone = open_screen(fake_server, lang=lang, viewport=PHONE, has_touch=True, is_mobile=True)
    phone.choose_model("fake-seq2seq")
    phone.run("one two three four five six")
    for site, strip in (("encoder.self", "strip"), ("decoder.cross", "target-strip")):
        phone.choose_site(site)
        phone.part("mark").tap()
        phone.part(strip).locator('.tok[data-i="1"]').tap()
        expect(phone.part("link-prompt")).to_contain_text(how)
        expect(phone.part("link-prompt")).not_to_contain_text("Shift")
        phone.part("mark").tap()


def test_thinned_labels_carry_positions_on_both_axes(phone: Screen) -> None:
    phone.run("lamp " * 60)
    for labels in (phone.row_labels(), phone.col_labels()):
        assert labels
        assert all(label.split()[0].isdigit() for label in labels)
    assert phone.page.locator("[data-ref=plot] .annotation-text").all_text_contents() == ["query ↓", "key →"]


def test_pooling_is_a_choice_only_where_something_is_pooled(phone: Screen) -> None:
    mean = phone.part("pool").locator('[data-value="mean"]')
    expect(mean).to_be_disabled()
    phone.run("lamp " * 300)
    expect(mean).to_be_enabled()
