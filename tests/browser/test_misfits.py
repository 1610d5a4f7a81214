"""A link's values that do not fit are named in one notice, on both pages: nothing is changed without a word."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.comparing import Compared
from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen, until

WORDS = {"en": "Left out or changed: ", "zh": "已略去或改动："}
COMMA = {"en": ", ", "zh": "、"}
GO = "(hash) => { location.hash = hash; }"


def named(screen: Screen, lang: str = "en") -> list[str]:
    """The fields that the notice names, once there is one."""
    notice = screen.part("notice")
    expect(notice).to_contain_text(WORDS[lang])
    return sorted(notice.inner_text().split(WORDS[lang])[1].split(COMMA[lang]))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_all_that_does_not_fit_is_named_at_once(open_screen: OpenScreen, fake_server: str, lang: str) -> None:
    screen = open_screen(fake_server, lang=lang)
    run = screen.run("When Mary and John went to the store")
    wrong = [
        "layer=99",
        "head=abc",
        "site=encoder.cross",
        "token=400",
        "rows=5:2",
        "cols=3:99",
        "lens=xyz",
        "pool=median",
    ]
    wrong += ["pairs=abc", "sides=x-y", "threshold=9", "heads=cake", "score=pairs", "figures=all", "model=nonsense"]
    right = ["scale=sqrt", "unit=token", "x=previous", "dir=row", "of=all", "alike=list"]
    other = open_screen(fake_server, f"#run={run}&{'&'.join(wrong + right)}", lang=lang)
    other.wait_for_map()
    until(lambda: named(other, lang) == sorted(wrong))
    assert (other.fragment("layer"), other.fragment("head"), other.fragment("alike")) == ("29", "0", "list")


def test_a_link_that_fits_is_opened_without_a_word(shown: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    count = len(shown.tokens())
    fields = (
        f"site=decoder.self&layer=07&head=mean&rows=0:{count}&cols=2:6&lens=sink_free&pairs=3:2,900:1&threshold=0.50"
    )
    other = open_screen(fake_server, f"#run={shown.run_id}&{fields}&score=pairs&model=fake-30x9&special=1&later=5")
    other.wait_for_map()
    expect(other.part("link-list").locator("li")).to_have_count(2)  # what is not in the text is said there
    expect(other.part("notice")).to_be_hidden()


def test_a_pasted_link_is_told_of_and_no_longer_than_it_is_open(shown: Screen) -> None:
    run = shown.run_id
    shown.js(GO, f"run={run}&layer=4&head=77")
    assert named(shown) == ["head=77"]
    shown.part("notice").click()  # it may lie over a control
    expect(shown.part("notice")).to_be_hidden(timeout=1000)
    shown.js(GO, f"run={run}&layer=4&head=78")
    assert named(shown) == ["head=78"]
    shown.js(GO, f"run={run}&layer=5&head=1")
    until(lambda: shown.fragment("layer") == "5")
    expect(shown.part("notice")).to_be_hidden()


def test_a_range_of_more_units_than_there_are(shown: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    other = open_screen(fake_server, f"#run={shown.run_id}&unit=sentence&rows=2:9")
    other.wait_for_map()
    assert named(other) == ["rows=2:9"]


def test_layers_that_the_model_lacks(screen: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    screen.choose_model("fake-pairs")  # 4 layers
    fields = f"run={screen.run('When Mary and John went')}&heads=table"
    other = open_screen(fake_server, f"#{fields}&layers=20-29")
    assert named(other) == ["layers=20-29"]
    expect(other.part("overview-title")).to_have_text("All 24 heads")
    until(lambda: other.fragment("layers") is None)
    other.js(GO, f"{fields}&layers=2-9")
    until(lambda: named(other) == ["layers=2-9"])
    expect(other.part("overview-title")).to_have_text("12 of 24 heads")
    until(lambda: other.fragment("layers") == "2-3")
    other.js(GO, f"{fields}&layers=0-3")  # all of them, said otherwise
    expect(other.part("overview-title")).to_have_text("All 24 heads")
    expect(other.part("notice")).to_be_hidden()


@pytest.mark.parametrize(("asked", "left", "heads"), [("4-5", None, "All 24 heads"), ("2-20", "2-3", "12 of 24 heads")])
def test_a_filter_of_layers_ends_where_the_next_model_does(
    shown: Screen, asked: str, left: str | None, heads: str
) -> None:
    shown.js(GO, f"run={shown.run_id}&heads=table&layers={asked}")
    expect(shown.part("overview-title")).to_contain_text("of 270 heads")
    shown.choose_model("fake-pairs")
    shown.run("When Mary and John went")
    expect(shown.part("overview-title")).to_have_text(heads)
    until(lambda: shown.fragment("layers") == left)
    expect(shown.part("table-body").locator("tr[data-at]")).not_to_have_count(0)


def test_a_model_that_is_not_here(screen: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    text = "model=nonsense&text=two+words&implementation=own"
    other = open_screen(fake_server, f"#{text}")
    assert named(other) == ["model=nonsense"]
    expect(other.part("model-button")).to_contain_text("Fake 30")
    screen.js(GO, text)
    assert named(screen) == ["model=nonsense"]
    expect(screen.part("model-button")).to_contain_text("Fake 30")  # not a list that loads for ever
    screen.js(GO, text.replace("nonsense", "fake-pairs"))
    until(lambda: "implementation=own" in named(screen))
    expect(screen.part("model-button")).to_contain_text("Fake encoder of pairs")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_comparison_names_what_does_not_fit(open_screen: OpenScreen, fake_server: str, lang: str) -> None:
    compared = Compared(open_screen(fake_server, lang=lang))
    compared.screen.witness.allow("422")  # the service tells which ranges there are
    a, b = (compared.make(text) for text in ("When Mary and John went", "When Mary and Tom went"))
    wrong = ["layer_a=99", "site_b=encoder.cross", "head_b=abc", "rows=3:90", "scale=log"]
    page = f"{compared.screen.base}/compare?lang={lang}"
    compared.page.goto(f"{page}#a={a}&b={b}&head_a=2&{'&'.join(wrong)}")
    compared.wait()
    until(lambda: named(compared.screen, lang) == sorted(wrong))
    compared.page.evaluate(GO, f"a={b}&b={a}&layer_a=3&head_b=2&rows=1:3&cols=1:3")
    compared.wait()
    expect(compared.screen.part("notice")).to_be_hidden()
    compared.page.evaluate(GO, f"a={b}&b={a}&layer_a=3&head_b=2&rows=1:3&cols=1:70")
    compared.wait()
    until(lambda: named(compared.screen, lang) == ["cols=1:70", "rows=1:3"])
