"""A long text is pooled at first and sharpens until one cell is one weight."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen, free_port, serving
from tests.browser.screen import WINDOW_ROUNDING, Screen

WORDS = "the lamp was lit at dusk and the wind came round from the west again while nobody on the shore said a word"
LONG = " ".join([WORDS] * 180)  # 4,140 words


@pytest.fixture(scope="module")
def few_heads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service over 4 layers × 3 heads, so that a long text does not take long."""
    folder = tmp_path_factory.mktemp("few")
    port = free_port()
    arguments = ["tests.fake_server", "--port", str(port), "--delay", "0", "--layers", "4", "--heads", "3"]
    with serving([*arguments, "--data-dir", str(folder / "data")], port, {}, folder / "log") as address:
        yield address


@pytest.fixture
def long(open_screen: OpenScreen, few_heads: str) -> Screen:
    """More than 4,096 tokens on the screen."""
    screen = open_screen(few_heads)
    screen.run(LONG)
    assert len(screen.tokens()) > 4096
    return screen


def steps_of(screen: Screen) -> int:
    """Weights along a cell's side when the whole is shown in at most 256 × 256 cells."""
    return -(-len(screen.tokens()) // 256)


def zoom_to_single_weights(screen: Screen, row: int, col: int) -> None:
    """Turns the wheel over a cell until the page says that one cell is one weight."""
    for _ in range(14):
        if screen.part("pooling").inner_text() == "1 cell = 1 weight":
            return
        screen.point_at(row, col)
        screen.page.mouse.wheel(0, -300)
        screen.page.wait_for_timeout(120)
        screen.wait_for_map()
    pytest.fail("it never came to single weights")


def test_zooming_reaches_single_weights(long: Screen) -> None:
    step = steps_of(long)
    expect(long.part("pooling")).to_have_text(f"1 cell = {step} × {step} weights, maximum")
    zoom_to_single_weights(long, 3000, 1200)
    for row, col in ((3000, 1200), (2999, 1203)):
        long.point_at(row, col)
        expect(long.part("readout").locator("data")).to_be_visible()
        assert f"({row:,})" in long.part("readout").inner_text()
        assert long.read_weight() == pytest.approx(long.weight(row, col), rel=WINDOW_ROUNDING)
    assert long.fragment("rows") is not None


def test_a_pooled_cell_is_the_largest_of_its_weights(long: Screen) -> None:
    step = steps_of(long)
    long.point_at(3000, 1200)
    rows, cols = (3000 // step * step, 1200 // step * step)
    last = step - 1
    expect(long.part("readout")).to_contain_text(f"rows {rows:,}–{rows + last:,}, columns {cols:,}–{cols + last:,}")
    block = long.api("/weights", layer=0, head=0, rows=f"{rows}:{rows + step}", cols=f"{cols}:{cols + step}")["weights"]
    assert long.read_weight() == max(max(line) for line in block)


def test_dragging_zooms_and_double_click_shows_all(long: Screen) -> None:
    start, end = long.place_of(2000, 500), long.place_of(2600, 1100)
    long.page.mouse.move(*start)
    long.page.mouse.down()
    long.page.mouse.move(*end, steps=4)
    long.page.mouse.up()
    long.wait_for_map()
    rows = [int(part) for part in (long.fragment("rows") or "").split(":")]
    assert rows[0] == pytest.approx(2000, abs=12)  # a pixel is about 8 weights here
    assert rows[1] == pytest.approx(2600, abs=12)
    long.page.mouse.dblclick(*long.place_of(2300, 800))
    long.wait_for_map()
    assert long.fragment("rows") is None


def test_buttons_zoom_too(long: Screen) -> None:
    long.part("zoom-in").click()
    long.wait_for_map()
    rows = [int(part) for part in (long.fragment("rows") or "").split(":")]
    assert rows[1] - rows[0] == pytest.approx(len(long.tokens()) / 2, abs=2)
    long.part("zoom-all").click()
    long.wait_for_map()
    assert long.fragment("rows") is None


def test_labels_never_touch(long: Screen) -> None:
    tops = "(nodes) => nodes.map((one) => one.getBoundingClientRect().top)"
    boxes = long.part("plot").locator(".ytick text").evaluate_all(tops)
    steps = [after - before for before, after in pairwise(boxes)]
    assert len(boxes) > 10
    assert min(abs(step) for step in steps) >= 11  # px, the size of the letters


def test_the_strip_stays_quick(long: Screen) -> None:
    took = long.js(
        """async () => {
            const nodes = document.querySelectorAll('.tok');
            const start = performance.now();
            nodes[2000].dispatchEvent(new PointerEvent('pointerover', { bubbles: true, pointerType: 'mouse' }));
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return performance.now() - start;
        }"""
    )
    assert took < 1000  # ms; two frames and one repaint of 4,000 tokens on a busy machine
