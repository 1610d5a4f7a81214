"""For everybody: axe, the keyboard alone, two languages, two themes, a phone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen, deep
from tests.browser.screen import WINDOW_ROUNDING, Screen, until

ROOT = Path(__file__).parents[2]
PHONE = {"width": 390, "height": 844}
TABLET = {"width": 1024, "height": 768}


def serious(screen: Screen) -> list[str]:
    """What axe finds of serious or critical impact."""
    found = Axe().run(screen.page).response["violations"]
    return [
        f"{one['id']}: {[node['target'] for node in one['nodes']]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    ("lang", "scheme"),
    [("en", "light"), ("zh", "dark"), deep("en", "dark"), deep("zh", "light")],
)
def test_axe_finds_nothing_serious(open_screen: OpenScreen, fake_server: str, lang: str, scheme: str) -> None:
    screen = open_screen(fake_server, lang=lang, color_scheme=scheme)
    assert serious(screen) == []
    screen.run("When Mary and John went to the store 猫吃鱼")
    screen.page.locator('.tok[data-i="5"]').click()
    screen.part("top").locator("summary").click()
    screen.page.wait_for_timeout(400)
    assert serious(screen) == []
    screen.part("model-button").click()
    assert serious(screen) == []


def test_axe_finds_nothing_serious_on_a_phone_with_a_problem(open_screen: OpenScreen, small_server: str) -> None:
    screen = open_screen(small_server, viewport=PHONE)
    screen.witness.allow("422")
    screen.type("word " * 90)
    screen.part("run").click()
    expect(screen.part("problem")).to_be_visible()
    assert serious(screen) == []


def test_the_keyboard_alone_reaches_everything(screen: Screen) -> None:
    page = screen.page
    page.keyboard.press("/")
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("When Mary went to the store")
    page.keyboard.press("Control+Enter")
    until(lambda: screen.fragment("run") is not None)
    screen.wait_for_map()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(screen.part("previewed")).to_be_visible()
    assert (screen.part("layer").input_value(), screen.part("head").input_value()) == ("2", "1")
    assert screen.fragment("layer") == "0"
    page.keyboard.press("Enter")
    until(lambda: (screen.fragment("layer"), screen.fragment("head")) == ("2", "1"))
    page.keyboard.press("]")
    until(lambda: screen.fragment("layer") == "3")
    page.keyboard.press("[")
    until(lambda: screen.fragment("layer") == "2")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(screen.part("previewed")).to_be_hidden()
    page.keyboard.press("?")
    expect(screen.part("keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(screen.part("keys")).to_be_hidden()


@pytest.mark.parametrize("button", ['[popovertarget="help-links"]', '[data-ref="finder-more"]'])
def test_escape_closes_what_is_open_before_it_lets_go(shown: Screen, button: str) -> None:
    page = shown.page
    page.locator('.tok[data-i="5"]').click()
    until(lambda: shown.fragment("token") == "5")
    page.locator(button).focus()
    page.keyboard.press("Enter")
    opened = page.locator(":popover-open")
    expect(opened).to_have_count(1)
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    assert shown.fragment("token") == "5"
    page.keyboard.press("Escape")
    until(lambda: shown.fragment("token") is None)
    page.keyboard.press("Enter")
    page.locator("[data-ref=strip]").focus()  # one that uses Escape itself
    expect(opened).to_have_count(1)
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    escaped = "() => { addEventListener('keydown', ({ defaultPrevented }) => { window.used = defaultPrevented; }); }"
    shown.js(escaped)
    page.locator(button).press("Escape")  # nothing is open and nothing chosen: it is not ours
    assert shown.js("() => window.used") is False


def test_cells_are_read_with_the_keyboard(shown: Screen) -> None:
    shown.part("figure").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        shown.page.keyboard.press(key)
    expect(shown.part("readout").locator("data")).to_be_visible()
    assert shown.read_weight() == pytest.approx(shown.weight(3, 1), rel=WINDOW_ROUNDING)
    shown.page.keyboard.press("Enter")
    until(lambda: shown.fragment("token") == "3")
    shown.page.keyboard.press("+")
    until(lambda: shown.fragment("rows") is not None)
    shown.page.keyboard.press("0")
    until(lambda: shown.fragment("rows") is None)


def test_tab_visits_every_control(shown: Screen) -> None:
    page = shown.page
    page.locator(".brand").focus()
    visited = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        visited.add(
            shown.js("() => { const at = document.activeElement; return at.dataset.ref ?? at.id ?? at.tagName; }")
        )
    wanted = {
        "copy-link",
        "language",
        "theme",
        "show-keys",
        "text",
        "model-button",
        "run",
        "strip",
        "heads",
        "layer",
        "head",
        "figure",
        "zoom-in",
    }
    assert wanted <= visited


def test_both_languages_are_whole(open_screen: OpenScreen, fake_server: str) -> None:
    english = json.loads((ROOT / "static/i18n/en.json").read_text(encoding="utf-8"))
    screen = open_screen(fake_server, lang="zh")
    assert screen.page.locator("html").get_attribute("lang") == "zh-CN"
    screen.run("猫吃鱼")
    screen.page.locator('.tok[data-i="2"]').click()
    body = re.sub("A fake: .*", "", screen.page.locator("body").inner_text())  # the fake model's own note
    same_in_both = {"API", "Mary & John", "猫吃鱼", "English", "中文"}
    left = [
        text
        for key, text in english.items()
        if len(text) > 6 and "{" not in text and text in body and text not in same_in_both
    ]
    assert left == []
    assert not re.search(r"\b[a-z]+\.[a-z_]+\b(?!\.)", re.sub(r"float32|\d+e-\d+|all\.", "", body)), (
        "a key without a message"
    )


def test_changing_the_language_keeps_text_and_view(shown: Screen) -> None:
    shown.part("layer").select_option("4")
    shown.wait_for_map()
    text = shown.page.input_value("#text")
    shown.part("language").click()
    expect(shown.page.locator("html")).to_have_attribute("lang", "zh-CN")
    shown.wait_for_map()
    assert shown.page.input_value("#text") == text
    assert shown.part("layer").input_value() == "4"


def test_the_theme_is_remembered(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server, color_scheme="light")
    html = screen.page.locator("html")
    expect(html).to_have_attribute("data-scheme", "light")
    screen.part("theme").click()
    screen.part("theme").click()
    expect(html).to_have_attribute("data-scheme", "dark")
    screen.page.reload()
    expect(html).to_have_attribute("data-scheme", "dark")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("size", [PHONE, TABLET, {"width": 320, "height": 640}], ids=["phone", "tablet", "small phone"])
def test_nothing_overflows_sideways(open_screen: OpenScreen, fake_server: str, size: dict[str, int], lang: str) -> None:
    screen = open_screen(fake_server, viewport=size, lang=lang)
    screen.run("When Mary and John went to the store 猫吃鱼 averyveryveryverylongwordwithoutanyspacesinitwhatsoever")
    assert screen.js("() => document.documentElement.scrollWidth") <= size["width"]


def test_one_screen_without_scrolling_on_a_laptop(shown: Screen) -> None:
    assert shown.js("() => document.documentElement.scrollHeight") <= 900
    hidden = shown.js(
        "() => { const h = document.querySelector('[data-ref=heads]'); return h.scrollHeight - h.clientHeight; }"
    )
    assert hidden <= 0


def test_the_ramp_is_even_in_both_schemes(screen: Screen) -> None:
    """Lightness in OKLab goes one way in even steps; equal weights keep their order."""
    steps = screen.js(
        """async () => {
            const { rampOf } = await import('/static/js/ramp.js');
            const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            const lightness = (rgb) => {
                const [r, g, b] = rgb.map((value) => linear(value / 255));
                const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
                const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
                const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
                return 0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s;
            };
            return ['light', 'dark'].map((scheme) => rampOf(scheme).map(lightness));
        }"""
    )
    for lightness, sign in zip(steps, (-1, 1), strict=True):
        sixteenths = [sign * (lightness[at + 15] - lightness[at]) for at in range(0, 240, 15)]
        assert min(sixteenths) > 0
        assert max(sixteenths) / min(sixteenths) < 1.15  # 8-bit colours round each step


def test_marking_begins_and_ends_by_its_key_from_anywhere(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)
    screen.choose_model("fake-seq2seq")
    screen.run("one two three four five six")
    mark = screen.part("mark")
    keys = screen.page.keyboard
    for leave in ("strip", "mark"):
        screen.js("() => document.activeElement.blur()")
        keys.press("m")
        expect(mark).to_have_attribute("aria-pressed", "true")
        expect(screen.part("strip")).to_be_focused()
        screen.part(leave).focus()
        keys.press("Escape")
        expect(mark).to_have_attribute("aria-pressed", "false")
    screen.choose_site("decoder.cross")
    screen.part("strip").focus()
    keys.press("m")
    expect(screen.part("target-strip")).to_be_focused()  # where queries are
    screen.part("figure").focus()
    keys.press("Escape")
    expect(mark).to_have_attribute("aria-pressed", "false")
    screen.js("() => document.activeElement.blur()")
    for key in ("m", "ArrowRight", "ArrowRight", "Enter"):
        keys.press(key)
    screen.part("strip").focus()
    for key in ("ArrowRight", "Enter"):
        keys.press(key)
    until(lambda: screen.fragment("pairs") == "2:1")
