"""Where things lie: what is read stays in sight on every width, and what scrolls sideways says so."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from tests.browser.comparing import Compared
from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen, until
from tests.browser.test_access import PHONE
from tests.browser.test_finder import REPEATED, open_tab

TABS = ("pictures", "table", "scatter", "alike", "layers")
BETWEEN = (600, 768, 820, 900)  # px, where the head lies under two columns
LOW_LAPTOP = {"width": 1280, "height": 720}
LAPTOP = {"width": 1366, "height": 768}
TABLET = {"width": 768, "height": 1024}
OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_page_scrolls_sideways_between_phone_and_laptop(
    open_screen: OpenScreen, fake_server: str, lang: str
) -> None:
    screen = open_screen(fake_server, viewport=TABLET, lang=lang)
    screen.run(REPEATED)
    wide = []
    for lens in ("raw", "sink_free"):  # its legend has more words
        screen.part("lens").select_option(lens)
        screen.wait_for_map()
        for tab in TABS if lens == "raw" else ("pictures",):
            open_tab(screen, tab)
            for width in BETWEEN:
                screen.page.set_viewport_size({"width": width, "height": 900})
                screen.page.wait_for_timeout(60)
                if screen.js(OVERFLOW) > 0:
                    wide.append((lens, tab, width))
    assert wide == []


def test_tables_of_the_comparison_fit_or_show_that_they_scroll(open_screen: OpenScreen, fake_server: str) -> None:
    compared = Compared(open_screen(fake_server, viewport=TABLET))
    run = compared.make(REPEATED)
    compared.open(f"#a={run}&b={run}&layer_a=2&head_a=0&layer_b=1&head_b=4")
    expect(compared.page.locator("[data-figure=self] data")).to_have_count(3)
    for width in BETWEEN:
        compared.page.set_viewport_size({"width": width, "height": 900})
        compared.page.wait_for_timeout(60)
        assert compared.page.evaluate(OVERFLOW) <= 0
        hidden = compared.page.locator(".scrolls").evaluate_all(
            "boxes => boxes.map((box) => box.scrollWidth - box.clientWidth)"
        )
        assert hidden == [0, 0], width


def test_the_comparison_writes_the_text_with_its_spaces(open_screen: OpenScreen, fake_server: str) -> None:
    """Pieces of words have no spaces of their own in some models: where they lie says where one was."""

    def bare(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        for token in content.get("tokens", {}).get("source", []):
            if token["text"].startswith(" "):
                token.update(text=token["text"][1:], start=token["start"] + 1)
        route.fulfill(response=answer, json=content)

    text = "When Mary and John went to the store, John gave"
    compared = Compared(open_screen(fake_server))
    run = compared.make(text)
    compared.page.route(f"**/api/runs/{run}", bare)
    compared.open(f"#a={run}&b={run}")
    for side in ("a", "b"):
        expect(compared.page.locator(f"[data-ref=excerpt-{side}] bdi")).to_have_text(text)


def test_cut_labels_of_sentences_say_so_and_are_told_apart(screen: Screen) -> None:
    screen.run("In the summer they rest. In the summer they work. Yes.")
    screen.part("unit").select_option("sentence")
    until(lambda: screen.fragment("unit") == "sentence")
    screen.wait_for_map()
    labels = [label.replace("\u200b", "") for label in screen.row_labels()]
    sentences = screen.api("/units", unit="sentence")
    assert len(labels) == len(set(labels)) > 2, sentences
    cut = [label for label in labels if "summer" in label or "summ" in label]
    assert len(cut) == 2
    assert all(label.endswith("…") for label in cut)
    assert labels[-1].endswith("Yes.")


@pytest.mark.parametrize(
    "size", [{"width": 1440, "height": 900}, LOW_LAPTOP, PHONE], ids=lambda size: f"{size['width']}"
)
def test_the_question_mark_comes_right_after_the_role(
    open_screen: OpenScreen, fake_server: str, size: dict[str, int]
) -> None:
    screen = open_screen(fake_server, viewport=size)
    screen.run(REPEATED)
    roles = [(head["role"], head) for head in screen.api("/heads")["heads"]]
    sink = next(head for role, head in roles if "first" in role["sinks"] and role["name"] != "sink")  # the longest line
    screen.part("layer").select_option(str(sink["layer"]))
    screen.part("head").select_option(str(sink["head"]))
    expect(screen.part("score").locator("b").first).to_contain_text("sink")
    gap, drop = screen.js(
        """() => {
            const words = document.createRange();
            words.selectNodeContents(document.querySelector('[data-ref=score]'));
            const last = [...words.getClientRects()].filter(({ width }) => width > 0).at(-1);
            const mark = document.querySelector('[popovertarget=help-scores]').getBoundingClientRect();
            return [mark.left - last.right, Math.abs((mark.top + mark.bottom - last.top - last.bottom) / 2)];
        }"""
    )
    assert -1 <= gap <= 16
    assert drop <= 6
