"""Which weights of a head stand alone, and whether the screen shows each: counted in the screenshot's pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.browser.screen import Screen

Cell = tuple[int, int, float]  # row, column, weight
# How far each channel may lie from the ramp's own colour: Plotly mixes it from 49 stops of the 256, and rounds.
MIXED = 3


def isolated(weights: Sequence[Sequence[float | None]], least: float, apart: int, faint: float) -> list[Cell]:
    """Weights above `least` with nothing above `faint` within `apart` rows and columns: none can show another."""
    found: list[Cell] = []
    for row, line in enumerate(weights):
        for col, weight in enumerate(line):
            if weight is None or weight < least:
                continue
            near = [
                other
                for down, beside in enumerate(weights[max(0, row - apart) : row + apart + 1], max(0, row - apart))
                for across, other in enumerate(beside[max(0, col - apart) : col + apart + 1], max(0, col - apart))
                if (down, across) != (row, col)
            ]
            if all((other or 0) < faint for other in near):
                found.append((row, col, weight))
    return found


def not_drawn(screen: Screen, cells: Sequence[Cell], scheme: str = "light") -> list[Cell]:
    """Those cells of the heat map in whose place no pixel of the screen has the colour of their weight."""
    shot = screen.page.screenshot()
    places = [(*screen.place_of(row, col), *screen.colour_of(weight, scheme)) for row, col, weight in cells]
    seen: list[bool] = screen.js(LOOK, {"bytes": list(shot), "places": places, "reach": reach(screen), "mixed": MIXED})
    return [cell for cell, is_seen in zip(cells, seen, strict=True) if not is_seen]


def reach(screen: Screen) -> list[float]:
    """How far from a weight's middle its drawn cell may go, across and down, in CSS pixels: a cell and one pixel."""
    sizes: Any = screen.js(
        """() => {
            const { layout, data: [{ dx, dy }] } = document.querySelector('[data-ref=plot]');
            const { xaxis, yaxis, margin, width, height } = layout;
            const long = ([from, to]) => Math.abs(to - from);
            const wide = dx * (width - margin.l - margin.r) / long(xaxis.range);
            const high = dy * (height - margin.t - margin.b) / long(yaxis.range);
            return [wide, high].map((side) => side + 1 / devicePixelRatio);
        }"""
    )
    return [float(side) for side in sizes]


LOOK = """async ({ bytes, places, reach, mixed }) => {
    const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: 'image/png' }));
    const ratio = bitmap.width / innerWidth;
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d', { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0);
    return places.map(([x, y, ...colour]) => {
        const [left, top] = [x - reach[0], y - reach[1]].map((at) => Math.max(0, Math.floor(at * ratio)));
        const [width, height] = reach.map((side) => Math.ceil(2 * side * ratio) + 1);
        const { data } = context.getImageData(left, top, width, height);
        for (let at = 0; at < data.length; at += 4) {
            if (colour.every((channel, which) => Math.abs(data[at + which] - channel) <= mixed)) return true;
        }
        return false;
    });
}"""
