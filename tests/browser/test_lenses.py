"""Lens, unit and colour scale of one head's picture: every number on the screen is the API's, in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen, until

TEXT = "The animal didn't cross. It was tired! 我爱北京天安门。 The animal slept & <b>dreamt</b>."


@pytest.fixture
def shown(screen: Screen) -> Screen:
    """A finished run of several sentences in two scripts."""
    screen.run(TEXT)
    return screen


def choose(screen: Screen, **choices: str) -> None:
    """Sets the lists and waits for their picture."""
    for name, value in choices.items():
        screen.part(name).select_option(value)
    screen.wait_for_map()


def window(screen: Screen, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = screen.api("/weights", **{"layer": 0, "head": 0, **query})
    return found


def drawn(screen: Screen) -> list[list[float | None]]:
    """The numbers that Plotly was given: shares of the scale's end."""
    found: list[list[float | None]] = screen.js(
        "() => document.querySelector('[data-ref=plot]').data[0].z.map((row) => [...row])"
    )
    return found


@pytest.mark.parametrize(
    ("lens", "unit"),
    [("sink_free", "token"), ("value", "token"), ("output", "word"), ("rollout", "sentence"), ("raw", "character")],
)
def test_the_picture_and_the_readout_are_the_apis(shown: Screen, lens: str, unit: str) -> None:
    choose(shown, lens=lens, unit=unit)
    answer = window(shown, lens=lens, unit=unit)
    cells, end = answer["weights"], answer["unit_max"]
    for seen, row in zip(drawn(shown), cells, strict=True):
        assert seen == [None if cell is None else pytest.approx(cell / end) for cell in row]
    expect(shown.part("formula")).to_have_text(answer["formula"])
    last = len(cells) - 1
    shown.point_at(last, last - 1)
    expect(shown.part("readout").locator("data")).to_be_visible()
    assert shown.read_weight() == cells[last][last - 1]
    if lens == "sink_free":
        expect(shown.part("readout")).to_contain_text("of this row was on the first token")
        assert (
            f"{answer['removed'][last]:.4f}"[:5] in shown.part("readout").inner_text() or answer["removed"][last] < 1e-3
        )


def test_units_label_the_axes_and_name_the_cell(shown: Screen) -> None:
    choose(shown, unit="word")
    units = shown.api("/units", unit="word")["units"]
    texts = [one["text"] for one in units]
    assert "北京" in texts
    labels = shown.row_labels()
    assert any("北京" in label for label in labels) or len(labels) < len(units)
    row, col = texts.index("天安门"), texts.index("北京")
    shown.point_at(row, col)
    readout = shown.part("readout")
    expect(readout).to_contain_text("天安门")
    expect(readout).to_contain_text("北京")
    marked = shown.page.locator(".tok.is-query").count()
    assert marked == units[row]["stop"] - units[row]["first"]
    shown.page.mouse.click(*shown.place_of(row, col))
    until(lambda: shown.fragment("token") == str(units[row]["first"]))
    expect(shown.part("pooling")).to_have_text("1 cell = 1 word × 1 word")
    assert shown.page.locator("[data-ref=plot] b").count() == 0  # <b> of the text stays text


def test_another_unit_shows_the_whole_again(shown: Screen) -> None:
    shown.part("zoom-in").click()
    until(lambda: shown.fragment("rows") is not None)
    choose(shown, unit="sentence")
    assert shown.fragment("rows") is None
    n = len(shown.api("/units", unit="sentence")["units"])
    assert len(drawn(shown)) == n
    shown.part("zoom-in").click()
    shown.wait_for_map()
    rows = [int(part) for part in (shown.fragment("rows") or f"0:{n}").split(":")]
    assert 0 <= rows[0] < rows[1] <= n


def test_the_legend_ends_at_the_heads_largest(shown: Screen) -> None:
    choose(shown, lens="value")
    largest = window(shown, lens="value")["unit_max"]
    ticks = shown.part("legend").locator(".legend-ticks span")
    assert float(ticks.last.inner_text()) == pytest.approx(largest, rel=5e-3)
    choose(shown, lens="raw")
    assert ticks.all_inner_texts() == ["0", "0.1", "0.4", "1"]


def test_every_scale_keeps_the_numbers_and_its_legend_tells_the_truth(shown: Screen) -> None:
    cells = window(shown)["weights"]
    ticks = shown.part("legend").locator(".legend-ticks span")
    for scale, texts in (("linear", ["0", "0.25", "0.5", "0.75", "1"]), ("log", ["≤1e-4", "0.01", "1"])):
        shown.part("scale").select_option(scale)
        expect(ticks.last).to_have_text("1")
        assert ticks.all_inner_texts() == texts
        until(lambda: drawn(shown)[3][:4] == pytest.approx(cells[3][:4]))
    shown.part("scale").select_option("row")
    expect(ticks.last).to_have_text("100 %")
    until(lambda: max(value or 0 for value in drawn(shown)[-1]) == 1)
    for seen, row in zip(drawn(shown), cells, strict=True):
        top = max(cell or 0 for cell in row)
        assert seen == [None if cell is None else pytest.approx(cell / top) for cell in row]
    places = shown.js(
        """async () => {
            const { position, weightAt } = await import('/static/js/ramp.js');
            const there = (scale) => [0.01, 0.3, 1].map((weight) => weightAt(position(weight, scale), scale));
            return ['sqrt', 'linear', 'log', 'row'].map(there);
        }"""
    )
    assert places == [[pytest.approx(0.01), pytest.approx(0.3), pytest.approx(1)]] * 4


def test_a_link_opens_the_same_lens_unit_and_scale(open_screen: OpenScreen, fake_server: str, shown: Screen) -> None:
    choose(shown, lens="sink_free", unit="word", scale="log")
    until(lambda: shown.fragment("scale") == "log")
    fragment = str(shown.js("() => location.hash"))
    assert "lens=sink_free" in fragment
    assert "unit=word" in fragment
    other = open_screen(fake_server, fragment, lang="zh")
    other.wait_for_map()
    for name, value in (("lens", "sink_free"), ("unit", "word"), ("scale", "log")):
        expect(other.part(name)).to_have_value(value)
    assert drawn(other) == drawn(shown)
    expect(other.part("lens-note")).to_contain_text("仅限本图")
    odd = open_screen(fake_server, fragment.replace("sink_free", "nonsense").replace("unit=word", "unit=x"))
    odd.wait_for_map()
    expect(odd.part("lens")).to_have_value("raw")


@pytest.mark.parametrize(("lang", "words"), [("en", "output projection"), ("zh", "输出投影")])
def test_a_lens_that_shows_nothing_here_says_why(screen: Screen, lang: str, words: str) -> None:
    screen.witness.allow("422")
    screen.goto(lang=lang)
    screen.choose_model("fake-seq2seq")
    screen.run("one two three")
    screen.part("lens").select_option("output")
    expect(screen.part("head-state")).to_contain_text(words)
    screen.part("lens").select_option("value")
    screen.wait_for_map()
    expect(screen.part("head-state")).not_to_contain_text(words)


def test_rollout_needs_a_layer_and_no_head(shown: Screen) -> None:
    shown.witness.allow("422")
    choose(shown, lens="rollout")
    expect(shown.part("head")).to_be_disabled()
    expect(shown.part("score")).to_have_text("over all heads of layer 0, not of one head")
    shown.part("layer").select_option("mean")
    expect(shown.part("head-state")).to_contain_text("Choose a layer")
    expect(shown.part("head-state").get_by_role("button")).to_have_count(0)  # it would be refused again
    shown.part("layer").select_option("2")
    shown.wait_for_map()
    assert drawn(shown)[-1] == pytest.approx(window(shown, layer=2, lens="rollout")["weights"][-1])
    choose(shown, lens="raw", head="mean")
    expect(shown.part("formula")).to_have_text("1/H · Σₕ Aₕ(i, j)")
    assert window(shown, layer=2, head="mean")["formula"] == "1/H · Σₕ Aₕ(i, j)"


def test_the_strip_keeps_weights(shown: Screen) -> None:
    shown.page.locator('.tok[data-i="6"]').click()
    before = shown.page.locator('.tok[data-i="5"]').evaluate("(node) => node.style.backgroundColor")
    choose(shown, lens="value", unit="sentence")
    expect(shown.part("lens-note")).to_be_visible()
    after = shown.page.locator('.tok[data-i="5"]').evaluate("(node) => node.style.backgroundColor")
    assert before == after != ""


def test_a_planted_fault_is_seen(shown: Screen) -> None:
    choose(shown, lens="value")
    wrong = window(shown, lens="raw")["weights"]
    assert drawn(shown)[-1] != pytest.approx(wrong[-1])
