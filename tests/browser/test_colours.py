"""The colour scales by themselves: which colour stands for which number, as the page's modules compute them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.screen import Screen

Colour = tuple[int, ...]
SCALES = """async () => {
    const { signedScale, signedStops } = await import('/static/js/compare/scale.js');
    const { plotlyScale, position, stepOf } = await import('/static/js/ramp.js');
    const { layerColour, likenessColour } = await import('/static/js/tints.js');
    const places = Array.from({ length: 10 }, (_, at) => at / 9);
    return ['light', 'dark'].map((scheme) => ({
        signed: { sqrt: signedScale(scheme, 'sqrt'), linear: signedScale(scheme, 'linear') },
        legend: signedStops(scheme),
        weights: Object.fromEntries(['sqrt', 'linear', 'log'].map((scale) => [scale, plotlyScale(scheme, scale)])),
        steps: Object.fromEntries(['sqrt', 'linear', 'log'].map((scale) =>
            [scale, [0, 0.0001, 0.002, 0.1, 0.5, 1].map((one) => [one, position(one, scale), stepOf(one, scale)])])),
        layers: places.map((place) => [place, layerColour(scheme, place)]),
        likeness: places.map((place) => [place, likenessColour(scheme, place)]),
    }));
}"""
# Where a number from 0 to 1 lies on its scale, as docs/reading-the-pictures.md has it.
PLACES: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "linear": lambda number: number,
    "log": lambda number: 0 if number == 0 else max(0, 1 + math.log10(number) / 4),
}
# Lightness that channels of 8 bits (0.003 in the dark) and a ramp of 128 steps (half a step: 0.003) can't show.
UNSEEN = 0.007


def rgb(css: str) -> Colour:
    """The channels of a colour as CSS writes it, with commas or without."""
    return tuple(int(channel) for channel in css.removeprefix("rgb(").removesuffix(")").replace(",", " ").split())


def lightness(colour: Colour) -> float:
    """OKLab's L of an sRGB colour (Ottosson 2020)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in colour)
    )
    long = 0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue
    medium = 0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue
    short = 0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue
    return 0.2104542553 * math.cbrt(long) + 0.7936177850 * math.cbrt(medium) - 0.0040720468 * math.cbrt(short)


def is_even(scale: list[tuple[float, Colour]]) -> bool:
    """Whether lightness goes in a straight line from the place 0 to the place 1, far enough to be seen."""
    ends = [lightness(next(colour for place, colour in scale if place == end)) for end in (0, 1)]
    line = {place: ends[0] + place * (ends[1] - ends[0]) for place, _ in scale}
    return abs(ends[1] - ends[0]) > 0.4 and all(abs(lightness(colour) - line[at]) < UNSEEN for at, colour in scale)


@pytest.fixture
def scales(screen: Screen) -> list[dict[str, Any]]:
    """All scales on a light and on a dark page."""
    found: list[dict[str, Any]] = screen.js(SCALES)
    return found


def test_each_colour_stands_for_its_number(scales: list[dict[str, Any]]) -> None:
    for scheme in scales:
        for scale, stops in scheme["signed"].items():
            both = [(2 * at - 1, rgb(css)) for at, css in stops]
            for sign in (-1, 1):
                assert is_even([(PLACES[scale](abs(d)), colour) for d, colour in both if d * sign >= 0]), (scale, sign)
            for difference, (red, green, blue) in both:
                if difference > 0.01:
                    assert red < min(green, blue)  # teal: A has more
                if difference < -0.01:
                    assert red > green > blue  # ochre: B has more
        assert [rgb(css) for css in scheme["legend"]] == [rgb(css) for _, css in scheme["signed"]["linear"]]
        for scale, stops in scheme["weights"].items():
            assert is_even([(PLACES[scale](weight), rgb(css)) for weight, css in stops]), scale
            assert all(blue == max(red, green, blue) for _, (red, green, blue) in ((at, rgb(css)) for at, css in stops))
        for scale, steps in scheme["steps"].items():
            for weight, place, step in steps:
                assert place == pytest.approx(PLACES[scale](weight), abs=1e-12)  # both in float64
                assert abs(step - 255 * place) <= 0.5
        for of in ("layers", "likeness"):
            assert is_even([(place, rgb(css)) for place, css in scheme[of]]), of
