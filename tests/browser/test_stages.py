"""The page /stages: from a run's checks to where two implementations part, and back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from models.stages import IN_LAYER
from tests.browser.conftest import OpenScreen, deep, free_port, serving
from tests.browser.screen import Screen
from tests.unit.tiny_checkpoints import save_gpt2

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def gpt2_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service with a GPT-2 of two layers as its default model."""
    folder = tmp_path_factory.mktemp("gpt2")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_gpt2(folder / "models" / "tiny")
    port = free_port()
    environment = {
        "PORT": str(port),
        "EVERYHEAD_DATA_DIR": str(folder / "data"),
        "EVERYHEAD_MODELS_DIR": str(folder / "models"),
        "EVERYHEAD_DEFAULT_MODEL": "local:tiny",
        "EVERYHEAD_OFFLINE": "true",
    }
    with serving(["app"], port, environment, folder / "log") as address:
        yield address


ADVICE = {
    "embeddings": "tables of tokens and positions",
    "layers.0.query": "the query matrix",
    "layers.1.value": "the value matrix",
    "layers.0.scores": "how they are compared",
    "layers.1.weights": "the mask and the softmax",
    "logits": "the output matrix",
}


def open_stages(screen: Screen) -> Page:
    """A run, then the link below its checks."""
    screen.run("cat")
    expect(screen.part("ran-by")).to_have_text(re.compile("our own code|本项目的实现"))
    link = screen.part("stages").get_by_role("link")
    expect(link).to_have_attribute("href", f"/stages#run={screen.run_id}")
    link.click()
    expect(screen.page.locator("table.stages")).to_be_visible()
    return screen.page


def serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {[node['target'] for node in one['nodes']]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def parting_at(name: str) -> Callable[[Route], None]:
    """Answers with the server's own comparison, changed so that it parts at one stage."""

    def answer(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        reply = route.fetch()
        found = reply.json()
        at = [stage["name"] for stage in found["stages"]].index(name)
        for stage in found["stages"][at:]:
            stage.update(absolute=0.5, relative=0.25, over=True)
        found["stages"][at].update(absolute=None, relative=None)
        route.fulfill(response=reply, body=json.dumps({**found, "first_over": name}))

    return answer


def test_every_stage_has_a_bar_and_its_number(open_screen: OpenScreen, gpt2_server: str) -> None:
    screen = open_screen(gpt2_server)
    page = open_stages(screen)
    expect(page.locator("[data-ref=finding]")).to_contain_text("All 23 stages agree")
    names = page.locator(".stage").evaluate_all("cells => cells.map((cell) => cell.dataset.name)")
    inside = [f"layers.{layer}.{stage}" for layer in range(2) for stage in IN_LAYER]
    assert names == ["embeddings", *inside, "final_norm", "logits"]
    assert page.locator(".is-over").count() == 0
    places = page.locator(".stage").evaluate_all(
        """cells => cells.map((cell) => ({
            value: Number(cell.querySelector('data').value),
            bar: cell.querySelector('.stage-bar').getBoundingClientRect().width,
            track: cell.querySelector('.stage-track').getBoundingClientRect().width,
        }))"""
    )
    for place in places:  # in float32 the scale goes from 1e-9 to 1
        share = 0.0 if place["value"] == 0 else max(0.0, 1 + math.log10(place["value"]) / 9)
        assert place["bar"] / place["track"] == pytest.approx(share, abs=0.02)
    page.locator("[data-ref=back]").click()
    screen.wait_for_map()


@pytest.mark.parametrize(
    ("viewport", "lang", "scheme"),
    [(None, "en", "light"), (PHONE, "zh", "dark"), deep(None, "zh", "dark"), deep(PHONE, "en", "light")],
)
def test_where_they_part_is_marked(
    open_screen: OpenScreen, gpt2_server: str, lang: str, scheme: str, viewport: dict[str, int] | None
) -> None:
    options = {"color_scheme": scheme, **({"viewport": viewport} if viewport else {})}
    screen = open_screen(gpt2_server, lang=lang, **options)
    screen.page.route("**/api/runs/*/stages", parting_at("layers.1.key"))
    page = open_stages(screen)
    first = page.locator(".is-first")
    expect(first).to_have_attribute("data-name", "layers.1.key")
    assert page.locator(".is-over").count() == 10  # key and the seven after it in its layer, final norm, logits
    words = {
        "en": "They part at layer 1, key: a difference that is not a number",
        "zh": "两者在第 1 层的键处分开：差异不是数值",
    }[lang]
    expect(page.locator("[data-ref=finding]")).to_contain_text(words)
    cause = {"en": "look at the key matrix", "zh": "请检查键矩阵"}[lang]
    expect(page.locator("[data-ref=cause]")).to_contain_text(cause)
    page.locator("[data-ref=finding] button").click()
    expect(first).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []


def test_the_advice_fits_the_stage(open_screen: OpenScreen, gpt2_server: str) -> None:
    page = open_stages(open_screen(gpt2_server))
    for name, words in ADVICE.items():
        page.unroute_all()
        page.route("**/api/runs/*/stages", parting_at(name))
        page.reload()
        expect(page.locator(".is-first")).to_have_attribute("data-name", name)
        expect(page.locator("[data-ref=cause]")).to_contain_text(words)


def written(value: float) -> str:
    """A number as the page writes it."""
    if value == 0:
        return "0"
    if 0.001 <= value < 1000:
        return str(Decimal(f"{value:.1e}"))
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}e{int(power):+d}"


def test_the_page_says_what_the_api_says(open_screen: OpenScreen, gpt2_server: str) -> None:
    answers: list[dict[str, Any]] = []

    def spread(route: Route) -> None:
        """Differences of every size below the tolerance, the largest in the middle."""
        if route.request.method != "POST":
            route.continue_()
            return
        reply = route.fetch()
        found = reply.json()
        for at, stage in enumerate(found["stages"]):
            stage["relative"] = 0.0 if at == 0 else 1.37e-9 * 1.8**at
        found["stages"][9]["relative"] = 8.6e-4
        answers.append(found)
        route.fulfill(response=reply, body=json.dumps(found))

    screen = open_screen(gpt2_server)
    screen.page.route("**/api/runs/*/stages", spread)
    page = open_stages(screen)
    stages = answers[-1]["stages"]
    numbers = page.locator(".stage data")
    assert numbers.all_inner_texts() == [written(stage["relative"]) for stage in stages]
    assert [float(str(one.get_attribute("value"))) for one in numbers.all()] == [stage["relative"] for stage in stages]
    largest = page.locator(f".stage[data-name='{stages[9]['name']}']").get_attribute("data-label")
    words = f"The largest difference is 8.6e-4 (layer {stages[9]['layer']}, {largest})"
    expect(page.locator("[data-ref=finding]")).to_contain_text(words)
    line, track = (page.locator(part).first.bounding_box() for part in (".scale-tolerance", ".scale-line"))
    assert line is not None
    assert track is not None
    share = 1 + math.log10(answers[-1]["tolerance"]) / 9
    assert (line["x"] + line["width"] / 2 - track["x"]) / track["width"] == pytest.approx(share, abs=0.01)


def test_without_a_run_it_says_what_to_do(open_screen: OpenScreen, gpt2_server: str) -> None:
    screen = open_screen(gpt2_server)
    screen.page.goto(f"{gpt2_server}/stages?lang=en")
    expect(screen.page.locator("[data-ref=finding]")).to_contain_text("names no run")
    screen.witness.allow("404")
    screen.page.goto(f"{gpt2_server}/stages?lang=en#run={'0' * 32}")
    expect(screen.page.locator("[data-ref=finding]")).to_have_text(re.compile("no longer"))


def test_the_language_changes_and_the_run_stays(open_screen: OpenScreen, gpt2_server: str) -> None:
    page = open_stages(open_screen(gpt2_server))
    run = page.url.split("#")[1]
    page.locator("[data-ref=language]").click()
    expect(page.locator("h1")).to_have_text("逐级比较")
    expect(page.locator("table.stages")).to_be_visible()
    assert page.url.split("#")[1] == run


def test_a_model_without_a_counterpart_has_no_link(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)
    screen.run("When Mary went to the store")
    expect(screen.part("stages")).to_be_hidden()
