"""Labels of the axes are whole, or end in an ellipsis; none is cut by the figure's edge, and the chosen row has one."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.browser.comparing import Compared
from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen

SLACK = 0.5  # px, of a glyph's own rounding
LONG_WORDS = {
    "capitals": "COMMONWEALTH of COMMONWEALTH",
    "130 letters": f"one {'w' * 130} two",
    "wide letters": f"{'W' * 14} {'@' * 14}",
    "Chinese": "".join("春眠不觉晓处处闻啼鸟夜来风雨声花落知多少"),
}
OUTSIDE = """([figure, plot]) => {
    const box = document.querySelector(figure).getBoundingClientRect();
    return [...document.querySelectorAll(`${plot} :is(.xtick, .ytick) text`)].filter((node) => {
        const { left, bottom, top } = node.getBoundingClientRect();
        return left < box.left - SLACK || bottom > box.bottom + SLACK || top < box.top - SLACK;
    }).map((node) => node.textContent);
}""".replace("SLACK", str(SLACK))


def outside(page: Page, name: str = "") -> list[str]:
    """The ticks of a map that its figure cuts."""
    found: list[str] = page.evaluate(OUTSIDE, [f"[data-ref=figure{name}]", f"[data-ref=plot{name}]"])
    return found


@pytest.mark.parametrize("size", [(1440, 900), (1180, 620), (390, 844)])
@pytest.mark.parametrize("text", LONG_WORDS.values(), ids=LONG_WORDS)
def test_no_label_is_cut_by_the_edge(
    open_screen: OpenScreen, fake_server: str, text: str, size: tuple[int, int]
) -> None:
    screen = open_screen(fake_server, viewport={"width": size[0], "height": size[1]})
    screen.run(text)
    assert len(screen.row_labels()) > 0
    assert outside(screen.page) == []
    whole = {str(token["text"]).strip() for token in screen.tokens()}
    for label in screen.row_labels():
        plain = re.sub(r"^\d+ | \d/\d$", "", label.replace("\u200b", "")).strip(" ·")  # position and piece
        assert plain in whole or plain.endswith("…")


def test_nor_on_the_page_of_two_heads(open_screen: OpenScreen, fake_server: str) -> None:
    compared = Compared(open_screen(fake_server))
    first, second = (compared.make(LONG_WORDS[name]) for name in ("capitals", "130 letters"))
    compared.open(f"#a={first}&b={second}")
    for name in ("a", "b"):
        assert outside(compared.page, f"-{name}") == []


def test_the_chosen_row_is_among_the_labelled_ones(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server, viewport={"width": 1180, "height": 620})
    screen.run(" ".join(["the lamp was lit at dusk and the wind came round"] * 8))
    numbers = [int(label.split()[0]) for label in screen.row_labels()]
    row = next(at for at in range(20, 60) if at not in numbers)
    screen.page.goto(f"{screen.base}/?lang=en#run={screen.run_id}&layer=0&head=0&token={row}")
    screen.wait_for_map()
    expect(screen.part("plot").locator(".ytick text", has_text=f"{row} ")).to_be_visible()
    tops = sorted(box["y"] for box in boxes(screen))
    assert min(after - before for before, after in pairwise(tops)) >= 11  # px, the letters' size


def boxes(screen: Screen) -> list[dict[str, float]]:
    """Where the labels of the rows are."""
    found: list[dict[str, float]] = (
        screen.part("plot")
        .locator(".ytick text")
        .evaluate_all("(nodes) => nodes.map((node) => ({ y: node.getBoundingClientRect().y }))")
    )
    return found


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_numbers_of_the_scale_of_differences_do_not_touch(
    open_screen: OpenScreen, fake_server: str, width: int
) -> None:
    compared = Compared(open_screen(fake_server, viewport={"width": width, "height": 900}))
    first, second = compared.make("one two three"), compared.make("one two four")
    compared.open(f"#a={first}&b={second}")
    gaps = compared.page.evaluate(
        """() => [...document.querySelectorAll('.legend-ticks')].flatMap((line) => {
            const boxes = [...line.children].map((node) => node.getBoundingClientRect()).filter(({ width }) => width);
            return boxes.slice(1).map(({ left }, at) => left - boxes[at].right);
        })"""
    )
    assert min(gaps) >= 8  # px: more than the blank within a number, which a minus sign nearly fills
