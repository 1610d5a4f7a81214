"""What is said of a head's role, with the numbers it follows from: beside the picture and where two are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Route, expect

from tests.browser.comparing import Compared
from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen

TEXT = "The cat saw the cat and the dog saw the cat on a mat ."
Head = dict[str, Any]


def open_head(screen: Screen, fits: Callable[[Head], bool]) -> Head:
    """Shows the first head that is so."""
    head: Head = next(one for one in screen.api("/heads")["heads"] if fits(one))
    screen.part("layer").select_option(str(head["layer"]))
    screen.part("head").select_option(str(head["head"]))
    return head


def test_each_role_comes_with_the_numbers_that_it_follows_from(screen: Screen) -> None:
    screen.run(TEXT)
    line = screen.part("score")
    head = open_head(screen, lambda one: one["role"]["name"] == "mixed" and one["role"]["corrected"] > 0.2)
    score = head["scores"][head["role"]["best"]]
    assert head["role"]["corrected"] < 0.3
    expect(line).to_contain_text(f"corrected {score['corrected']:.3f} · score {score['score']:.3f}")
    head = open_head(screen, lambda one: one["role"]["name"] == "uniform")
    expect(line).to_have_text(f"uniform{head['entropy']['normalised']:.3f} of the entropy of equal weights")
    head = open_head(screen, lambda one: one["role"]["name"] == "sink")
    expect(line).to_have_text(f"sink {head['role']['taken']['first']:.3f}too little is left for a role")
    head = open_head(screen, lambda one: one["role"]["name"] is None)
    expect(line).to_have_text(f"sink {head['role']['taken']['first']:.3f}otherwise not testable")


def test_a_compared_role_says_where_it_is_not_of_the_figures_below(open_screen: OpenScreen, fake_server: str) -> None:
    compared = Compared(open_screen(fake_server))
    run = compared.make(TEXT)
    heads = compared.get(f"runs/{run}/heads")["heads"]
    local = next(one for one in heads if one["role"]["name"] == "local")
    rests = next(one for one in heads if one["role"]["name"] == "sink")

    def without_first(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        told = next(one for one in content["heads"] if (one["layer"], one["head"]) == (local["layer"], local["head"]))
        told["role"] |= {"of": "first", "sinks": ["first"], "taken": {"first": 0.625}}
        route.fulfill(response=answer, json=content)

    compared.page.route("**/api/runs/*/heads*", without_first)
    sides = {"a": local, "b": rests}
    places = "".join(f"&layer_{side}={one['layer']}&head_{side}={one['head']}" for side, one in sides.items())
    compared.open(f"#a={run}&b={run}{places}")
    cells = compared.page.locator("tr[data-figure=role] td")
    corrected = local["without"]["first"]["scores"]["local"]["corrected"]
    expect(cells.nth(0)).to_have_text(
        f"local* (role read without the first token: local, corrected {corrected:.3f}) sink"
    )
    expect(cells.nth(0).locator(".sink-tag")).to_have_attribute("title", "first token 0.625")
    expect(cells.nth(1)).to_have_text("sink")
