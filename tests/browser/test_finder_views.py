"""The other views of all heads: scatter, likeness, and all figures of one head. Numbers are the API's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen, until
from tests.browser.test_access import PHONE, ROOT, serious
from tests.browser.test_finder import REPEATED, SHARES, WORDS, open_tab, rounded


@pytest.fixture
def found(screen: Screen) -> Screen:
    """A run of a text with repeats, so that every score can be told."""
    screen.run(REPEATED)
    return screen


def drawn(screen: Screen, name: str) -> dict[str, Any]:
    """What Plotly was given and where a figure lies on the screen."""
    shown: dict[str, Any] = screen.js(
        """(name) => {
            const plot = document.querySelector(`[data-ref=${name}]`);
            if (!plot.dataset.drawn) return {};
            const { left, top } = plot.getBoundingClientRect();
            const { xaxis, yaxis, margin, width, height, shapes } = plot.layout;
            return {
                x: plot.data.flatMap((trace) => [...trace.x]), y: plot.data.flatMap((trace) => [...trace.y]),
                xrange: xaxis.range, yrange: yaxis.range, left, top, margin, width, height, shapes,
            };
        }""",
        name,
    )
    return shown


def place_of(shown: dict[str, Any], x: float, y: float) -> tuple[float, float]:
    """Where a point lies on the screen, from Plotly's own axes."""
    margin = shown["margin"]
    across = (x - shown["xrange"][0]) / (shown["xrange"][1] - shown["xrange"][0])
    up = (y - shown["yrange"][0]) / (shown["yrange"][1] - shown["yrange"][0])
    wide = shown["width"] - margin["l"] - margin["r"]
    high = shown["height"] - margin["t"] - margin["b"]
    return (shown["left"] + margin["l"] + across * wide, shown["top"] + margin["t"] + (1 - up) * high)


def chance_lines(shown: dict[str, Any]) -> dict[str, float]:
    """Where the lines of chance cross the axes."""
    return {axis: shape[f"{axis}0"] for shape in shown["shapes"] for axis in "xy" if shape[f"{axis}ref"] == axis}


def test_a_point_of_the_scatter_is_a_head(found: Screen) -> None:
    heads = found.api("/heads")["heads"]
    open_tab(found, "scatter")
    found.part("scatter-x").select_option("self")
    found.part("scatter-y").select_option("first")
    want = [(head["scores"]["self"]["score"], head["scores"]["first"]["score"]) for head in heads]
    until(
        lambda: (
            list(zip(drawn(found, "scatter-plot").get("x", []), drawn(found, "scatter-plot")["y"], strict=True)) == want
        )
    )
    shown = drawn(found, "scatter-plot")
    assert chance_lines(shown) == {
        axis: heads[0]["scores"][name]["chance"] for axis, name in (("x", "self"), ("y", "first"))
    }
    best = max(heads, key=lambda head: head["scores"]["self"]["score"])
    x, y = place_of(shown, best["scores"]["self"]["score"], best["scores"]["first"]["score"])
    found.page.mouse.move(x, y)
    expect(found.part("scatter-text")).to_contain_text(f"layer {best['layer']} · head {best['head']}")
    expect(found.part("scatter-text")).to_contain_text(f"{best['scores']['self']['score']:.3f}")
    found.page.mouse.click(x, y)
    until(lambda: (found.fragment("layer"), found.fragment("head")) == (str(best["layer"]), str(best["head"])))
    found.part("layer").select_option("0" if best["layer"] else "1")
    found.page.mouse.move(x, y)
    expect(found.part("scatter-text")).to_be_visible()
    turn = found.part("scatter-plot").get_attribute("data-drawn")
    found.part("scatter-y").select_option("self")
    until(lambda: found.part("scatter-plot").get_attribute("data-drawn") != turn)
    found.page.mouse.down()
    found.page.mouse.up()
    place = place_of(drawn(found, "scatter-plot"), *[best["scores"]["self"]["score"]] * 2)
    assert abs(place[1] - y) > 16  # it is elsewhere in the new picture
    assert (found.fragment("layer"), found.fragment("head")) != (str(best["layer"]), str(best["head"]))


def test_the_line_of_chance_is_drawn_where_it_is_the_same_for_all_heads(found: Screen) -> None:
    left = [head["without"]["first"] for head in found.api("/heads")["heads"]]
    scores = [(one["scores"]["self"], one["scores"]["previous"]) for one in left]
    without = [score["chance"] for score, other in scores if score and other]
    assert len(set(without)) > 1  # rows of which nothing is left are not counted, in some heads others than in others
    open_tab(found, "scatter")
    found.part("scatter-x").select_option("self")
    found.part("scatter-y").select_option("previous")
    until(lambda: len(drawn(found, "scatter-plot").get("x", [])) == len(left))
    assert len(chance_lines(drawn(found, "scatter-plot"))) == 2
    found.part("finder-more").click()
    found.part("filter-version").select_option("first")
    until(lambda: len(drawn(found, "scatter-plot").get("x", [])) == len(without))
    assert chance_lines(drawn(found, "scatter-plot")) == {}


def test_roles_have_marks_of_their_own(found: Screen) -> None:
    open_tab(found, "scatter")
    found.part("scatter-x").select_option("self")
    found.part("scatter-y").select_option("previous")
    until(lambda: len(drawn(found, "scatter-plot").get("x", [])) == 270)
    picture = "() => document.querySelector('[data-ref=scatter] canvas').toDataURL()"
    by_layer = found.js(picture)
    expect(found.part("scatter-legend")).to_have_text("layer 0layer 29")
    found.part("scatter-colour").select_option("role")
    expect(found.part("scatter-legend")).to_contain_text("previous token")
    signs = found.part("scatter-legend").locator(".legend-role > span").all_inner_texts()
    assert len(set(signs)) == len(signs) > 2
    until(lambda: found.js(picture) != by_layer)
    expect(found.part("scatter-legend").locator(".legend-role")).to_have_count(len(signs))


def test_alike_heads_are_named_with_their_distance(found: Screen) -> None:
    answer = found.api("/similarity")
    one, other, distance = answer["duplicates"][0]
    open_tab(found, "alike")
    expect(found.part("alike-canvas")).to_be_visible(timeout=60_000)
    found.part("alike-view").locator('[data-value="list"]').click()
    first = found.part("alike-list").locator("li").first
    names = [f"{index // 9}·{index % 9}" for index in (one, other)]
    expect(first).to_have_text(f"{names[0]}≈{names[1]}{distance:.3f}")
    first.locator("button").nth(1).click()
    until(lambda: (found.fragment("layer"), found.fragment("head")) == tuple(names[1].split("·")))
    found.part("alike-list").focus()
    found.page.keyboard.press("ArrowDown")  # scrolls, and walks no heads
    until(lambda: found.part("alike-list").evaluate("(box) => box.scrollTop > 0"))
    expect(found.part("layer")).to_have_value(names[1].split("·")[0])
    found.part("alike-view").locator('[data-value="points"]').click()
    near = found.part("nearest").locator("button").first
    expect(near).to_have_text(names[0])
    near.press("Enter")
    until(lambda: (found.fragment("layer"), found.fragment("head")) == tuple(names[0].split("·")))
    expect(found.part("nearest").locator("button").first).to_be_focused()
    until(lambda: len(drawn(found, "alike-plot").get("x", [])) == 270)
    x, y = answer["positions"][0]
    found.page.mouse.click(*place_of(drawn(found, "alike-plot"), x, y))
    expect(found.part("alike-points-text")).to_contain_text("layer")


def test_the_map_of_distances_tells_both_heads(found: Screen) -> None:
    answer = found.api("/similarity")
    open_tab(found, "alike")
    expect(found.part("alike-canvas")).to_be_visible(timeout=60_000)
    box = found.part("alike-canvas").bounding_box()
    assert box is not None
    cell = box["width"] / 270
    found.page.mouse.move(box["x"] + 200.5 * cell, box["y"] + 3.5 * cell)
    row, col = answer["order"][3], answer["order"][200]
    expect(found.part("alike-text")).to_contain_text(f"{row // 9}·{row % 9} and {col // 9}·{col % 9}")
    found.page.mouse.click(box["x"] + 200.5 * cell, box["y"] + 3.5 * cell)
    until(lambda: (found.fragment("layer"), found.fragment("head")) == (str(row // 9), str(row % 9)))


def test_all_figures_of_a_head_are_the_apis(found: Screen) -> None:
    found.part("layer").select_option("3")
    found.part("head").select_option("4")
    head = next(one for one in found.api("/heads")["heads"] if (one["layer"], one["head"]) == (3, 4))
    found.part("figures").locator("summary").click()
    for name in SHARES:
        score, left = head["scores"][name], head["without"]["first"]["scores"][name]
        if score is None:
            continue
        cells = found.part("figures-body").locator(f'tr[data-score="{name}"] td').all_inner_texts()
        want = [rounded(score[field]) for field in ("score", "chance", "corrected")] + [str(score["rows"])]
        want += [rounded(left[field]) for field in ("score", "corrected")] if left else [WORDS["finder.no_first"]]
        assert [cell.replace("−", "-") for cell in cells] == want
    body = found.part("figures-body")
    expect(body.locator(".figure-bins")).to_be_visible()
    expect(body).to_contain_text(
        f"within {head['distance']['within_50']} tokens, 90 % within {head['distance']['within_90']}"
    )
    expect(body).to_contain_text(f"position {head['concentration']['key']},")


def told_apart(head: dict[str, Any]) -> bool:
    """Whether a head has a clear role whose score and corrected score differ as they are written."""
    role = head["role"]
    if role["best"] is None or role["sinks"] or role["corrected"] < 0.5:
        return False
    score = head["scores"][role["best"]]
    return rounded(score["score"]) != rounded(score["corrected"])


def test_the_title_tells_role_and_sink(found: Screen) -> None:
    heads = found.api("/heads")["heads"]
    head = next(one for one in heads if told_apart(one))
    found.part("layer").select_option(str(head["layer"]))
    found.part("head").select_option(str(head["head"]))
    score = head["scores"][head["role"]["best"]]
    expect(found.part("score")).to_contain_text(
        f"corrected {rounded(score['corrected'])} · score {rounded(score['score'])}"
    )
    sink = next(one for one in heads if "first" in one["role"]["sinks"])
    found.part("layer").select_option(str(sink["layer"]))
    found.part("head").select_option(str(sink["head"]))
    expect(found.part("score").locator("b").first).to_have_text(f"sink {rounded(sink['role']['taken']['first'])}")


def test_a_text_without_repeats_gives_no_induction(screen: Screen) -> None:
    screen.run("one two three four five six seven eight nine ten eleven twelve")
    open_tab(screen, "table")
    screen.part("finder-score").select_option("induction")
    cell = screen.part("table-body").locator("tr[data-at] td.number").first
    expect(cell).to_have_text("–")
    expect(cell).to_have_attribute("title", "not testable on this text")
    open_tab(screen, "scatter")
    expect(screen.part("scatter-state")).to_contain_text("No head has both scores on this text.")
    expect(screen.part("scatter-state")).to_contain_text("induction: not testable on this text")
    open_tab(screen, "alike")
    screen.page.locator("details.options summary").click()
    screen.part("special").uncheck()
    screen.run("one")
    assert screen.api("/similarity")["rows"] == []
    expect(screen.part("alike-state")).to_have_text("not testable on this text")
    expect(screen.part("nearest")).to_be_hidden()
    expect(screen.part("alike-map")).to_be_hidden()


@pytest.mark.deep
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_view(open_screen: OpenScreen, fake_server: str, scheme: str) -> None:
    screen = open_screen(fake_server, color_scheme=scheme)
    screen.run(REPEATED)
    screen.part("figures").locator("summary").click()
    assert serious(screen) == []
    for tab in ("table", "scatter", "alike", "layers"):
        open_tab(screen, tab)
        if tab == "alike":
            expect(screen.part("nearest")).to_be_visible(timeout=60_000)
        screen.page.wait_for_timeout(300)
        assert serious(screen) == [], tab
    open_tab(screen, "table")
    screen.part("finder-more").click()
    assert serious(screen) == []


def test_views_are_whole_in_chinese_and_fit_a_phone(open_screen: OpenScreen, fake_server: str) -> None:
    english = json.loads((ROOT / "static/i18n/en.json").read_text(encoding="utf-8"))
    screen = open_screen(fake_server, lang="zh", viewport=PHONE)
    screen.run(REPEATED)
    screen.part("figures").locator("summary").click()
    lines = {screen.part(name).bounding_box()["y"] for name in ("nav-explore", "theme", "show-keys")}  # type: ignore[index]
    assert max(lines) - min(lines) < 8  # one line of the header
    for tab in ("pictures", "table", "scatter", "alike", "layers"):
        open_tab(screen, tab)
        if tab == "scatter":
            assert screen.part("scatter-x").evaluate("(select) => select.clientWidth") > 120  # a score's whole name
        if tab == "alike":
            expect(screen.part("nearest")).to_be_visible(timeout=60_000)
        screen.page.wait_for_timeout(300)
        assert screen.js("() => document.documentElement.scrollWidth") <= PHONE["width"], tab
        body = "\n".join(screen.page.locator("main section.overview, main section.head").all_inner_texts())
        left = [text for text in english.values() if len(text) > 6 and "{" not in text and text in body]
        assert left == [], tab


def test_attention_between_two_texts_has_no_distance(screen: Screen) -> None:
    screen.choose_model("fake-seq2seq")
    screen.run("one two three four five six seven eight nine ten")
    open_tab(screen, "layers")
    expect(screen.part("layers-box").locator("[data-layer]")).to_have_count(3)
    screen.choose_site("decoder.cross")
    expect(screen.part("layers-box")).to_have_text(
        "Rows and columns are different texts here, so there is no distance."
    )
    assert not [url for url in screen.witness.requests if "/layers" in url and "cross" in url]
    open_tab(screen, "table")
    screen.part("finder-score").select_option("previous")
    cell = screen.part("table-body").locator("tr[data-at] td.number").first
    expect(cell).to_have_attribute("title", "has no meaning between two texts")
