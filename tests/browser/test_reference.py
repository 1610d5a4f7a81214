"""Figures over the reference texts on the page: computed on request, stopped, shown in the table, in both languages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen, free_port, serving
from tests.browser.screen import Screen, until
from tests.browser.test_finder import by_score, open_tab, place, rows

pytestmark = pytest.mark.deep

TEXT = {
    "en": {
        "absent": "Not computed",
        "until": "Until then, all figures are of this text.",
        "over": "Averaged over 4 texts: prose, code, Chinese, repeated random tokens.",
        "own": "This view is of this text, not of the reference texts.",
        "pictures": "the pictures are of this text.",
    },
    "zh": {
        "absent": "尚未计算",
        "until": "在此之前，所有数值仍取自此文本。",
        "over": "4 段文本的平均：叙事文、代码、中文、重复的随机词元。",
        "own": "此视图取自此文本，而非参考文本。",
        "pictures": "图仍取自此文本。",
    },
}
FAILED = {"code": "weights_changed", "message": "The weights are others.", "details": {}}


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that has computed nothing, a little slow, so that there is something to stop."""
    folder = tmp_path_factory.mktemp("reference")
    port = free_port()
    arguments = ["tests.fake_server", "--port", str(port), "--delay", "0.02", "--data-dir", str(folder / "data")]
    with serving(arguments, port, {}, folder / "log") as address:
        yield address


def switch(screen: Screen, to: str) -> None:
    screen.part("figures-of").locator(f'[data-value="{to}"]').click()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_computed_on_request_stopped_and_shown(own_server: str, open_screen: OpenScreen, lang: str) -> None:
    screen = open_screen(own_server, lang=lang)
    screen.run("When Mary and John went to the store, John gave a drink to")
    expect(screen.part("reference")).to_be_hidden()
    open_tab(screen, "table")
    own = rows(screen)[:15]
    switch(screen, "reference")
    state = screen.part("reference-state")
    expect(state).to_contain_text(TEXT[lang]["absent"])
    expect(state).to_contain_text(TEXT[lang]["until"])
    state.get_by_role("button").press("Enter")
    bar = state.get_by_role("progressbar")
    expect(bar).to_have_attribute("value", re.compile(r"\d"))
    expect(state).to_contain_text(TEXT[lang]["until"])
    cancel = state.get_by_role("button").element_handle()
    before = bar.get_attribute("value")
    until(lambda: bar.get_attribute("value") != before)
    assert cancel.evaluate("(node) => node === document.activeElement")  # the same one all the time
    cancel.press("Enter")
    expect(state).to_contain_text(TEXT[lang]["absent"])
    expect(state.get_by_role("button")).to_be_focused()
    assert rows(screen)[:15] == own
    state.get_by_role("button").click()
    expect(state).to_have_text(TEXT[lang]["over"], timeout=30_000)
    expect(screen.part("finder-note")).to_be_hidden()
    stays_with_this_text(screen, lang)
    until(lambda: rows(screen)[:15] != own)
    averaged = rows(screen)[:15]
    with urlopen(f"{own_server}/api/models/fake-30x9/reference", timeout=30) as answer:
        panel: dict[str, Any] = json.load(answer)
    screen.part("finder-score").select_option("induction")
    screen.part("table-head").locator('[data-column="corrected"]').click()
    best = by_score(panel["heads"], "induction")
    until(lambda: rows(screen)[0][0] == place(best[0]))
    for row, head in zip(rows(screen)[:10], best, strict=False):
        score = head["scores"]["induction"]
        assert row[0] == place(head)
        assert row[2:6] == [f"{score[name]:.3f}" for name in ("corrected", "score", "chance")] + [str(score["rows"])]
    screen.part("table-head").locator('[data-column="place"]').click()
    screen.part("finder-score").select_option("best")
    until(lambda: [screen.fragment(name) for name in ("figures", "score", "sort")] == ["reference", None, None])
    screen.page.reload()
    screen.wait_for_map()
    expect(state).to_have_text(TEXT[lang]["over"])
    until(lambda: rows(screen)[:15] == averaged)
    switch(screen, "text")
    until(lambda: rows(screen)[:15] == own)
    expect(screen.part("figures-note")).to_be_hidden()
    until(lambda: screen.fragment("figures") is None)


def stays_with_this_text(screen: Screen, lang: str) -> None:
    """Views of this text say so while the heads' figures are of others, and offer no switch that does nothing."""
    for tab in ("layers", "alike"):
        open_tab(screen, tab)
        expect(screen.part("reference-state")).to_have_text(TEXT[lang]["own"])
        expect(screen.part("figures-of")).to_be_hidden()
        expect(screen.part("finder-note")).to_be_visible()
    open_tab(screen, "pictures")
    expect(screen.part("reference-state")).to_contain_text(TEXT[lang]["pictures"])
    open_tab(screen, "table")


def test_another_text_of_the_same_model_keeps_the_switch(own_server: str, open_screen: OpenScreen) -> None:
    screen = open_screen(own_server)
    screen.run("When Mary and John went to the store")
    open_tab(screen, "table")
    switch(screen, "reference")
    screen.part("reference-state").get_by_role("button").click()
    expect(screen.part("reference-state")).to_have_text(TEXT["en"]["over"], timeout=30_000)
    shown = rows(screen)[:15]
    screen.run("A bird in the hand")
    expect(screen.part("reference-state")).to_have_text(TEXT["en"]["over"])
    until(lambda: rows(screen)[:15] == shown)
    screen.choose_model("fake-seq2seq")
    screen.run("A bird in the hand")
    expect(screen.part("reference-state")).to_contain_text(TEXT["en"]["absent"])
    own = screen.api("/heads", site="encoder.self")["heads"]
    assert len(rows(screen)) == len(own) == 12
    failed = f"event: failed\ndata: {json.dumps({'status': 'failed', 'error': FAILED})}\n\n"
    screen.page.route(
        "**/reference/events?*", lambda route: route.fulfill(body=failed, content_type="text/event-stream")
    )
    screen.part("reference-state").get_by_role("button").click()
    expect(screen.part("reference-state")).to_contain_text("The model's weights have changed")  # the true reason
    screen.page.unroute("**/reference/events?*")
    screen.part("reference-state").get_by_role("button").click()
    expect(screen.part("reference-state")).to_have_text(TEXT["en"]["over"], timeout=30_000)
    until(lambda: len(rows(screen)) == 12)  # of this site alone
