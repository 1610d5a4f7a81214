"""The page /compare: two runs or two heads side by side, a linked cursor, the difference, the changes, the figures."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.comparing import Compared, check_readout, check_tables
from tests.browser.conftest import WIDE, OpenScreen
from tests.browser.screen import until

FIRST = "When Mary and John went to the store, John gave a drink to"
SECOND = "Once, when Tom and Mary went to the park, Mary gave a ball to"
PHONE = {"width": 390, "height": 844}
BACKGROUND = "bar => getComputedStyle(bar).backgroundImage"
PLOT_WIDTH = "document.querySelector('[data-ref=plot-d]').layout.width"
TEXT = {
    "en": {"title": "Compare two heads", "open": "Compare …", "empty": "Nothing to compare yet"},
    "zh": {"title": "比较两个头", "open": "与另一个比较……", "empty": "还没有可以比较的内容"},
}


def own_page(open_screen: OpenScreen, server: str, **options: Any) -> Compared:
    """A browser of its own, whose list of runs is empty."""
    return Compared(open_screen(server, **options))


def test_two_texts_on_one_model(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)
    before, after = screen.run(FIRST), screen.run(SECOND)
    screen.part("layer").select_option("5")
    screen.part("head").select_option("3")
    screen.part("compare-head").click()
    compared = Compared(screen)
    compared.wait()
    fields = compared.fields
    assert (fields["a"], fields["b"]) == (after, before)
    places = [(fields[f"layer_{side}"], fields[f"head_{side}"]) for side in ("a", "b")]
    assert places == [("5", "3"), ("5", "3")]  # both texts on the head that one came from
    screen.part("copy-link").click()
    expect(screen.part("notice")).to_contain_text("Link copied")
    copied = screen.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{fake_server}/compare{screen.page.evaluate('location.hash')}"
    answer = compared.answer
    assert answer["by"] == "tokens"
    at = next(i for i, one in enumerate(answer["axis_rows"]) if one["text"] == " gave")
    row = answer["axis_rows"][at]
    compared.point("a", row["a"][0], row["a"][0])
    until(lambda: len(compared.read()) == 3)
    numbers = compared.read()
    for side in ("a", "b"):
        assert numbers[side] == pytest.approx(compared.weight(side, row[side], row[side]), abs=1e-6)
    assert numbers["d"] == numbers["a"] - numbers["b"]
    assert numbers["d"] == pytest.approx(answer["difference"][at][at], abs=1e-6)
    check_readout(compared, row, row)
    assert row["a"] != row["b"]
    for name, index in (("a", row["a"][0]), ("d", at), ("b", row["b"][0])):  # the same place is marked on all three
        x, y = compared.place(name, index, index)
        line, column = compared.box(name, "row"), compared.box(name, "col")
        assert line["y"] <= y <= line["y"] + line["height"]
        assert column["x"] <= x <= column["x"] + column["width"]
    check_tables(compared)
    assert not any(word in screen.page.evaluate("JSON.stringify(localStorage)") for word in ("Mary", "gave"))


@pytest.mark.deep
def test_a_token_without_counterpart_says_so(open_screen: OpenScreen, fake_server: str) -> None:
    compared = own_page(open_screen, fake_server)
    a, b = (compared.make(text) for text in (FIRST, SECOND))
    compared.open(f"#a={a}&b={b}")
    tokens = compared.get(f"runs/{a}")["tokens"]["source"]
    store = next(token["index"] for token in tokens if token["text"] == " store")
    compared.point("a", store, store)
    expect(compared.page.locator("[data-ref=readout]")).to_contain_text("no counterpart")
    until(lambda: list(compared.read()) == ["a"])
    assert compared.read()["a"] == pytest.approx(compared.weight("a", [store, store + 1], [store, store + 1]), abs=1e-6)
    expect(compared.page.locator("[data-ref=mark-row-b]")).to_be_hidden()


@pytest.mark.deep
def test_one_text_on_two_models(open_screen: OpenScreen, fake_server: str) -> None:
    compared = own_page(open_screen, fake_server)
    a = compared.screen.run(FIRST)
    compared.screen.choose_model("fake-pairs")
    b = compared.screen.run(FIRST)
    compared.open(f"#a={a}&b={b}&layer_a=3&head_a=1&layer_b=2&head_b=5")
    expect(compared.page.locator("[data-ref=aligned]")).to_contain_text("every token has its counterpart")
    answer = compared.answer
    compared.point("d", 9, 4)
    until(lambda: len(compared.read()) == 3)
    assert compared.read()["d"] == pytest.approx(answer["difference"][9][4], abs=1e-6)
    compared.point("b", 4, 9)  # the encoder sees what the decoder may not
    expect(compared.page.locator("[data-ref=readout]")).to_contain_text("masked")
    assert list(compared.read()) == ["b"]
    check_tables(compared)


@pytest.mark.deep
def test_two_heads_of_one_run_from_the_list(open_screen: OpenScreen, fake_server: str) -> None:
    compared = own_page(open_screen, fake_server)
    run = compared.screen.run(FIRST)
    page = compared.page
    page.locator("[data-ref=nav-compare]").click()
    compared.wait()
    assert compared.fields["a"] == compared.fields["b"] == run
    assert (compared.fields["head_a"], compared.fields["head_b"]) == ("0", "1")
    page.locator("[data-ref=layer-b]").select_option("7")
    page.locator("[data-ref=head-b]").select_option("mean")
    compared.wait()
    compared.point("a", 5, 2)
    until(lambda: len(compared.read()) == 3)
    numbers = compared.read()
    assert numbers["a"] == pytest.approx(compared.weight("a", [5, 6], [2, 3]), abs=1e-6)
    assert numbers["b"] == pytest.approx(compared.weight("b", [5, 6], [2, 3]), abs=1e-6)
    of_a, of_b = page.locator("[data-figure=next] td.quiet").all()[:2]  # why there is no figure: the mask, or the mean
    assert str(of_a.get_attribute("title")).startswith("a causal head cannot see")
    assert str(of_b.get_attribute("title")).startswith("Figures are of single heads")
    page.locator("[data-ref=head-b]").select_option("0")
    page.locator("[data-ref=layer-b]").select_option("0")
    expect(page.locator("[data-ref=aligned]")).to_contain_text("the same head")
    expect(page.locator("[data-ref=changes]")).to_contain_text("equal everywhere")


def check_colours(compared: Compared) -> None:
    """Of the largest change on each side of 0: teal where A has more, ochre where B has more, as the legend says."""
    changes = sorted(compared.answer["largest"], key=lambda change: float(change["difference"]))
    for change in (changes[0], changes[-1]):
        red, green, blue = colour = compared.screen.pixel(*compared.place("d", change["row"], change["col"]))
        assert (red > green > blue) if change["difference"] < 0 else (red < green and red < blue)
        tone = compared.colour_of(change["difference"])
        assert colour == pytest.approx(tone, abs=4)  # Plotly mixes the two of 49 colours that are next to it
    assert changes[0]["difference"] < -0.1 < 0.1 < changes[-1]["difference"]
    legend = compared.page.locator(".legend-difference")
    assert legend.locator(".legend-label").all_inner_texts() == ["B more", "A more"]
    ends = re.findall(r"rgb\((\d+), (\d+), (\d+)\)", legend.locator(".legend-bar").evaluate(BACKGROUND))
    assert [int(red) > int(blue) for red, _, blue in (ends[0], ends[-1])] == [True, False]
    ticks = legend.locator(".legend-ticks span").evaluate_all(
        "ticks => ticks.map((tick) => [tick.textContent, parseFloat(tick.style.left)])"
    )
    numbers = [float(text.replace("−", "-")) for text, _ in ticks]
    assert numbers == [-1, -0.4, -0.1, 0, 0.1, 0.4, 1]
    places = [50 + 50 * math.copysign(math.sqrt(abs(number)), number) for number in numbers]
    assert [left for _, left in ticks] == pytest.approx(places, abs=0.01)  # per cent, written with four digits


def test_a_change_leads_to_its_place(open_screen: OpenScreen, fake_server: str) -> None:
    compared = own_page(open_screen, fake_server)
    run = compared.make(FIRST)
    compared.open(f"#a={run}&b={run}&head_b=4")
    page = compared.page
    check_colours(compared)
    change = compared.answer["largest"][3]
    page.locator("[data-ref=changes] tbody button").nth(3).click()
    until(lambda: len(compared.read()) == 3)
    assert compared.read() == pytest.approx({"a": change["a"], "b": change["b"], "d": change["difference"]}, abs=1e-6)
    x, y = compared.place("d", change["row"], change["col"])
    line = compared.box("d", "row")
    assert line["y"] <= y + 1 <= line["y"] + line["height"] + 1
    page.mouse.move(x, y)  # what was chosen stays while one points elsewhere
    compared.point("d", 1, 0)
    assert compared.read()["d"] == pytest.approx(change["difference"], abs=1e-6)
    page.keyboard.press("Escape")  # the focus is in the list
    until(lambda: compared.read() == {})
    compared.point("d", 2, 1)
    page.mouse.down()
    page.mouse.up()
    expect(page.locator("[data-ref=readout]")).to_contain_text("Esc lets go")
    page.locator("[data-ref=figure-d]").focus()
    page.keyboard.press("Escape")
    until(lambda: compared.read() == {})


@pytest.mark.deep
def test_zoom_is_one_for_all_maps_and_in_the_address(open_screen: OpenScreen, fake_server: str) -> None:
    compared = own_page(open_screen, fake_server)
    a, b = (compared.make(text) for text in (FIRST, SECOND))
    compared.open(f"#a={a}&b={b}&head_b=4")
    page = compared.page
    page.locator("[data-ref=figure-d]").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("+")
    compared.wait()
    rows = [int(one) for one in compared.fields["rows"].split(":")]
    axis = compared.answer["axis_rows"]
    ranges = page.evaluate(
        "() => ['a', 'd', 'b'].map((name) => document.querySelector(`[data-ref=plot-${name}]`).layout.yaxis.range)"
    )
    segments = axis[rows[0] : rows[1]]
    expected = [[segments[0][side][0], segments[-1][side][1]] for side in ("a", "b")]
    assert [sorted(one) for one in ranges] == [
        [first - 0.5, stop - 0.5] for first, stop in (expected[0], rows, expected[1])
    ]
    check_tables(compared)
    compared.screen.witness.allow("ERR_FAILED")
    page.route("**/api/compare?*", lambda route: route.abort())
    page.reload()
    for name in ("a", "d", "b"):  # without the shared axes no map knows its range: each says so
        expect(page.locator(f"[data-ref=state-{name}] button")).to_have_text("Try again")
    page.unroute("**/api/compare?*")
    page.locator("[data-ref=state-a] button").click()
    compared.wait()
    assert [int(one) for one in compared.fields["rows"].split(":")] == rows
    page.locator("[data-ref=zoom-all]").click()
    compared.wait()
    assert "rows" not in compared.fields


@pytest.mark.deep
def test_long_texts_are_pooled_and_their_numbers_exact(open_screen: OpenScreen, fake_server: str) -> None:
    compared = own_page(open_screen, fake_server)
    run, shorter = (compared.make(" ".join(f"w{i % 57}" for i in range(n))) for n in (400, 200))
    page, pooling = compared.page, compared.page.locator("[data-ref=pooling]")
    page.route("**/heads?*", lambda route: route.abort())
    page.route("**/weights?*rows=30*", lambda route: route.abort())  # of one place; the windows are whole
    compared.screen.witness.allow("ERR_FAILED")
    compared.open(f"#a={run}&b={run}&head_b=3")
    expect(pooling).to_contain_text("A, B: 1 cell = 2 × 2 weights, maximum")
    figures = page.locator("[data-ref=figures]")
    expect(figures).to_contain_text("could not be loaded")
    compared.point("a", 301, 17)
    page.mouse.down()
    page.mouse.up()
    again = page.locator("[data-ref=readout] button")
    expect(again).to_be_visible()
    page.unroute_all()
    again.click()
    figures.locator("button").click()
    expect(figures.locator("[data-figure=self] data")).to_have_count(3)
    until(lambda: len(compared.read()) == 3)
    row, col = (
        int(compared.page.locator("[data-ref=readout] .aside").nth(at).inner_text().strip("() ")) for at in (0, 1)
    )
    numbers = compared.read()
    for side in ("a", "b"):
        assert numbers[side] == pytest.approx(compared.weight(side, [row, row + 1], [col, col + 1]), abs=1e-6)
    compared.open(f"#a={run}&b={shorter}")  # the page is there: the address alone leads to other runs
    expect(pooling).to_contain_text("A: 1 cell = 2 × 2 weights, maximum · B: 1 cell = 1 weight")


@pytest.mark.deep
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_runs_it_says_what_to_do(open_screen: OpenScreen, fake_server: str, lang: str) -> None:
    compared = own_page(open_screen, fake_server)
    compared.open(lang=lang)
    expect(compared.page.locator("[data-ref=empty]")).to_contain_text(TEXT[lang]["empty"])
    expect(compared.page).to_have_title(re.compile(TEXT[lang]["title"]))
    compared.page.locator("[data-ref=empty] a").click()
    expect(compared.page.locator("#text")).to_be_visible()
    expect(compared.screen.part("compare-head")).to_have_text(TEXT[lang]["open"])


@pytest.mark.deep
def test_a_run_that_is_gone_leaves_the_list(open_screen: OpenScreen, fake_server: str) -> None:
    compared = own_page(open_screen, fake_server)
    a, b = (compared.screen.run(f"{text} again") for text in (FIRST, SECOND))
    page = compared.page
    page.evaluate("(id) => fetch(`/api/runs/${id}`, { method: 'DELETE' })", a)
    compared.screen.witness.allow("404")
    compared.open()
    page.goto(f"{compared.screen.base}/compare?lang=en#a={b}&b={a}")
    expect(page.locator("[data-ref=trouble-b]")).to_contain_text("no longer stored")
    listed = page.evaluate("() => JSON.parse(localStorage.getItem('everyhead.recent')).map((one) => one.id)")
    assert listed == [b]
    page.locator("[data-ref=run-b]").select_option(b)
    compared.wait()


@pytest.mark.deep
def test_cross_attention_beside_self_attention_is_refused_in_words(open_screen: OpenScreen, fake_server: str) -> None:
    compared = own_page(open_screen, fake_server)
    compared.screen.choose_model("fake-seq2seq")
    run = compared.screen.run(FIRST)
    page = compared.page
    start = f"{compared.screen.base}/compare?lang=en#a={run}&b={run}&head_b=2"
    page.goto(f"{start}&site_b=decoder.cross&rows=1:6&cols=1:6")
    expect(page.locator("[data-ref=state-d]")).to_contain_text("no axes in common")
    for name in ("a", "b"):  # without shared axes there is no range of them: both are shown whole
        expect(page.locator(f"[data-ref=plot-{name}]")).to_have_attribute("data-key", re.compile(r"\|0:\d+\|0:\d+$"))
    assert "rows" not in compared.fields
    page.locator("[data-ref=site-a]").select_option("decoder.cross")
    page.locator("[data-ref=head-a]").select_option("1")
    compared.wait()
    check_tables_of_changes = page.locator("[data-ref=changes] tbody tr")
    expect(check_tables_of_changes).to_have_count(len(compared.answer["largest"]))


def bring_to(page: Page, width: int, height: int) -> None:
    """Gives the page another size and waits until the maps are drawn for it."""
    page.set_viewport_size({"width": width, "height": height})
    until(lambda: 60 < page.evaluate(PLOT_WIDTH) < width)


@pytest.mark.deep
@pytest.mark.parametrize(("lang", "scheme"), [("en", "light"), ("zh", "dark")])
def test_it_can_be_read_by_everyone(open_screen: OpenScreen, fake_server: str, lang: str, scheme: str) -> None:
    """On a wide screen and on a phone's width, to which the same page is brought: opening it is what takes long."""
    compared = own_page(open_screen, fake_server, color_scheme=scheme, lang=lang)
    a, b = (compared.make(text) for text in (FIRST, SECOND))
    compared.open(f"#a={a}&b={b}&head_b=4", lang)
    page = compared.page
    for viewport in (WIDE, PHONE):
        bring_to(page, viewport["width"], viewport["height"])
        violations = Axe().run(page).response["violations"]
        serious = [
            f"{one['id']}: {one['nodes'][0]['target']}"
            for one in violations
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not re.search(r"compare\.|score\.|role\.", page.locator("main").inner_text())
