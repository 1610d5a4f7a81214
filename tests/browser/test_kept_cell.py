"""A cell that was clicked stays: in the readout, for the zoom buttons, in the link. A marked link opens to be read."""

from __future__ import annotations

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen, until

WORDS = "the lamp was lit at dusk and the wind came round from the west again while nobody on the shore said a word"
TEXT = " ".join([WORDS] * 20)
LOW: ViewportSize = {"width": 1180, "height": 620}
ROW, COL = 300, 100
ASIDE = (2, 2)  # a point outside of the picture


@pytest.fixture
def long(open_screen: OpenScreen, fake_server: str) -> Screen:
    """More tokens than the picture has pixels."""
    screen = open_screen(fake_server, viewport=LOW)
    screen.run(TEXT)
    screen.part("figure").scroll_into_view_if_needed()
    return screen


def keep(screen: Screen, row: int, col: int) -> tuple[int, int]:
    """Clicks a cell, takes the pointer away and gives the kept cell as the address has it."""
    screen.page.mouse.click(*screen.place_of(row, col))
    screen.page.mouse.move(*ASIDE)
    until(lambda: screen.fragment("cell") is not None)
    at, key = map(int, (screen.fragment("cell") or "").split(":"))
    return at, key


def test_the_buttons_zoom_to_the_kept_cell(long: Screen) -> None:
    row, col = keep(long, ROW, COL)
    for _ in range(4):
        long.part("zoom-in").click()
        long.wait_for_map()
        for name, at in (("rows", row), ("cols", col)):
            first, stop = map(int, (long.fragment(name) or "").split(":"))
            assert first <= at < stop
    long.page.mouse.move(*ASIDE)
    expect(long.part("pooling")).to_have_text("1 cell = 1 weight")
    expect(long.part("readout")).to_contain_text(f"({row})")
    tokens = long.tokens()
    expect(long.part("mark-cell")).to_contain_text(str(tokens[row]["text"]).strip())


def test_the_link_keeps_the_cell(long: Screen) -> None:
    row, col = keep(long, ROW, COL)
    fragment = long.js("() => location.hash")
    long.page.goto("about:blank")
    long.goto(fragment)
    long.wait_for_map()
    assert long.fragment("cell") == f"{row}:{col}"
    expect(long.part("mark-cell")).to_be_visible()
    expect(long.part("mark-row")).to_be_visible()
    expect(long.part("readout").locator("data")).to_be_visible()


def test_another_click_lets_it_go_and_another_run_has_none(long: Screen) -> None:
    row, col = keep(long, ROW, COL)
    long.page.mouse.click(*long.place_of(row, col))
    until(lambda: long.fragment("cell") is None)
    expect(long.part("mark-cell")).to_be_hidden()
    keep(long, ROW, COL)
    long.run("another text")
    assert long.fragment("cell") is None
    expect(long.part("mark-cell")).to_be_hidden()


def test_a_marked_link_is_read_by_itself(long: Screen) -> None:
    expect(long.part("pooling")).not_to_have_text("1 cell = 1 weight")
    run = long.run_id
    long.page.goto("about:blank")
    long.goto(f"#run={run}&layer=0&head=0&pairs={ROW}:{COL}")
    until(lambda: long.fragment("rows") is not None)
    long.wait_for_map()
    expect(long.part("pooling")).to_have_text("1 cell = 1 weight")
    expect(long.part("readout")).to_contain_text(f"({ROW})")
    assert long.read_weight() == pytest.approx(long.weight(ROW, COL), rel=1e-5)  # of a window of another size


def test_marks_lie_outside_of_the_cell(long: Screen) -> None:
    keep(long, ROW, COL)
    for _ in range(4):
        long.part("zoom-in").click()
        long.wait_for_map()
    long.page.mouse.move(*ASIDE)
    row, col = map(int, (long.fragment("cell") or "").split(":"))
    weight = long.weight(row, col)
    assert weight is not None
    found = long.pixel(*long.place_of(row, col))
    assert found == pytest.approx(long.colour_of(weight), abs=3)  # Plotly's stops, as in drawn.py
    edges = long.js(
        """([row, col]) => {
            const plot = document.querySelector('[data-ref=plot]');
            const { xaxis, yaxis, margin, width, height } = plot.layout;
            const box = plot.getBoundingClientRect();
            const high = (height - margin.t - margin.b) / Math.abs(yaxis.range[1] - yaxis.range[0]);
            const top = box.top + margin.t + (row - 0.5 - yaxis.range[1]) * high;
            return ['row', 'chosen'].map((name) => {
                const mark = document.querySelector(`[data-ref=mark-${name}]`);
                const { outlineOffset } = getComputedStyle(mark);
                const { top: first, bottom: last } = mark.getBoundingClientRect();
                return [parseFloat(outlineOffset), first - top, last - (top + high)];
            });
        }""",
        [row, col],
    )
    for offset, above, below in edges:
        assert offset >= 0
        assert above <= 0.01  # of a pixel, what rounding in the browser's layout leaves
        assert below >= -0.01


@pytest.mark.parametrize("size", [(1440, 900), (1920, 1080)])
def test_unfolding_details_leaves_the_picture_as_it_is(
    open_screen: OpenScreen, fake_server: str, size: tuple[int, int]
) -> None:
    screen = open_screen(fake_server, viewport={"width": size[0], "height": size[1]})
    screen.run(WORDS)
    expect(screen.part("score")).not_to_be_empty()
    high = "() => document.querySelector('[data-ref=figure]').getBoundingClientRect().height"
    before = screen.js(high)
    for name in ("figures", "top"):
        screen.part(name).locator("summary").click()
        expect(screen.part(f"{name}-body")).not_to_be_empty()
        assert screen.js(high) == pytest.approx(before, abs=1)  # a share of the column, rounded
    for name in ("figures", "top"):
        screen.part(name).locator("summary").click()
    assert screen.js(high) == pytest.approx(before, abs=1)
