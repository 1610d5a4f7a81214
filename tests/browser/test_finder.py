"""Finding heads: the table, pictures in order of a score, filters and roles. The numbers on screen are the API's."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import ROOT, OpenScreen
from tests.browser.screen import Screen, until

REPEATED = "When Mary and John went to the store, John gave a drink to Mary. " * 3
WORDS: dict[str, str] = json.loads((ROOT / "static/i18n/en.json").read_text(encoding="utf-8"))

SHARES = ("previous", "self", "next", "duplicate", "induction", "punctuation", "local", "first", "special")
MEASURES = (("entropy", "normalised", 3), ("distance", "mean", 1), ("concentration", "share", 3))  # with their digits


@pytest.fixture
def found(screen: Screen) -> Screen:
    """A run of a text with repeats, so that every score can be told."""
    screen.run(REPEATED)
    return screen


def open_tab(screen: Screen, tab: str) -> None:
    """Another view of all heads."""
    screen.part("tabs").locator(f'[data-tab="{tab}"]').click()
    expect(screen.page.locator(f'[data-panel="{tab}"]')).to_be_visible()
    if tab != "pictures":
        until(lambda: screen.fragment("heads") == tab)  # written a little later: a reload before would lose it


def rows(screen: Screen) -> list[list[str]]:
    """The cells of the rows of the table that exist, as text."""
    texts: list[list[str]] = screen.js(
        """() => [...document.querySelectorAll('[data-ref=table-body] tr[data-at]')].map(
            (row) => [...row.cells].map((cell) => cell.textContent.replace('−', '-')))"""
    )
    return texts


def by_score(heads: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Heads in order of a corrected score, the highest first; those without it last."""

    def key(head: dict[str, Any]) -> tuple[bool, float]:
        score = head["scores"][name]
        return (score is None, 0.0 if score is None else -score["corrected"])

    return sorted(heads, key=key)


def place(head: dict[str, Any]) -> str:
    """A head as the page writes it."""
    return f"{head['layer']}·{head['head']}"


def rounded(value: float, digits: int = 3) -> str:
    """As the page rounds: a half goes up, where Python's takes the even digit; no sign before a 0."""
    text = str(Decimal(abs(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return f"-{text}" if value < 0 and float(text) else text


def other_columns(head: dict[str, Any], version: str = "all") -> list[str]:
    """The cells of the other scores in a head's row: corrected where a score has chance taken off, else the figure."""
    figures = head if version == "all" else head["without"][version]
    scores = [figures["scores"].get(name) for name in SHARES]
    measured = [(figures[name], field, digits) for name, field, digits in MEASURES]
    return [rounded(score["corrected"]) if score else "–" for score in scores] + [
        rounded(figure[field], digits) if figure else "–" for figure, field, digits in measured
    ]


def show_all_columns(screen: Screen) -> None:
    """Scrolls the table to its right end: rows have their cells only as far as one has scrolled."""
    screen.part("table-box").evaluate("(box) => { box.scrollLeft = 9999; }")
    until(lambda: len(rows(screen)[0]) == 6 + len(SHARES) + len(MEASURES))


def test_sort_by_a_score_open_the_first_and_see_its_map(found: Screen) -> None:
    best = by_score(found.api("/heads")["heads"], "previous")
    open_tab(found, "table")
    found.part("finder-score").select_option("previous")
    found.part("table-head").locator('[data-column="corrected"]').click()
    expect(found.part("table-head").locator('th[aria-sort="descending"]').first).to_contain_text("corrected")
    until(lambda: rows(found)[0][0] == place(best[0]))
    assert [row[0] for row in rows(found)[:10]] == [place(head) for head in best[:10]]
    for row, head in zip(rows(found)[:10], best, strict=False):
        score = head["scores"]["previous"]
        assert row[2:6] == [f"{score[name]:.3f}" for name in ("corrected", "score", "chance")] + [str(score["rows"])]
    found.part("table-body").locator("tr[data-at]").first.click()
    until(lambda: (found.fragment("layer"), found.fragment("head")) == (str(best[0]["layer"]), str(best[0]["head"])))
    found.wait_for_map()
    expect(found.part("table-body").locator('tr[aria-current="true"]')).to_contain_text(place(best[0]))


def test_every_column_sorts_both_ways_and_only_rows_on_the_screen_exist(found: Screen) -> None:
    open_tab(found, "table")
    until(lambda: len(rows(found)) > 10)
    assert len(rows(found)) < 80
    each_row_says_what_its_role_was_read_from(found)
    for column in ("place", "role", "value", "chance", "corrected", "rows", "self", "entropy"):
        head = found.part("table-head").locator(f'[data-column="{column}"]')
        head.click()
        sorting = found.part("table-head").locator(f'th[aria-sort]:has([data-column="{column}"])')
        one = sorting.get_attribute("aria-sort")
        head.click()
        expect(sorting).to_have_attribute("aria-sort", "ascending" if one == "descending" else "descending")


def read_without_the_first_token(heads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same heads, the roles of every other layer as if a sink had hidden them."""
    for head in heads:
        if head["layer"] % 2 == 0 and head["role"]["best"]:
            head["role"]["of"] = "first"
    return heads


def each_row_says_what_its_role_was_read_from(screen: Screen) -> None:
    """The score that a row shows by the clearest role, and the version of the weights where it is not all."""

    def altered(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        route.fulfill(response=answer, json={**content, "heads": read_without_the_first_token(content["heads"])})

    screen.page.route("**/api/runs/*/heads*", altered)
    screen.page.reload()
    until(lambda: len(rows(screen)) > 10)
    heads = {place(head): head for head in read_without_the_first_token(screen.api("/heads")["heads"])}
    seen = set()
    for row in rows(screen):
        head = heads[row[0]]
        role = head["role"]
        if role["best"] is None:
            continue
        named, name = role["name"] not in (role["best"], "sink"), WORDS[f"score.{role['best']}"]
        assert (f" · {name}" in row[1]) == named
        words = ""
        if role["of"] == "first":
            corrected = head["without"]["first"]["scores"][role["best"]]["corrected"]
            words = f"* (role read without the first token: {name}, corrected {corrected:.3f})"
        assert words in row[1]
        figures = head["without"]["first"] if words else head
        assert row[2] == rounded(figures["scores"][role["best"]]["corrected"])
        assert ("*" in row[1]) == bool(words)
        seen.add((named, bool(words)))
    assert len(seen) == 4


def test_the_table_is_walked_with_the_keys(found: Screen) -> None:
    open_tab(found, "table")
    until(lambda: len(rows(found)) > 10)
    found.part("table-box").focus()
    for _ in range(60):
        found.page.keyboard.press("ArrowDown")
    expect(found.part("table-body").locator("tr.is-preview")).to_be_in_viewport()
    until(lambda: (found.part("layer").input_value(), found.part("head").input_value()) == ("6", "6"))
    found.page.keyboard.press("Enter")
    until(lambda: (found.fragment("layer"), found.fragment("head")) == ("6", "6"))


def test_the_keys_walk_on_in_sight_though_the_pointer_rests_on_the_pictures(found: Screen) -> None:
    found.part("finder-order").locator('[data-value="score"]').click()
    expect(found.part("heads")).to_have_class("heads is-ranked")
    found.part("canvas").click(position={"x": 20, "y": 20})
    found.part("heads").focus()
    for _ in range(60):
        found.page.keyboard.press("ArrowDown")
    expect(found.part("previewed")).to_be_in_viewport()


def test_the_keys_walk_on_in_sight_though_the_pointer_rests_on_the_table(found: Screen) -> None:
    open_tab(found, "table")
    until(lambda: len(rows(found)) > 10)
    found.part("table-body").locator("tr[data-at]").nth(3).click()
    until(lambda: (found.fragment("layer"), found.fragment("head")) == ("0", "3"))
    for _ in range(60):
        found.page.keyboard.press("ArrowDown")
    until(lambda: (found.part("layer").input_value(), found.part("head").input_value()) == ("7", "0"))
    expect(found.part("table-body").locator("tr.is-preview")).to_be_in_viewport()
    for _ in range(60):
        found.page.keyboard.press("ArrowUp")
    expect(found.part("table-body").locator("tr[aria-current]")).to_be_in_viewport()
    found.part("table-box").evaluate("(box) => { box.scrollTop = 3000; }")
    expect(found.part("table-body").locator("tr[aria-current]")).to_have_count(0)
    found.part("table-box").hover()
    found.part("tabs").hover()
    expect(found.part("table-body").locator("tr[aria-current]")).to_have_count(0)  # it stays where it was scrolled to


def test_no_number_is_shown_in_part_at_either_edge(found: Screen) -> None:
    open_tab(found, "table")
    until(lambda: len(rows(found)) > 10)
    covered = """() => [...document.querySelectorAll('.heads-table tr:not(.table-space)')].flatMap((row) => {
        const box = row.closest('[data-ref=table-box]');
        const end = box.getBoundingClientRect().left + box.clientLeft + box.clientWidth;
        const edges = [row.cells[0].getBoundingClientRect().right, end];
        return [...row.cells].filter((cell) => cell.classList.contains('number')).map((cell) => {
            const { left, right } = cell.getBoundingClientRect();
            const shown = getComputedStyle(cell.querySelector('button') ?? cell).color !== 'rgba(0, 0, 0, 0)';
            const cut = edges.map((edge) => left < edge - 1 && right > edge + 1);
            return [cut[0] || (cut[1] && cell.tagName === 'TD'), shown];  // a name may end at the right edge
        });
    })"""
    cut = 0
    for left in (0, 300, 640, 9999):
        found.part("table-box").evaluate("(box, left) => { box.scrollLeft = left; }", left)
        until(lambda: all(shown != under for under, shown in found.js(covered)))
        cut += sum(under for under, _ in found.js(covered))
    assert cut > 20  # it was tried where it matters


@pytest.mark.parametrize("change", ["maxHeight: ''", "minWidth: '700px'"])  # more rows, or more of their cells
def test_a_press_on_a_row_is_a_click_though_the_table_is_drawn_meanwhile(found: Screen, change: str) -> None:
    open_tab(found, "table")
    until(lambda: len(rows(found)) > 10)
    found.part("table-box").evaluate("(box) => { box.style.maxHeight = '260px'; }")
    until(lambda: len(rows(found)) < 20)
    row = found.part("table-body").locator("tr[data-at]").nth(5)
    chosen = rows(found)[5][0].split("·")
    assert (found.fragment("layer"), found.fragment("head")) != tuple(chosen)
    row.locator("th").hover()
    found.page.mouse.down()
    found.js(
        f"""() => new Promise((drawn) => {{
            const body = document.querySelector('[data-ref=table-body]');
            new MutationObserver(drawn).observe(body, {{ childList: true, subtree: true }});
            Object.assign(document.querySelector('[data-ref=table-box]').style, {{ {change} }});
        }})"""
    )
    found.page.mouse.up()
    until(lambda: [found.fragment("layer"), found.fragment("head")] == chosen)


def test_the_link_keeps_tab_score_order_and_filter(found: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    open_tab(found, "table")
    found.part("finder-score").select_option("self")
    found.part("finder-order").locator('[data-value="score"]').click()
    found.part("finder-more").click()
    found.part("filter-from").fill("3")
    found.part("filter-to").fill("5")
    found.part("filter-to").press("Enter")
    until(lambda: found.fragment("layers") == "3-5")
    expect(found.part("overview-title")).to_have_text("27 of 270 heads")
    fragment = found.js("() => location.hash")
    other = open_screen(fake_server, fragment)
    other.wait_for_map()
    expect(other.part("table")).to_be_visible()
    until(lambda: rows(other) == rows(found) and len(rows(other)) == 27)
    assert {row[0].split("·")[0] for row in rows(other)} == {"3", "4", "5"}
    assert other.part("finder-score").input_value() == "self"


def has_role(head: dict[str, Any], role: str) -> bool:
    """Whether the API gives a head what a filter asks for."""
    return bool(head["role"]["sinks"]) if role == "sinks" else head["role"]["name"] == role


def test_threshold_and_role_decide_which_heads_are_left(found: Screen) -> None:
    open_tab(found, "table")
    found.part("finder-more").click()
    left: dict[str, set[int]] = {}
    for threshold in (0.1, 0.9):
        heads = found.api("/heads", threshold=threshold)["heads"]
        found.part("filter-threshold").fill(str(threshold))
        for role in ("self", "mixed", "duplicate", "sink", "sinks"):
            found.part("filter-role").select_option(role)
            want = [place(head) for head in heads if has_role(head, role)]
            left.setdefault(role, set()).add(len(want))
            expect(found.part("overview-title")).to_have_text(f"{len(want)} of 270 heads")
            until(lambda: [row[0] for row in rows(found)][:10] == want[:10])  # noqa: B023 - it is called here
    assert [len(left[role]) for role in ("self", "mixed", "duplicate")] == [2, 2, 2]  # the threshold tells
    assert left["sinks"] != left["sink"]


def test_pictures_in_order_of_a_score(found: Screen) -> None:
    best = by_score(found.api("/heads")["heads"], "previous")
    found.part("finder-score").select_option("previous")
    found.part("finder-order").locator('[data-value="score"]').click()
    expect(found.part("heads")).to_have_class("heads is-ranked")
    inner = found.js(
        """() => {
            const [frame, room] = ['chosen', 'heads'].map((name) =>
                document.querySelector(`[data-ref=${name}]`).getBoundingClientRect());
            return [frame.left - room.left, frame.top - room.top];
        }"""
    )
    assert min(inner) >= 3  # its frame, which lies outside of it, is seen on every side
    found.part("canvas").click(position={"x": 20, "y": 20})
    until(lambda: (found.fragment("layer"), found.fragment("head")) == (str(best[0]["layer"]), str(best[0]["head"])))
    found.part("heads").focus()
    found.page.keyboard.press("ArrowRight")
    expect(found.part("layer")).to_have_value(str(best[1]["layer"]))
    expect(found.part("head")).to_have_value(str(best[1]["head"]))
    found.part("finder-order").locator('[data-value="layer"]').click()
    expect(found.part("heads")).to_have_class("heads")


def test_heads_that_a_filter_leaves_out_go_back_into_the_page(found: Screen) -> None:
    box = found.part("canvas").bounding_box()
    assert box is not None
    before = found.page.screenshot(clip=box)
    found.part("finder-more").click()
    found.part("filter-from").fill("29")
    found.part("filter-from").press("Enter")
    found.page.keyboard.press("Escape")
    expect(found.part("overview-title")).to_have_text("9 of 270 heads")
    until(lambda: found.page.screenshot(clip=box) != before)
    found.part("finder-more").click()
    found.part("filter-clear").click()
    found.page.keyboard.press("Escape")
    expect(found.part("overview-title")).to_have_text("All 270 heads")


def test_marked_links_are_a_score(found: Screen) -> None:
    link = "5:3,9:2"
    found.js("(link) => { location.hash = `${location.hash}&score=induction&pairs=${link}`; }", link)
    heads = found.api("/heads", pairs=link)["heads"]
    best = sorted(heads, key=lambda head: -head["pairs"]["corrected"])
    expect(found.part("link-list").locator("li")).to_have_count(2)
    found.page.reload()
    found.wait_for_map()
    expect(found.part("finder-score")).to_have_value(
        "induction"
    )  # a link says by which score, also where links are marked
    found.part("finder-score").select_option("pairs")
    open_tab(found, "table")
    found.part("finder-order").locator('[data-value="score"]').click()
    until(lambda: [row[0] for row in rows(found)[:5]] == [place(head) for head in best[:5]])
    assert rows(found)[0][2:5] == [f"{best[0]['pairs'][name]:.3f}" for name in ("corrected", "mean", "chance")]
    until(
        lambda: (found.fragment("score"), found.fragment("sort")) == ("pairs", "-corrected")
    )  # written a little later
    found.js("() => { location.hash = location.hash.replace(/&pairs=[^&]*/, ''); }")
    expect(found.part("finder-score")).to_have_value("best")
