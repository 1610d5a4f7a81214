"""The page as a person uses it: type, run, point, read. Knows its parts by their names, and the API as the truth."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import parse_qs, urlencode
from urllib.request import urlopen

from playwright.sync_api import Locator, Page, expect

RUN_S = 60.0
SETTLE_S = 20.0
# The same weight from windows of other sizes: float32 products of other shapes are summed in another order.
WINDOW_ROUNDING = 1e-5
WAITING = "#-"  # any fragment: the page runs an example only where the address asks for nothing
JS_S = 10.0  # an evaluation's own limit: Playwright's does not end a promise that never settles


class Watching(Protocol):
    """What the page must never do, remembered."""

    requests: list[str]

    def allow(self, part: str) -> None:
        """Expect one kind of message."""

    def check(self) -> None:
        """Fail on the others."""


class Screen:
    """One open page."""

    def __init__(self, page: Page, base: str, witness: Watching) -> None:
        self.page = page
        self.base = base
        self.witness = witness

    # --- moving about -------------------------------------------------------------------------------------------------

    def goto(self, fragment: str = WAITING, lang: str = "en") -> None:
        """Opens the page, by itself without a run, and waits until the models are known."""
        self.page.goto(f"{self.base}/?lang={lang}{fragment}")
        expect(self.part("model-button").locator(".model-name")).not_to_have_class("model-name quiet")

    def part(self, name: str) -> Locator:
        """A part of the page by its name in the templates."""
        return self.page.locator(f'[data-ref="{name}"]')

    def type(self, text: str) -> None:
        """Puts a text into the field."""
        self.page.fill("#text", text)

    def run(self, text: str, timeout_s: float = RUN_S) -> str:
        """Runs a text, waits for its picture and gives the run's id."""
        self.type(text)
        before = self.fragment("run")
        self.part("run").click()
        until(lambda: self.fragment("run") not in (None, before) or self.part("problem").is_visible(), timeout_s)
        self.wait_for_map(timeout_s)
        return self.run_id

    def wait_for_map(self, timeout_s: float = SETTLE_S) -> None:
        """Waits until the heat map shows exactly what the address names, in exact weights."""
        until(self._map_settled, timeout_s)

    def _map_settled(self) -> bool:
        drawn = self.js(
            """() => {
                const plot = document.querySelector('[data-ref=plot]');  // none on a page that is being left
                return !plot || plot.hidden ? {} : {...plot.dataset};
            }"""
        )
        if drawn.get("exact") != "true" or self.fragment("run") is None:
            return False
        run, site, layer, head, rows, cols, pool = self.drawn_key(drawn["key"])
        wanted = (self.run_id, self.fragment("site"), self.fragment("layer"), self.fragment("head"))
        ranges = [self.fragment(name) for name in ("rows", "cols")]
        same = all(want in (None, have) for want, have in zip(ranges, (rows, cols), strict=True))
        lens, unit = drawn["key"].split("|")[5:7]
        same = same and (self.fragment("lens") or "raw", self.fragment("unit") or "token") == (lens, unit)
        return (run, site, layer, head) == wanted and same and (self.fragment("pool") or "max") == pool

    @staticmethod
    def drawn_key(key: str) -> tuple[str, str, str, str, str, str, str]:
        """run, site, layer, head, rows, cols, pool of the picture that is drawn."""
        run, site, layer, head, pool, _lens, _unit, rows, cols = key.split("|")
        return run, site, layer, head, rows, cols, pool

    def choose_model(self, model_id: str) -> None:
        """Chooses a model in the list."""
        self.part("model-button").click()
        self.part("models").locator(f'input[value="{model_id}"]').check()
        self.page.keyboard.press("Escape")

    def choose_site(self, site: str) -> None:
        """Shows another attention of the model and waits for its picture."""
        self.part("sites").locator(f'[data-value="{site}"]').click()
        until(lambda: self.fragment("site") == site)
        self.wait_for_map()

    # --- reading ------------------------------------------------------------------------------------------------------

    def js(self, script: str, argument: object = None) -> Any:  # noqa: ANN401 - whatever the page answers
        """Evaluates in the page, with a time limit."""
        guarded = f"""(argument) => Promise.race([
            Promise.resolve(({script})(argument)),
            new Promise((_, reject) => setTimeout(() => reject(new Error('took too long')), {JS_S * 1000})),
        ])"""
        return self.page.evaluate(guarded, argument)

    def fragment(self, name: str) -> str | None:
        """One field of the address's fragment."""
        values = parse_qs(str(self.js("() => location.hash.slice(1)"))).get(name)
        return values[0] if values else None

    @property
    def run_id(self) -> str:
        """The run that the address names."""
        found = self.fragment("run")
        assert found is not None, "the address names no run"
        return found

    def api(self, rest: str = "", **query: object) -> Any:  # noqa: ANN401 - JSON
        """The API's own answer about the run that is shown."""
        address = f"{self.base}/api/runs/{self.run_id}{rest}"
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        with urlopen(f"{address}?{urlencode(query)}" if query else address, timeout=30) as answer:
            return json.load(answer)

    def weight(
        self, row: int, col: int, layer: int | str = 0, head: int | str = 0, site: str | None = None
    ) -> float | None:
        """One weight as the API gives it; None where it is masked."""
        named = {} if site is None else {"site": site}
        cell = {"rows": f"{row}:{row + 1}", "cols": f"{col}:{col + 1}"}
        window = self.api("/weights", layer=layer, head=head, **cell, **named)
        value: float | None = window["weights"][0][0]
        return value

    def tokens(self, side: str = "source") -> list[dict[str, Any]]:
        """The run's tokens as the API gives them."""
        found: list[dict[str, Any]] = self.api()["tokens"][side]
        return found

    # --- the heat map -------------------------------------------------------------------------------------------------

    def point_at(self, row: int, col: int) -> None:
        """Moves the pointer to the middle of a cell, found from Plotly's own axes."""
        x, y = self.place_of(row, col)
        self.page.mouse.move(x, y)

    def place_of(self, row: int, col: int) -> tuple[float, float]:
        """Where Plotly's axes put the middle of a cell, on the screen."""
        x, y = self.js(
            """([row, col]) => {
                const plot = document.querySelector('[data-ref=plot]');
                const { left, top } = plot.getBoundingClientRect();
                const { xaxis, yaxis, margin, width, height } = plot.layout;
                const at = (value, [from, to]) => (value - from) / (to - from);
                return [
                    left + margin.l + at(col, xaxis.range) * (width - margin.l - margin.r),
                    top + height - margin.b - at(row, yaxis.range) * (height - margin.t - margin.b),
                ];
            }""",
            [row, col],
        )
        return float(x), float(y)

    def read_weight(self) -> float:
        """The number in the readout, not rounded."""
        value = self.part("readout").locator("data").get_attribute("value")
        assert value is not None
        return float(value)

    def pixel(self, x: float, y: float) -> tuple[int, int, int]:
        """The colour on the screen at a point."""
        shot = self.page.screenshot(clip={"x": round(x) - 1, "y": round(y) - 1, "width": 3, "height": 3})
        red, green, blue = self.js(
            """async (bytes) => {
                const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: 'image/png' }));
                const context = new OffscreenCanvas(3, 3).getContext('2d');
                context.drawImage(bitmap, 0, 0);
                return [...context.getImageData(1, 1, 1, 1).data.slice(0, 3)];
            }""",
            list(shot),
        )
        return int(red), int(green), int(blue)

    def colour_of(self, weight: float, scheme: str = "light", scale: str = "sqrt") -> tuple[int, int, int]:
        """The ramp's colour of a weight."""
        red, green, blue = self.js(
            """async ([weight, scheme, scale]) => {
                const { rampOf, stepOf } = await import('/static/js/ramp.js');
                return rampOf(scheme)[stepOf(weight, scale)];
            }""",
            [weight, scheme, scale],
        )
        return int(red), int(green), int(blue)

    def row_labels(self) -> list[str]:
        """The labels beside the rows as they are drawn, from the top."""
        return self._labels("ytick")

    def col_labels(self) -> list[str]:
        """The labels below the columns as they are drawn, from the left."""
        return self._labels("xtick")

    def _labels(self, kind: str) -> list[str]:
        found: list[str] = self.js(
            f"() => [...document.querySelectorAll('[data-ref=plot] .{kind} text')].map((one) => one.textContent)"
        )
        return [label.replace("\u2068", "").replace("\u2069", "") for label in found]  # isolated from what is around


def until(holds: Callable[[], bool], timeout_s: float = SETTLE_S) -> None:
    """Waits until something holds; not for what a route handler notes: it runs only while Playwright waits itself."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("it did not come about in time")
        time.sleep(0.05)
