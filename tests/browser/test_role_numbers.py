"""Beside a role stands the number that made it; over all layers all heads are chosen; short texts are said to be."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.browser.screen import Screen, until
from tests.browser.test_finder import REPEATED, open_tab, place, rounded, rows


def test_the_filter_of_a_role_lists_heads_with_the_number_that_made_it(screen: Screen) -> None:
    """Whichever score and weights are chosen: a head that rests on the first token has its role from the rest."""
    screen.run(REPEATED)
    heads: dict[str, Any] = {place(head): head["role"] for head in screen.api("/heads")["heads"]}
    open_tab(screen, "table")
    screen.part("finder-more").click()
    screen.part("filter-role").select_option("previous")
    for score in ("best", "previous", "self"):
        screen.part("finder-score").select_option(score)
        for version in ("all", "first"):
            screen.part("filter-version").select_option(version)
            until(lambda: len(rows(screen)) > 3)
            for row in rows(screen):
                role = heads[row[0]]
                assert role["name"] == "previous"
                assert role["corrected"] >= 0.3
                told = row[1] if score != "best" else row[2]
                assert rounded(role["corrected"]) in told, row
                if score == "previous":
                    assert row[2] == rounded(role["corrected"])


def test_the_slider_moves_a_head_to_its_next_candidate(screen: Screen) -> None:
    screen.run(REPEATED)
    found = [head for head in screen.api("/heads")["heads"] if len(head["role"]["candidates"]) > 1]
    head = next(
        one for one in found if one["role"]["candidates"][0]["corrected"] < 0.9 < one["role"]["corrected"] + 0.5
    )
    for threshold in (0.1, 0.3, 0.6, 0.9):
        asked = screen.api("/heads", threshold=threshold)["heads"]
        role = next(one["role"] for one in asked if place(one) == place(head))
        if not screen.part("filter-threshold").is_visible():
            screen.part("finder-more").click()
        screen.part("filter-threshold").fill(str(threshold))
        screen.part("layer").select_option(str(head["layer"]))
        screen.part("head").select_option(str(head["head"]))
        expect(screen.part("score")).to_contain_text(f"corrected {role['corrected']:.3f}")


def test_over_all_layers_no_single_head_can_be_chosen(screen: Screen) -> None:
    screen.run(REPEATED)
    for choice in ("mean", "max"):
        screen.part("layer").select_option("2")
        screen.part("head").select_option("3")
        screen.part("layer").select_option(choice)
        expect(screen.part("head")).to_have_value(choice)
        assert screen.part("head").locator("option:not([disabled])").count() == 2
    screen.part("head").select_option("mean")  # of the heads first, then the maximum over layers
    until(lambda: screen.fragment("head") == "mean")
    expect(screen.part("layer")).to_have_value("max")
    screen.part("layer").select_option("2")
    expect(screen.part("head")).to_have_value("mean")
    screen.part("head").select_option("3")
    until(lambda: screen.fragment("head") == "3")
    fragment = screen.js("() => location.hash").replace("layer=2", "layer=mean")
    screen.page.goto(f"{screen.base}/?lang=en&again=1{fragment}")
    expect(screen.part("layer")).to_have_value("mean")
    expect(screen.part("head")).to_have_value("mean")


def test_a_text_that_is_too_short_offers_one_that_shows_the_figures(screen: Screen) -> None:
    screen.run("cat eats fish")
    line = screen.part("heads-short")
    expect(line).to_contain_text("too short")
    for tab in ("table", "scatter", "layers"):
        open_tab(screen, tab)
        expect(line).to_be_visible()
    before = screen.fragment("run")
    line.locator("button").click()
    until(lambda: screen.fragment("run") not in (before, None))
    expect(screen.part("layers-box").locator("[data-layer]").first).to_be_visible()  # the run is done
    expect(line).to_be_hidden()
    assert any(head["role"]["name"] for head in screen.api("/heads")["heads"])
