"""The page /compare as a person uses it: open, point, read; and whether its numbers are the API's."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlencode
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import FloatRect, Page, expect

from tests.browser.screen import Screen, until

# Figures that are no scores, with the fields of their value and of its chance level, which entropy has not.
MEASURES = (("entropy", "normalised", ""), ("distance", "mean", "uniform"), ("concentration", "share", "chance"))


def is_written(text: str, value: float) -> bool:
    """Whether a number is what a reader is told: to half a unit of the last digit that is written, 0 and 1 exactly."""
    said = Decimal(text.replace("−", "-"))
    exponent = said.as_tuple().exponent
    assert isinstance(exponent, int)
    half = 0.5 * 10**exponent if exponent else 0.0
    return float(said) == pytest.approx(value, rel=0, abs=half + 1e-12)  # the last digit of a half may go either way


def is_signed(text: str, value: float) -> bool:
    """The same of a difference, whose sign is written on both sides of 0."""
    return is_written(text, value) and (
        float(text.replace("−", "-")) == 0 or text.startswith("+" if value > 0 else "−")
    )


class Compared:
    """The open page and the API behind it."""

    def __init__(self, screen: Screen) -> None:
        self.page: Page = screen.page
        self.screen = screen

    def make(self, text: str) -> str:
        """A finished run's id, made by the API, for tests that need no list of runs: quicker than by the other page."""
        body = json.dumps({"model": "fake-30x9", "text": text}).encode()
        request = Request(f"{self.screen.base}/api/runs", body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=30) as answer:
            run = json.load(answer)
        until(lambda: self.get(f"runs/{run['id']}")["status"] == "done")
        return str(run["id"])

    def open(self, fragment: str = "", lang: str = "en") -> None:
        """Goes to the page; with a fragment waits until all maps are drawn."""
        self.page.goto(f"{self.screen.base}/compare?lang={lang}{fragment}")
        if fragment:
            self.wait()

    def wait(self) -> None:
        """All three maps show what the address names."""
        until(
            lambda: bool(
                self.page.evaluate(
                    """() => {
                const plot = (name) => document.querySelector(`[data-ref=plot-${name}]`);
                const keys = ['a', 'b', 'd'].map((name) => plot(name)?.dataset.key);
                const fields = new URLSearchParams(location.hash.slice(1));
                if (keys.some((key) => !key)) return false;
                const parts = ['', 'site_', 'layer_', 'head_'];
                const head = (side) => parts.map((part) => fields.get(part + side)).join('|');
                const range = ['rows', 'cols'].map((name) => fields.get(name) ?? '').join('|');
                return keys[2] === `${head('a')}|${head('b')}|${range}`
                    && keys[0].startsWith(head('a')) && keys[1].startsWith(head('b'));
            }"""
                )
            )
        )

    @property
    def fields(self) -> dict[str, str]:
        """The address's fragment."""
        hash_ = str(self.page.evaluate("location.hash.slice(1)"))
        return {name: values[0] for name, values in parse_qs(hash_).items()}

    def get(self, path: str, **query: object) -> Any:  # noqa: ANN401 - JSON
        """The API's answer."""
        with urlopen(f"{self.screen.base}/api/{path}?{urlencode(query)}", timeout=30) as answer:
            return json.load(answer)

    @property
    def answer(self) -> Any:  # noqa: ANN401 - JSON
        """What the API says to what the address names."""
        return self.get("compare", **{name: value for name, value in self.fields.items() if name != "scale"})

    def weight(self, side: str, row: list[int], col: list[int]) -> float:
        """Keys summed and queries averaged of one side, from exact windows."""
        fields = self.fields
        named = {name: fields[f"{name}_{side}"] for name in ("site", "layer", "head")}
        place = {"rows": f"{row[0]}:{row[1]}", "cols": f"{col[0]}:{col[1]}"}
        cells = self.get(f"runs/{fields[side]}/weights", **named, **place)["weights"]
        return sum(value or 0.0 for line in cells for value in line) / (row[1] - row[0])

    def point(self, name: str, row: int, col: int) -> None:
        """Moves the pointer to a cell of one map, found from Plotly's own axes."""
        x, y = self.place(name, row, col)
        self.page.mouse.move(x, y)

    def place(self, name: str, row: int, col: int) -> tuple[float, float]:
        """Where a cell lies on the screen."""
        self.page.locator(f"[data-ref=figure-{name}]").scroll_into_view_if_needed()
        x, y = self.page.evaluate(
            """([name, row, col]) => {
                const plot = document.querySelector(`[data-ref=plot-${name}]`);
                const { left, top } = plot.getBoundingClientRect();
                const { xaxis, yaxis, margin, width, height } = plot.layout;
                const at = (value, [from, to]) => (value - from) / (to - from);
                return [
                    left + margin.l + at(col, xaxis.range) * (width - margin.l - margin.r),
                    top + height - margin.b - at(row, yaxis.range) * (height - margin.t - margin.b),
                ];
            }""",
            [name, row, col],
        )
        return float(x), float(y)

    def read(self) -> dict[str, float]:
        """The readout's numbers: a, b, d."""
        found = self.page.locator("[data-ref=readout] data").evaluate_all(
            "nodes => nodes.map((node) => [node.dataset.side, Number(node.value)])"
        )
        return dict(found)

    def colour_of(self, difference: float) -> tuple[int, ...]:
        """What the scale of differences has for one, on a light page."""
        tone = self.screen.js(
            """async (difference) => {
                const { placeOf, toneAt } = await import('/static/js/compare/scale.js');
                return toneAt(placeOf(difference, 'sqrt'), 'light');
            }""",
            difference,
        )
        return tuple(tone)

    def box(self, name: str, line: str) -> FloatRect:
        """The box of the cursor's row or column on one map."""
        found = self.page.locator(f"[data-ref=mark-{line}-{name}]").bounding_box()
        assert found is not None
        return found


def check_tables(compared: Compared) -> None:
    """Every number of both tables is the API's, as it is written too."""
    check_changes(compared)
    fields, page = compared.fields, compared.page
    heads = {}
    for side in ("a", "b"):
        listed = compared.get(f"runs/{fields[side]}/heads", site=fields[f"site_{side}"])["heads"]
        at = (fields[f"layer_{side}"], fields[f"head_{side}"])
        heads[side] = next(one for one in listed if (str(one["layer"]), str(one["head"])) == at)
    for name in heads["a"]["scores"]:
        scores = [heads[side]["scores"][name] for side in ("a", "b")]
        check_figures(page, name, [score and (score["score"], score["chance"]) for score in scores])
    for name, field, chance in MEASURES:
        found = [heads[side][name] for side in ("a", "b")]
        check_figures(page, name, [one and (one[field], one.get(chance)) for one in found])


def check_changes(compared: Compared) -> None:
    """Every row of the changes: where it lies in both texts, both weights, and their difference with its sign."""
    answer = compared.answer
    rows = compared.page.locator("[data-ref=changes] tbody tr")
    expect(rows).to_have_count(len(answer["largest"]))
    shown = rows.evaluate_all(
        """rows => rows.map((row) => ({
            place: row.dataset.change, where: [...row.querySelectorAll('.aside')].map((one) => one.innerText.trim()),
            values: [...row.querySelectorAll('data')].map((one) => Number(one.value)),
            texts: [...row.querySelectorAll('data')].map((one) => one.innerText),
        }))"""
    )
    for row, change in zip(shown, answer["largest"], strict=True):
        assert row["place"] == f"{change['row']}:{change['col']}"
        assert row["where"] == [
            position(answer["axis_rows"][change["row"]]),
            position(answer["axis_cols"][change["col"]]),
        ]
        assert row["values"] == [change["a"], change["b"], change["difference"]]
        assert all(map(is_written, row["texts"], row["values"]))
        assert is_signed(row["texts"][2], change["difference"])


def position(segment: dict[str, Any]) -> str:
    """Where a segment stands in A and, where it is another place there, in B."""
    tokens = [segment[side] for side in ("a", "b")]
    texts = [str(first) if stop - first == 1 else f"{first}–{stop - 1}" for first, stop in tokens]
    return " / ".join(dict.fromkeys(texts))


def check_figures(page: Page, name: str, figures: list[tuple[float, float | None] | None]) -> None:
    """One row of the figures; its last number is the difference where both can be told."""
    row = page.locator(f"[data-figure={name}]")
    numbers = row.locator("data").evaluate_all("nodes => nodes.map((node) => [node.innerText, Number(node.value)])")
    known = [figure for figure in figures if figure is not None]
    values = [value for value, _ in known]
    expected = [*values, values[0] - values[1]] if len(known) == 2 else values
    assert [value for _, value in numbers] == pytest.approx(expected, abs=1e-12), name
    assert all(is_written(text, value) for (text, _), value in zip(numbers, expected, strict=True)), name
    assert len(known) < 2 or is_signed(numbers[2][0], expected[2]), name
    chances = [text.split()[-1] for text in row.locator(".beside").all_inner_texts()]
    assert all(map(is_written, chances, [chance for _, chance in known if chance is not None])), name


def check_readout(compared: Compared, row: dict[str, Any], col: dict[str, Any]) -> None:
    """What is read at a place: where it lies in both texts, and the numbers as they are written."""
    readout = compared.page.locator("[data-ref=readout]")
    assert [text.strip(" ()") for text in readout.locator(".aside").all_inner_texts()] == [position(row), position(col)]
    texts, numbers = readout.locator("data").all_inner_texts(), compared.read()
    assert all(map(is_written, texts, [numbers[name] for name in ("a", "b", "d")]))
    assert is_signed(texts[2], numbers["a"] - numbers["b"])
