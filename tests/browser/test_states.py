"""Loading, queue, progress, cancel, empty and refused are drawn, where they belong."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen, until


def test_the_empty_page_says_what_to_do(screen: Screen) -> None:
    expect(screen.part("overview-state")).to_contain_text("press Run")
    expect(screen.part("heads")).to_be_hidden()
    expect(screen.part("figure")).to_be_hidden()
    expect(screen.part("copy-link")).to_be_hidden()


def test_a_first_visit_shows_heads_by_itself(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server, "")
    until(lambda: screen.fragment("run") is not None)
    screen.wait_for_map()
    expect(screen.part("heads")).to_be_visible()
    assert screen.page.input_value("#text").startswith("When Mary and John")
    assert screen.js("() => history.length") == 2  # the blank tab and this page: nothing to go back to in between
    run = screen.run_id
    screen.page.reload()
    screen.wait_for_map()
    assert screen.run_id == run
    assert [url for url in screen.witness.requests if url.endswith("/api/runs")] == [f"{fake_server}/api/runs"]


def test_a_model_that_is_being_prepared_waits_to_be_asked(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)

    def preparing(route: Route) -> None:
        answer = route.fetch()
        models = answer.json()
        models["models"][0].update(state="preparing", progress=0.5)
        route.fulfill(response=answer, json=models)

    screen.page.route("**/api/models", preparing)
    screen.goto("")
    screen.page.wait_for_timeout(500)
    assert screen.page.input_value("#text") == ""
    assert screen.fragment("run") is None


def test_empty_text_is_refused_in_place(screen: Screen) -> None:
    screen.witness.allow("422")
    screen.type("   ")
    screen.part("run").click()
    expect(screen.part("problem")).to_contain_text("no text")


@pytest.mark.parametrize("refusal", ["text_empty", "text_too_long", "queue_full"])
def test_a_refused_text_keeps_the_picture_before_it(shown: Screen, refusal: str) -> None:
    status = 503 if refusal == "queue_full" else 422
    shown.witness.allow(str(status))
    run = shown.run_id
    error = {"code": refusal, "message": refusal, "details": {"count": 99, "limit": 64}}
    body = json.dumps({"error": error})
    shown.page.route("**/api/runs", lambda route: route.fulfill(status=status, body=body))
    shown.type("another text")
    shown.part("run").click()
    expect(shown.part("problem")).to_be_visible()
    expect(shown.part("overview-state")).to_be_hidden()
    expect(shown.part("heads")).to_be_visible()
    expect(shown.part("run")).to_have_text("Run")
    assert shown.run_id == run
    shown.wait_for_map()
    shown.page.unroute("**/api/runs")
    shown.run("a third text is accepted")
    expect(shown.part("problem")).to_be_hidden()


def test_a_pair_over_the_limit_offers_nothing_that_cannot_work(open_screen: OpenScreen, small_server: str) -> None:
    screen = open_screen(small_server)
    screen.witness.allow("422")
    screen.choose_model("fake-pairs")
    screen.type("short")
    screen.part("pair").fill("word " * 90)
    screen.part("run").click()
    expect(screen.part("problem")).to_contain_text("The two texts together have")
    expect(screen.part("problem").get_by_role("button")).to_have_count(0)  # a pair is never cut
    screen.part("pair").fill("")
    screen.type("word " * 90)
    screen.part("run").click()
    expect(screen.part("problem").get_by_role("button")).to_have_count(2)  # a text that stands alone can be


def test_a_long_second_text_leaves_room_for_the_page(screen: Screen) -> None:
    screen.choose_model("fake-pairs")
    screen.part("pair").fill("word " * 2000)
    box = screen.part("pair").bounding_box()
    assert box is not None
    size = float(screen.js("() => parseFloat(getComputedStyle(document.querySelector('[data-ref=pair]')).fontSize)"))
    assert box["height"] <= 8 * size + 1


def test_a_model_that_cannot_be_used_says_why(screen: Screen) -> None:
    screen.part("model-button").click()
    broken = screen.part("models").locator(".model-item", has_text="Broken")
    expect(broken).to_contain_text("its folder holds no safetensors file")
    expect(broken).not_to_contain_text("after download")
    screen.page.keyboard.press("Escape")
    reason = {"model": "fake-30x9", "reason": "its files are gone"}
    body = json.dumps({"error": {"code": "model_unavailable", "message": "m", "details": reason}})
    screen.witness.allow("409")
    screen.page.route("**/api/runs", lambda route: route.fulfill(status=409, body=body))
    screen.type("any")
    screen.part("run").click()
    expect(screen.part("problem")).to_contain_text("This model can't be used here: its files are gone. Pick another.")


def test_a_picture_of_another_input_is_marked(shown: Screen) -> None:
    stale = shown.part("stale")
    text = shown.page.input_value("#text")
    expect(stale).to_be_hidden()
    shown.type("something else")
    expect(stale).to_contain_text("previous text")
    shown.type(text)
    expect(stale).to_be_hidden()
    shown.part("special").locator("xpath=ancestor::details").locator("summary").click()
    shown.part("special").uncheck()
    expect(stale).to_contain_text("previous options")
    shown.run(text)
    expect(stale).to_be_hidden()


def test_progress_counts_layers_and_can_be_cancelled(open_screen: OpenScreen, small_server: str) -> None:
    screen = open_screen(small_server)
    screen.type("a run that will be cancelled half way")
    screen.part("run").click()
    state = screen.part("overview-state")
    expect(state).to_contain_text(re.compile(r"Layers done: \d+ of 30"))
    expect(screen.part("run")).to_have_text("Cancel")
    expect(state.get_by_role("button")).to_have_count(0)  # there is one Cancel, beside the text
    screen.part("run").click()
    expect(state).to_contain_text("Cancelled")
    expect(screen.part("run")).to_have_text("Run")
    assert screen.fragment("run") is None or screen.part("heads").is_hidden()


def test_a_second_run_waits_in_the_queue(open_screen: OpenScreen, small_server: str) -> None:
    first, second = open_screen(small_server), open_screen(small_server)
    first.type("the first of two runs at once")
    first.part("run").click()
    expect(first.part("overview-state")).to_contain_text("Layers done")
    second.type("the second of two runs at once")
    second.part("run").click()
    expect(second.part("overview-state")).to_contain_text(re.compile("place 1|Waiting"))
    second.wait_for_map(30)


def test_text_over_the_limit_tells_count_limit_and_choice(open_screen: OpenScreen, small_server: str) -> None:
    screen = open_screen(small_server)
    screen.witness.allow("422")
    words = " ".join(f"w{number}" for number in range(99))
    screen.type(words)
    expect(screen.part("count")).to_have_text("100 tokens: over the limit of 64")
    screen.part("run").click()
    problem = screen.part("problem")
    expect(problem).to_contain_text("100 tokens")
    expect(problem).to_contain_text("takes 64")
    problem.get_by_role("button", name="cut the end").click()
    screen.wait_for_map(30)
    tokens = screen.tokens()
    assert len(tokens) == 64
    assert tokens[-1]["text"].strip() == "w62"
    expect(problem).to_contain_text("first 64 of 100")


def test_the_beginning_can_be_cut_instead(open_screen: OpenScreen, small_server: str) -> None:
    screen = open_screen(small_server)
    screen.witness.allow("422")
    screen.type(" ".join(f"v{number}" for number in range(99)))
    screen.part("run").click()
    screen.part("problem").get_by_role("button", name="cut the beginning").click()
    screen.wait_for_map(30)
    assert screen.tokens()[-1]["text"].strip() == "v98"


def test_tokens_are_counted_while_typing(screen: Screen) -> None:
    screen.type("one two three")
    expect(screen.part("count")).to_contain_text("4 of 8,192 tokens")
    screen.part("special").locator("xpath=ancestor::details").locator("summary").click()
    screen.part("special").uncheck()
    expect(screen.part("count")).to_contain_text("3 of 8,192 tokens")


def test_a_count_of_another_model_goes_at_once(screen: Screen) -> None:
    """The server may take long to answer: it loads the model first."""
    screen.type("one two three")
    expect(screen.part("count")).to_contain_text("4 of 8,192 tokens")
    screen.page.route("**/api/tokenize", lambda _: None)  # never answered
    screen.choose_model("fake-pairs")
    expect(screen.part("model-button")).to_contain_text("pairs")
    expect(screen.part("count")).not_to_contain_text("4 of")


def test_models_show_state_and_reason(screen: Screen) -> None:
    screen.part("model-button").click()
    models = screen.part("models")
    expect(models).to_contain_text("not downloaded")
    expect(models.get_by_role("button", name="Download")).to_be_visible()
    expect(models).to_contain_text("its folder holds no safetensors file")
    expect(models.locator('input[value="broken"]')).to_be_disabled()


def test_a_server_that_is_gone_is_said_in_place(screen: Screen) -> None:
    screen.witness.allow("ERR_")
    screen.type("nobody hears this")
    screen.page.route("**/api/runs", lambda route: route.abort())
    screen.part("run").click()
    expect(screen.part("problem")).to_contain_text("does not answer")
    screen.page.unroute("**/api/runs")
    screen.part("problem").get_by_role("button", name="Try again").click()
    screen.wait_for_map()


def test_a_full_queue_says_to_wait(screen: Screen) -> None:
    screen.witness.allow("503")
    body = '{"error": {"code": "queue_full", "message": "full", "details": {}}}'
    screen.page.route("**/api/runs", lambda route: route.fulfill(status=503, body=body, headers={"Retry-After": "3"}))
    screen.type("too much to do")
    screen.part("run").click()
    expect(screen.part("problem")).to_contain_text("too much to do")


def test_a_failing_card_is_shown_on_the_picture(shown: Screen) -> None:
    run = shown.run_id

    def spoiled(route: object) -> None:
        answer = route.fetch()  # type: ignore[attr-defined]
        summary = answer.json()
        summary["card"]["verdict"] = "fail"
        summary["card"]["checks"][3].update(status="fail", value=0.02)
        route.fulfill(response=answer, json=summary)  # type: ignore[attr-defined]

    shown.page.route(f"**/api/runs/{run}", spoiled)
    shown.page.reload()
    shown.wait_for_map()
    for banner in ("banner", "head-banner"):
        expect(shown.part(banner)).to_be_visible()
        expect(shown.part(banner)).to_contain_text("rows sum to 1")
    expect(shown.part("verdict")).to_contain_text("failed")


def test_the_whole_pass_is_compared_on_request(screen: Screen) -> None:
    screen.run("lamp " * 300)
    check = screen.part("checks").locator(".is-not_compared")
    expect(check).to_contain_text("not compared")
    verdict = screen.part("verdict")
    expect(verdict).to_have_text(re.compile(r"^\d+ passed · 1 not compared$"))
    colour = "(node) => getComputedStyle(node).color"
    uncompared = verdict.evaluate(colour)
    check.get_by_role("button").click()
    expect(screen.part("checks").locator(".is-not_compared")).to_have_count(0)
    expect(verdict).to_have_text("✓ all pass")
    assert verdict.evaluate(colour) != uncompared  # green only now
    until(lambda: any(one["id"] == "whole_pass" and one["status"] == "pass" for one in screen.api()["card"]["checks"]))


def test_examples_fill_the_text(screen: Screen) -> None:
    chips = screen.part("examples").get_by_role("button")
    expect(chips).to_have_count(4)
    for number in range(4):
        before = screen.page.input_value("#text")
        chips.nth(number).click()
        until(lambda before=before: screen.page.input_value("#text") != before)  # type: ignore[misc]
    expect(screen.part("count")).to_contain_text(re.compile(r"^[2-9],\d{3} of"))


def test_what_no_text_can_tell_is_not_said_of_this_one(shown: Screen) -> None:
    """Without the first token nothing is known of it; nor of special tokens where it is the only one."""
    why = "the first token is left out here"
    run = shown.run_id
    cell = shown.part("table-body").locator("tr[data-at] td.number").first
    for score in ("first", "special"):
        shown.js("(hash) => { location.hash = hash; }", f"run={run}&heads=table&score={score}&of=first")
        expect(cell).to_have_attribute("title", why)
    shown.js("(hash) => { location.hash = hash; }", f"run={run}&heads=table&score=duplicate&of=first")
    expect(cell).to_have_attribute("title", "not testable on this text")
    shown.js("(hash) => { location.hash = hash; }", f"run={run}&heads=scatter&x=first&y=self&of=first")
    expect(shown.part("scatter-state")).to_contain_text(f"first token: {why}")
    shown.part("figures").locator("summary").click()
    figures = shown.part("figures-body")
    expect(figures.locator('[data-score="first"]')).to_contain_text(why)
    expect(figures.locator('[data-score="special"]')).to_contain_text(why)
    expect(figures.locator("tr", has_text="duplicate")).to_contain_text("not testable on this text")
