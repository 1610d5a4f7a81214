"""Figures over the reference texts on the page: computed on request, stopped, shown in the table, in both languages."""

from __future__ import annotations

import json
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
    "en": {"absent": "Not computed", "over": "Averaged over 4 texts: prose, code, Chinese, repeated random tokens."},
    "zh": {"absent": "尚未计算", "over": "4 段文本的平均：叙事文、代码、中文、重复的随机词元。"},
}


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
def test_computed_on_request_stopped_and_shown(open_screen: OpenScreen, own_server: str, lang: str) -> None:
    screen = open_screen(own_server, lang=lang)
    screen.witness.allow("404")  # they are not computed yet
    screen.run("When Mary and John went to the store, John gave a drink to")
    expect(screen.part("reference")).to_be_hidden()
    open_tab(screen, "table")
    own = rows(screen)[:15]
    switch(screen, "reference")
    state = screen.part("reference-state")
    expect(state).to_contain_text(TEXT[lang]["absent"])
    state.get_by_role("button").click()
    expect(state.get_by_role("progressbar")).to_be_visible()
    state.get_by_role("button").click()  # cancel
    expect(state).to_contain_text(TEXT[lang]["absent"])
    assert rows(screen)[:15] == own
    state.get_by_role("button").click()
    expect(state).to_have_text(TEXT[lang]["over"], timeout=30_000)
    with urlopen(f"{own_server}/api/models/fake-30x9/reference", timeout=30) as answer:
        panel: dict[str, Any] = json.load(answer)
    screen.part("finder-score").select_option("induction")
    screen.part("table-head").locator('[data-column="corrected"]').click()
    best = by_score(panel["heads"], "induction")
    until(lambda: rows(screen)[0][0] == place(best[0]))
    for row, head in zip(rows(screen)[:10], best, strict=False):
        score = head["scores"]["induction"]
        assert row[0] == place(head)
        assert row[2:6] == [f"{score[name]:.3f}" for name in ("score", "chance", "corrected")] + [str(score["rows"])]
    screen.part("table-head").locator('[data-column="place"]').click()
    screen.part("finder-score").select_option("best")
    switch(screen, "text")
    until(lambda: rows(screen)[:15] == own)
    expect(screen.part("figures-note")).to_be_hidden()


def test_another_text_of_the_same_model_keeps_the_switch(open_screen: OpenScreen, own_server: str) -> None:
    screen = open_screen(own_server)
    screen.witness.allow("404")
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
    screen.part("reference-state").get_by_role("button").click()
    expect(screen.part("reference-state")).to_have_text(TEXT["en"]["over"], timeout=30_000)
    until(lambda: len(rows(screen)) == 12)  # of this site alone
