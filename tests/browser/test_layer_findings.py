"""The view of layers: how far each looks, beside uniform attention, and what is said of them. Numbers are the API's."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import ROOT, OpenScreen, deep
from tests.browser.screen import Screen, until
from tests.browser.test_finder import REPEATED, open_tab, rounded

Findings = list[dict[str, Any]]
BARS = """slots => slots.map((slot) => [
    slot.title, parseFloat(slot.querySelector('.curve-bar').style.height),
    parseFloat(slot.querySelector('.curve-tick').style.bottom),
])"""
CELLS = "rows => rows.map((row) => [...row.querySelectorAll('td.number')].map((cell) => cell.textContent))"


def far(value: float) -> str:
    """A distance: whole tokens, or halves of them."""
    return str(int(value)) if value == int(value) else rounded(value, 1)


def sentences(lang: str, verdicts: Findings, near: int) -> list[str]:
    """The verdicts in words, with all their numbers."""
    words = json.loads((ROOT / f"static/i18n/{lang}.json").read_text(encoding="utf-8"))
    said = []
    for verdict in verdicts:
        first, last = verdict["layers"]
        layers = words["finding.layer" if first == last else "finding.layers"]
        numbers = {name: rounded(verdict[name], 1) for name in ("mean", "uniform")}
        shares = {name: rounded(100 * verdict[name], 0) for name in ("share", "chance")}
        named = layers.format(n=first, first=first, last=last)
        text = words[f"verdict.{verdict['code']}"].format(
            layers=named, near=near, **numbers, **shares, sink=rounded(100 * (verdict["sink"] or 0), 0)
        )
        if (whole := verdict["whole"]) and verdict["code"] != "sink":
            more = words["finding.beside_sink_near" if verdict["code"] == "near" else "finding.beside_sink"].format(
                sink=rounded(100 * verdict["sink"], 0),
                share_all=rounded(100 * whole["share"], 0),
                mean_all=rounded(whole["mean"], 1),
                uniform_all=rounded(whole["uniform"], 1),
            )
            text = words["finding.joint"].format(said=text, more=more)
        said.append(text)
    return said


def check_verdicts(screen: Screen, lang: str, verdicts: Findings, near: int) -> None:
    """Each verdict is said, those that are folded away too."""
    told = screen.part("layers-box").locator(".is-verdict, .is-more details > p")
    assert told.all_text_contents() == sentences(lang, verdicts, near)
    assert len(verdicts) > 4


def check_likeness(screen: Screen, warnings: Findings) -> None:
    """The heads of a layer that do nearly the same are warned of, with their distance."""
    pairs = [(one["layer"], pair) for one in warnings if one["code"] == "heads_alike" for pair in one["pairs"]]
    assert len(pairs) > 20
    named = [f"{layer}·{one} ≈ {layer}·{other} ({apart:.3f})" for layer, (one, other, apart) in pairs]
    warned = screen.part("layers-box").locator(".is-warning button")
    expect(warned).to_have_count(len(named), timeout=60_000)  # the distances are computed on request
    assert warned.all_text_contents() == named


def row_of(screen: Screen, layer: int) -> Locator:
    """The row of a layer."""
    return screen.part("layers-box").locator(f'[data-layer="{layer}"]')


def check_rows(screen: Screen, lang: str, answer: dict[str, Any], version: str) -> None:
    """Distances of each layer, and of uniform attention: once for all where it is the same, else beside each, named."""
    words = json.loads((ROOT / f"static/i18n/{lang}.json").read_text(encoding="utf-8"))
    read = shown_figures(answer, version)
    uniform = [[layer["distance"]["uniform"], layer["uniform_curve"], layer["window"]["uniform_90"]] for layer in read]
    alike = all(one == uniform[0] for one in uniform)
    shown = screen.part("layers-box").locator("[data-layer]").evaluate_all(CELLS)
    for cells, figures, layer in zip(shown, read, answer["layers"], strict=True):
        distance, window = figures["distance"], figures["window"]
        mean = f"{rounded(distance['mean'], 1)} ± {rounded(distance['spread'], 1)}"
        within = f"{far(window['within_50'])} / {far(window['within_90'])}"
        even = f"{far(window['uniform_50'])} / {far(window['uniform_90'])}"
        if not alike:
            mean += " " + words["layers.uniform_is"].format(n=far(distance["uniform"]))
            within += " " + words["layers.uniform_is"].format(n=even)
        if version == "all" and layer["of"] == "first":
            whole = far(layer["all"]["distance"]["mean"])
            mean += " " + words["layers.with_sink"].format(n=whole, share=rounded(layer["sink"], 2))
        assert cells == [mean, within]
    common = screen.part("layers-box").locator(".layer-common td.number")
    assert common.all_text_contents() == ([rounded(read[0]["distance"]["uniform"], 1), even] if alike else [])


def shown_figures(answer: dict[str, Any], version: str) -> list[dict[str, Any]]:
    """What the rows show: under all weights, of a layer with a large sink, what remains."""
    return [layer[layer["of"] if version == "all" else version] for layer in answer["layers"]]


def check_curves(screen: Screen, layers: list[dict[str, Any]]) -> None:
    """A bar is as high as its bin's share of the weight, its line as uniform attention's; words say both."""
    largest = max(share for layer in layers for share in layer["curve"] + layer["uniform_curve"])
    for row in (0, 17):
        shown = row_of(screen, row).locator(".curve-slot").evaluate_all(BARS)
        curves = zip(layers[row]["curve"], layers[row]["uniform_curve"], strict=True)
        for (title, *places), shares in zip(shown, curves, strict=True):
            assert re.findall(r"0\.\d{3}|1\.000", title) == [f"{share:.3f}" for share in shares]
            assert places == pytest.approx(
                [100 * share / largest for share in shares], abs=0.01
            )  # per cent, as CSS has it


@pytest.mark.parametrize("lang", ["en", deep("zh")])
def test_layers_say_how_far_they_look(open_screen: OpenScreen, fake_server: str, lang: str) -> None:
    screen = open_screen(fake_server, lang=lang)
    screen.run(REPEATED)
    open_tab(screen, "layers")
    answer = screen.api("/layers", alike=True)
    expect(screen.part("layers-box").locator("[data-layer]")).to_have_count(30)
    check_verdicts(screen, lang, answer["verdicts"]["all"], answer["near"])
    check_rows(screen, lang, answer, "all")
    check_curves(screen, shown_figures(answer, "all"))
    check_likeness(screen, answer["warnings"]["all"])
    row_of(screen, 17).locator(".curve").click()
    until(lambda: screen.fragment("layer") == "17")
    screen.part("layers-box").focus()
    for _ in range(12):
        screen.page.keyboard.press("ArrowDown")
    expect(row_of(screen, 29)).to_be_in_viewport(ratio=1)
    without = screen.part("layers-box").locator(".segments button").nth(1)
    without.press("Enter")
    expect(without).to_be_focused()
    expect(without).to_have_attribute("aria-pressed", "true")
    check_verdicts(screen, lang, answer["verdicts"]["first"], answer["near"])
    check_rows(screen, lang, answer, "first")
