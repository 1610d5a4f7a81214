"""The page /compare as a person uses it: open, point, read. The API is the truth."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlencode
from urllib.request import Request, urlopen

from playwright.sync_api import FloatRect, Page

from tests.browser.screen import Screen, until


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

    def box(self, name: str, line: str) -> FloatRect:
        """The box of the cursor's row or column on one map."""
        found = self.page.locator(f"[data-ref=mark-{line}-{name}]").bounding_box()
        assert found is not None
        return found
