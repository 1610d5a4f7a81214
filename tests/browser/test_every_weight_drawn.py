"""Under maximum pooling no weight is lost, whatever the window, the zoom and the pixels of the screen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.conftest import OpenScreen, free_port, serving
from tests.browser.drawn import Cell, isolated, not_drawn
from tests.browser.screen import Screen

# Long enough to have more weights than a figure has pixels; what comes twice makes heads look at single tokens.
WORDS = """the lamp was lit at dusk and the wind came round from the west while nobody on the shore said a word
about the boat that had gone out before noon with two men a dog and the letters of the whole village"""
TEXT = " ".join([WORDS, WORDS.upper(), WORDS, WORDS.title()])
LAYER, HEAD = 1, 0
LARGE, APART, FAINT = 0.4, 3, 0.2
ROWS_AT_ONCE = 128
ENOUGH = 8  # isolated weights, so that what is counted says something


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service with the models that ship: trained heads, which look at single tokens."""
    folder = tmp_path_factory.mktemp("shipped")
    port = free_port()
    environment = {"PORT": str(port), "EVERYHEAD_DATA_DIR": str(folder / "data"), "EVERYHEAD_OFFLINE": "true"}
    with serving(["app"], port, environment, folder / "log") as address:
        yield address


def shown(open_screen: OpenScreen, base: str, size: tuple[int, int], ratio: float, scheme: str = "light") -> Screen:
    """The picture of the head on a screen of this size, whose CSS pixels are so many of its own."""
    viewport: ViewportSize = {"width": size[0], "height": size[1]}
    screen = open_screen(base, viewport=viewport, device_scale_factor=ratio, color_scheme=scheme)
    screen.run(TEXT)
    screen.page.goto(f"{base}/?lang=en#run={screen.run_id}&layer={LAYER}&head={HEAD}")
    screen.wait_for_map()
    screen.part("figure").scroll_into_view_if_needed()
    screen.page.mouse.move(1, 1)
    return screen


def alone(screen: Screen) -> list[Cell]:
    """The head's isolated weights, of windows small enough to be exact."""
    weights: list[list[float | None]] = []
    length = len(screen.tokens())
    for first in range(0, length, ROWS_AT_ONCE):
        band = screen.api("/weights", layer=LAYER, head=HEAD, rows=f"{first}:{min(first + ROWS_AT_ONCE, length)}")
        assert (band["row_step"], band["col_step"]) == (1, 1)
        weights += band["weights"]
    return isolated(weights, LARGE, APART, FAINT)


@pytest.mark.parametrize(
    ("size", "ratio", "scheme"),
    [
        ((1180, 620), 1, "light"),
        ((1180, 620), 1.25, "light"),
        ((1180, 620), 0.67, "light"),  # the browser's own zoom
        ((1440, 900), 1.5, "dark"),
        ((1024, 768), 2, "light"),
        ((390, 844), 1, "light"),
        ((1111, 777), 0.9, "light"),
    ],
)
def test_each_isolated_weight_is_on_the_screen(
    open_screen: OpenScreen, shipped: str, size: tuple[int, int], ratio: float, scheme: str
) -> None:
    screen = shown(open_screen, shipped, size, ratio, scheme)
    cells = alone(screen)
    assert len(cells) >= ENOUGH
    assert not_drawn(screen, cells, scheme) == []


@pytest.mark.parametrize("ratio", [0.67, 1, 1.25])
def test_nor_is_one_lost_in_a_zoomed_part(open_screen: OpenScreen, shipped: str, ratio: float) -> None:
    screen = shown(open_screen, shipped, (1180, 620), ratio)
    length, cells = len(screen.tokens()), alone(screen)
    for start in (7, 11):  # where no cell of two or three begins at the range's end
        part = f"{start}:{length - start}"
        screen.page.goto(f"{shipped}/?lang=en#run={screen.run_id}&layer={LAYER}&head={HEAD}&rows={part}&cols={part}")
        screen.wait_for_map()
        inside = [cell for cell in cells if all(start <= at < length - start for at in cell[:2])]
        assert len(inside) >= ENOUGH // 2
        assert not_drawn(screen, inside) == []


def test_the_legend_says_what_a_cell_is(open_screen: OpenScreen, shipped: str) -> None:
    screen = shown(open_screen, shipped, (1180, 620), 1)
    cells, pixels = screen.js(
        """() => {
            const { data: [{ z }], layout: { margin, width } } = document.querySelector('[data-ref=plot]');
            return [z.length, (width - margin.l - margin.r) * devicePixelRatio];
        }"""
    )
    length = len(screen.tokens())
    step = -(-length // cells)
    assert length > pixels >= cells
    expect(screen.part("pooling")).to_have_text(f"1 cell = {step} × {step} weights, maximum")
    screen.page.set_viewport_size({"width": 1920, "height": 1400})
    expect(screen.part("pooling")).to_have_text("1 cell = 2 × 2 weights, maximum")  # as many as one answer holds
    screen.wait_for_map()
    assert not_drawn(screen, alone(screen)) == []
