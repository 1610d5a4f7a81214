"""Where things lie: what is read stays in sight on every width, and what scrolls sideways says so."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser.comparing import Compared
from tests.browser.conftest import WIDE, OpenScreen, deep
from tests.browser.screen import Screen, until
from tests.browser.test_access import PHONE
from tests.browser.test_finder import REPEATED, open_tab, other_columns, place, rows, show_all_columns

TABS = ("pictures", "table", "scatter", "alike", "layers")
BETWEEN = (600, 768, 820, 900)  # px, where the head lies under two columns
LOW_LAPTOP = {"width": 1280, "height": 720}
LAPTOP = {"width": 1366, "height": 768}
TABLET = {"width": 768, "height": 1024}
OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"


@pytest.mark.parametrize("size", [LOW_LAPTOP, LAPTOP, TABLET, PHONE], ids=lambda size: f"{size['width']}")
def test_the_corrected_figures_lie_in_their_box(
    open_screen: OpenScreen, fake_server: str, size: dict[str, int]
) -> None:
    screen = open_screen(fake_server, viewport=size)
    screen.run(REPEATED)
    open_tab(screen, "table")
    until(lambda: len(rows(screen)) > 10)
    beyond = screen.js(
        """() => {
            const box = document.querySelector('[data-ref=table-box]');
            const edge = box.getBoundingClientRect().left + box.clientLeft + box.clientWidth;
            const heads = [...box.querySelectorAll('thead th')];
            const at = heads.findIndex((cell) => cell.querySelector('[data-column=corrected]'));
            const cells = [...box.querySelectorAll('tr[data-at]')].map((row) => row.cells[at]);
            return [heads[at], ...cells].map((cell) => cell.getBoundingClientRect().right - edge);
        }"""
    )
    assert len(beyond) > 10
    assert max(beyond) <= 0.5


def shades(screen: Screen) -> list[bool]:
    """Whether the table has a shade over its left edge and over its right one."""
    found: list[bool] = screen.js(
        """() => ['::before', '::after'].map((edge) =>
            getComputedStyle(document.querySelector('[data-panel=table]'), edge).content !== 'none')"""
    )
    return found


def test_the_table_shows_on_which_side_there_is_more_and_keeps_its_head(
    open_screen: OpenScreen, fake_server: str
) -> None:
    screen = open_screen(fake_server, viewport=LOW_LAPTOP)
    screen.run(REPEATED)
    open_tab(screen, "table")
    until(lambda: shades(screen) == [False, True])
    screen.js("() => { document.querySelector('[data-ref=table-box]').scrollTo(80, 300); }")
    until(lambda: shades(screen) == [True, True])
    tops = screen.js(
        """() => [...document.querySelectorAll('[data-ref=table-head] th')].slice(0, 6).map(
            (cell) => Math.round(cell.getBoundingClientRect().top))"""
    )
    assert len(set(tops)) == 1
    screen.js("() => { document.querySelector('[data-ref=table-box]').scrollTo(9999, 0); }")
    until(lambda: shades(screen) == [True, False])


def test_the_sign_of_the_sorted_column_lies_in_its_column(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)
    screen.run(REPEATED)
    open_tab(screen, "table")
    for column in ("corrected", "value", "chance"):
        screen.part("table-head").locator(f'[data-column="{column}"]').click()
        beyond = screen.js(
            """(column) => {
                const head = document.querySelector(`[data-column=${column}]`);
                const sign = head.querySelector('.sort-sign').getBoundingClientRect();
                return sign.right - head.closest('th').getBoundingClientRect().right;
            }""",
            column,
        )
        assert beyond <= 0, column


@pytest.mark.parametrize("lang", [deep("en"), "zh"])
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
    for side in ("a", "b"):  # between two signs that keep its direction from turning what is beside it
        expect(compared.page.locator(f"[data-ref=excerpt-{side}] bdi")).to_have_text(f"\u2068{text}\u2069")


def that_made_the_role(heads: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The three figures of each head's best score in the weights that its role was read from, by place."""
    found = {}
    for head in heads:
        best, of = head["role"]["best"], head["role"]["of"]
        score = best and (head if of == "all" else head["without"][of])["scores"][best]
        if score:
            found[place(head)] = [f"{score[name]:.3f}" for name in ("corrected", "score", "chance")]
    return found


def test_the_number_beside_a_role_made_it_while_the_other_columns_follow_the_filter(screen: Screen) -> None:
    screen.run(REPEATED)
    open_tab(screen, "table")
    want = that_made_the_role(screen.api("/heads")["heads"])
    until(lambda: len(rows(screen)) > 10)
    screen.part("finder-more").click()
    screen.part("filter-version").select_option("first")
    expect(screen.part("finder-more")).to_have_text("Filter · 1")
    until(lambda: all(row[2:5] == want[row[0]] for row in rows(screen) if row[0] in want))
    of_all = [head for head in screen.api("/heads")["heads"] if head["role"]["best"] and head["role"]["of"] == "all"]
    named = {place(head) for head in of_all}
    assert all("role read from all weights" in row[1] for row in rows(screen) if row[0] in named)
    show_all_columns(screen)
    heads = {place(head): head for head in screen.api("/heads")["heads"]}
    others = {row[0]: row[6:] for row in rows(screen)}
    assert others == {at: other_columns(heads[at], "first") for at in others}
    assert others != {at: other_columns(heads[at]) for at in others}
    room, wish = screen.js(
        """() => {
            const select = document.querySelector('[data-ref=filter-version]');
            const copy = select.cloneNode(true);
            copy.style.width = 'max-content';
            copy.style.maxWidth = 'none';
            select.after(copy);
            const widths = [select.offsetWidth, copy.offsetWidth];
            copy.remove();
            return widths;
        }"""
    )
    assert wish <= room


def test_marked_links_are_of_all_weights_and_the_filter_says_so(screen: Screen) -> None:
    screen.run(REPEATED)
    screen.js("() => { location.hash = `${location.hash}&pairs=5:3`; }")
    expect(screen.part("link-list").locator("li")).to_have_count(1)
    screen.part("finder-score").select_option("induction")
    screen.part("finder-more").click()
    screen.part("filter-version").select_option("first")
    screen.page.keyboard.press("Escape")
    expect(screen.part("finder-more")).to_have_text("Filter · 1")
    screen.part("finder-score").select_option("pairs")
    expect(screen.part("finder-more")).to_have_text("Filter")
    expect(screen.part("filter-version")).to_be_disabled()
    expect(screen.part("filter-version")).to_have_value("all")
    expect(screen.part("filter-version-what")).to_have_text("Marked links are counted in all weights.")
    open_tab(screen, "table")
    show_all_columns(screen)
    heads = {place(head): head for head in screen.api("/heads")["heads"]}
    assert all(row[6:] == other_columns(heads[row[0]]) for row in rows(screen))


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


def test_a_scatter_without_points_says_why_where_they_would_be(screen: Screen) -> None:
    screen.run(REPEATED)
    open_tab(screen, "scatter")
    screen.part("scatter-y").select_option("next")
    words = screen.page.get_by_text("No head has both scores on this text.")
    expect(words).to_be_visible()
    figure, lies = screen.part("scatter").bounding_box(), words.bounding_box()
    assert figure is not None
    assert lies is not None
    middle = lies["y"] + lies["height"] / 2 - figure["y"]
    assert 0.3 * figure["height"] < middle < 0.7 * figure["height"]
    assert words.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 14
    expect(screen.part("scatter-state")).to_contain_text("a causal head cannot see the next token")
    screen.part("scatter-y").select_option("self")
    expect(words).to_be_hidden()
    expect(screen.part("scatter-foot")).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, LOW_LAPTOP, PHONE], ids=lambda size: f"{size['width']}")
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
    found = screen.js(
        """() => {
            const words = document.createRange();
            const score = document.querySelector('[data-ref=score]');
            words.selectNodeContents(score);
            const gap = () => {
                const last = [...words.getClientRects()].filter(({ width }) => width > 0).at(-1);
                const mark = document.querySelector('[popovertarget=help-scores]').getBoundingClientRect();
                return [mark.left - last.right, Math.abs((mark.top + mark.bottom - last.top - last.bottom) / 2)];
            };
            const gaps = [gap()];
            for (let width = 200; width < 700; width += 7) {  // wherever its words break
                score.parentElement.style.width = `${width}px`;
                gaps.push(gap());
            }
            return gaps;
        }"""
    )
    assert all(-1 <= gap <= 16 and drop <= 6 for gap, drop in found), found
