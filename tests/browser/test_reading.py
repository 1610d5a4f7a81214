"""Does the screen tell the truth? What is pointed at, painted and listed is what the API says."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.browser.screen import WINDOW_ROUNDING, Screen

# A screenshot rounds colours once more than the ramp, and Plotly interpolates between 49 stops of the scale.
COLOUR_TOLERANCE = 4


@pytest.mark.parametrize(("row", "col"), [(0, 0), (5, 3), (9, 9), (13, 1)])
def test_the_hovered_weight_is_the_apis(shown: Screen, row: int, col: int) -> None:
    shown.point_at(row, col)
    readout = shown.part("readout")
    expect(readout.locator("data")).to_be_visible()
    weight = shown.weight(row, col)
    assert weight is not None
    assert shown.read_weight() == pytest.approx(weight, rel=WINDOW_ROUNDING)
    tokens = shown.tokens()
    words = readout.inner_text()
    assert f"({row})" in words
    assert f"({col})" in words
    for index in (row, col):
        assert tokens[index]["text"].strip() in words


def test_four_digits_are_shown(shown: Screen) -> None:
    shown.point_at(9, 9)
    shown_text = shown.part("readout").locator("data").inner_text()
    weight = shown.weight(9, 9)
    assert weight is not None
    assert float(shown_text) == pytest.approx(weight, rel=5e-4, abs=5e-5)  # half of the fourth digit


def test_a_masked_cell_says_so_and_shows_no_number(shown: Screen) -> None:
    shown.point_at(2, 8)
    expect(shown.part("readout")).to_contain_text("masked")
    expect(shown.part("readout").locator("data")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_are_painted_in_the_ramps_colour_of_their_weight(shown: Screen, scheme: Literal["light", "dark"]) -> None:
    shown.page.emulate_media(color_scheme=scheme)
    shown.wait_for_map()
    shown.page.mouse.move(5, 5)  # no crosshair over the cells
    shown.page.wait_for_timeout(300)
    for row, col in ((0, 0), (6, 5), (10, 2), (14, 13)):
        weight = shown.weight(row, col)
        assert weight is not None
        painted = shown.pixel(*shown.place_of(row, col))
        wanted = shown.colour_of(weight, scheme)
        assert max(abs(a - b) for a, b in zip(painted, wanted, strict=True)) <= COLOUR_TOLERANCE


def test_masked_cells_carry_the_hatch(shown: Screen) -> None:
    x, y = shown.place_of(2, 10)
    colours = {shown.pixel(x + step, y) for step in range(-6, 7)}
    assert len(colours) > 1
    expect(shown.part("legend")).to_contain_text("masked")


def test_thumbnails_are_painted_in_the_same_scale(shown: Screen) -> None:
    corner = shown.weight(0, 0, layer=4, head=2)
    assert corner == 1.0
    box = shown.part("canvas").bounding_box()
    assert box is not None
    place = shown.js(
        """async () => {
            const { boxOf, layoutOverview } = await import('/static/js/overview-layout.js');
            const heads = document.querySelector('[data-ref=heads]');
            const room = { layers: 30, heads: 9, reach: true, width: heads.clientWidth, height: heads.clientHeight };
            return boxOf(layoutOverview(room), { layer: 4, head: 2 });
        }"""
    )
    painted = shown.pixel(box["x"] + place["x"] + 1, box["y"] + place["y"] + 1)
    assert max(abs(a - b) for a, b in zip(painted, shown.colour_of(1.0), strict=True)) <= COLOUR_TOLERANCE


@pytest.mark.parametrize(("direction", "index"), [("row", 8), ("col", 3)])
def test_a_clicked_token_colours_the_strip_by_its_row_or_column(shown: Screen, direction: str, index: int) -> None:
    shown.part("direction").locator(f'[data-value="{direction}"]').click()
    shown.page.locator(f'.tok[data-i="{index}"]').click()
    shown.page.mouse.move(5, 5)
    shown.page.wait_for_timeout(300)
    for other in (index, 0, 10):
        weight = shown.weight(index, other) if direction == "row" else shown.weight(other, index)
        node = shown.page.locator(f'.tok[data-i="{other}"]')
        style = node.evaluate("(node) => node.style.backgroundColor")
        if weight is None:
            assert style == ""
            expect(node).to_have_class(re.compile("is-masked"))
        else:
            assert style == "rgb({}, {}, {})".format(*shown.colour_of(weight))


def test_the_table_lists_the_largest_weights(shown: Screen) -> None:
    shown.page.locator('.tok[data-i="9"]').click()
    shown.part("top").locator("summary").click()
    row = shown.api("/weights", layer=0, head=0, rows="9:10")["weights"][0]
    largest = sorted(((weight, index) for index, weight in enumerate(row) if weight is not None), reverse=True)[:8]
    lines = shown.part("top-body").locator("tbody tr")
    expect(lines).to_have_count(len(largest))
    positions = [int(text) for text in lines.locator("td:nth-child(2)").all_inner_texts()]
    assert positions == [index for _, index in largest]


@pytest.mark.parametrize("aggregate", ["mean", "max"])
def test_all_heads_of_a_layer_can_be_shown_as_one(shown: Screen, aggregate: str) -> None:
    shown.part("head").select_option(aggregate)
    shown.wait_for_map()
    shown.point_at(7, 4)
    expect(shown.part("readout").locator("data")).to_be_visible()
    assert shown.read_weight() == pytest.approx(shown.weight(7, 4, head=aggregate), rel=WINDOW_ROUNDING)


def test_the_picture_stays_in_place_while_one_reads_it(shown: Screen) -> None:
    before = shown.part("figure").bounding_box()
    for row, col in ((13, 12), (0, 0), (2, 9)):
        shown.point_at(row, col)
        expect(shown.part("readout")).to_contain_text(f"({row})")
        assert shown.part("figure").bounding_box() == before


def test_linear_colour_keeps_weights_and_changes_paint(shown: Screen) -> None:
    weights = shown.api("/weights", layer=0, head=0)["weights"]
    seen = [(abs(w - 0.2), r, c, w) for r, line in enumerate(weights) for c, w in enumerate(line) if w is not None]
    _, row, col, weight = min(seen)  # a weight in the middle, where the two scales differ most
    before = shown.pixel(*shown.place_of(row, col))
    shown.part("scale").select_option("linear")
    shown.page.mouse.move(5, 5)
    shown.page.wait_for_timeout(400)
    after = shown.pixel(*shown.place_of(row, col))
    wanted = shown.colour_of(weight, "light", "linear")
    assert max(abs(a - b) for a, b in zip(after, wanted, strict=True)) <= COLOUR_TOLERANCE
    assert before != after
    assert shown.fragment("scale") == "linear"
