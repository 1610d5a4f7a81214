"""Models with more than one text or more than one attention: targets, pairs, sites, and the code that runs them."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.conftest import OpenScreen, deep
from tests.browser.screen import WINDOW_ROUNDING, Screen, until
from tests.browser.test_access import serious
from tests.browser.test_reading import COLOUR_TOLERANCE

TEXT = "The cat sat on the mat and looked at the lamp"
LONGEST = 2.5  # times as wide as high, or as high as wide: thinner than that nothing could be seen
SITES = ["encoder.self", "decoder.self", "decoder.cross"]


def labels(tokens: list[dict[str, object]]) -> list[str]:
    """What the axes must say."""
    return [str(token["text"]).replace(" ", "·") for token in tokens]


def token(screen: Screen, side: str, index: int) -> Locator:
    """One token's element on the source's or the target's strip."""
    strip = "strip" if side == "source" else "target-strip"
    return screen.part(strip).locator(f'.tok[data-i="{index}"]')


def coloured(screen: Screen, side: str, weights: list[float | None]) -> None:
    """The strip has the ramp's colour of each weight, and nothing where it is masked."""
    screen.page.mouse.move(5, 5)
    for index, weight in enumerate(weights):
        if weight is None:
            expect(token(screen, side, index)).to_have_class(re.compile("is-masked"))
        else:
            colour = "rgb({}, {}, {})".format(*screen.colour_of(weight))
            expect(token(screen, side, index)).to_have_attribute("style", re.compile(re.escape(colour)))


@pytest.fixture
def translated(screen: Screen) -> Screen:
    """A run of an encoder–decoder that wrote its own target."""
    screen.choose_model("fake-seq2seq")
    screen.run(TEXT)
    return screen


@pytest.fixture
def paired(screen: Screen) -> Screen:
    """A run of two texts."""
    screen.choose_model("fake-pairs")
    screen.part("pair").fill("An animal is there")
    screen.run("The cat is there")
    return screen


def test_fields_are_shown_only_where_they_work(screen: Screen) -> None:
    for model, pair, target in (
        ("fake-30x9", False, False),
        ("fake-pairs", True, False),
        ("fake-seq2seq", False, True),
    ):
        screen.choose_model(model)
        expect(screen.part("pair")).to_be_visible(visible=pair)
        expect(screen.part("target")).to_be_visible(visible=target)
    assert "writes its own" in (screen.part("target").get_attribute("placeholder") or "")


def test_one_attention_needs_no_switch(shown: Screen) -> None:
    expect(shown.part("sites")).to_be_hidden()
    expect(shown.part("site-label")).to_be_hidden()
    expect(shown.part("target-side")).to_be_hidden()


def test_a_written_target_is_said_to_be_written(translated: Screen) -> None:
    expect(translated.part("target-side")).to_contain_text("written by the model")
    target = translated.tokens("target")
    strip = translated.part("target-strip").locator(".tok")
    assert strip.all_text_contents() == [one["text"] for one in target]
    assert translated.part("sites").locator("button").all_text_contents() == [
        "encoder · self",
        "decoder · self",
        "decoder · cross",
    ]


@pytest.mark.parametrize(
    ("site", "rows", "cols"),
    [("encoder.self", "source", "source"), ("decoder.self", "target", "target"), ("decoder.cross", "target", "source")],
)
def test_axes_readout_and_weights_follow_the_site(translated: Screen, site: str, rows: str, cols: str) -> None:
    translated.choose_site(site)
    queries, keys = translated.tokens(rows), translated.tokens(cols)
    assert translated.row_labels() == labels(queries)
    assert translated.col_labels() == labels(keys)
    row, col = len(queries) - 1, 2
    translated.point_at(row, col)
    readout = translated.part("readout")
    expect(readout.locator("data")).to_be_visible()
    assert translated.read_weight() == pytest.approx(translated.weight(row, col, site=site), rel=WINDOW_ROUNDING)
    read = readout.locator(".token-label").all_text_contents()
    assert read == [labels(queries)[row], labels(keys)[col]]


def test_thumbnails_of_a_rectangle_show_its_corners(translated: Screen) -> None:
    translated.choose_site("decoder.cross")
    translated.part("layer").select_option("1")
    translated.part("head").select_option("3")
    translated.wait_for_map()
    translated.page.mouse.move(5, 5)
    box = translated.part("chosen").bounding_box()
    assert box is not None
    n_rows, n_cols = len(translated.tokens("target")), len(translated.tokens("source"))
    assert box["width"] / box["height"] == pytest.approx(min(n_cols / n_rows, LONGEST), rel=0.05)  # whole pixels
    for row, col in ((0, n_cols - 1), (n_rows - 1, 0), (1, 4)):
        weight = translated.weight(row, col, 1, 3, "decoder.cross")
        assert weight is not None
        x = box["x"] + (col + 0.5) * box["width"] / n_cols
        y = box["y"] + (row + 0.5) * box["height"] / n_rows
        painted, wanted = translated.pixel(x, y), translated.colour_of(weight)
        assert max(abs(a - b) for a, b in zip(painted, wanted, strict=True)) <= COLOUR_TOLERANCE


def test_a_target_token_colours_the_source_and_the_other_way_round(translated: Screen) -> None:
    translated.choose_site("decoder.cross")
    weights = translated.api("/weights", site="decoder.cross", layer=0, head=0)["weights"]
    token(translated, "target", 2).click()
    until(lambda: translated.fragment("token") == "2")
    coloured(translated, "source", weights[2])
    expect(token(translated, "target", 2)).to_have_class(re.compile("is-chosen"))
    expect(token(translated, "source", 2)).not_to_have_class(re.compile("is-chosen"))
    expect(translated.part("strip-foot")).to_contain_text("what ·the looks at")
    token(translated, "source", 3).click()
    until(lambda: (translated.fragment("token"), translated.fragment("dir")) == ("3", "col"))
    coloured(translated, "target", [row[3] for row in weights])
    expect(token(translated, "source", 3)).to_have_class(re.compile("is-chosen"))
    expect(translated.part("strip-foot")).to_contain_text("what looks at ·sat")
    translated.part("top").locator("summary").click()
    largest = max(range(len(weights)), key=lambda row: weights[row][3])
    assert translated.part("top-body").locator("tbody td").all_text_contents()[:2] == [
        labels(translated.tokens("target"))[largest],
        str(largest),
    ]


def test_hovering_shows_the_links_without_choosing(translated: Screen) -> None:
    translated.choose_site("decoder.cross")
    row = translated.api("/weights", site="decoder.cross", layer=0, head=0, rows="1:2")["weights"][0]
    token(translated, "target", 1).hover()
    best = row.index(max(row))
    colour = "rgb({}, {}, {})".format(*translated.colour_of(row[best]))
    expect(token(translated, "source", best)).to_have_attribute("style", re.compile(re.escape(colour)))
    assert translated.fragment("token") is None


def test_the_decoder_looks_back_on_its_own_strip(translated: Screen) -> None:
    translated.choose_site("decoder.self")
    expect(translated.part("legend")).to_contain_text("masked")
    token(translated, "target", 1).click()
    coloured(translated, "target", translated.api("/weights", site="decoder.self", layer=0, head=0)["weights"][1])
    expect(translated.part("strip")).to_have_class(re.compile("is-apart"))
    token(translated, "source", 3).click()
    assert translated.fragment("token") == "1"
    translated.choose_site("decoder.cross")  # rows are the target here too
    expect(token(translated, "target", 1)).to_have_class(re.compile("is-chosen"))
    translated.choose_site("encoder.self")
    until(lambda: translated.fragment("token") is None)


def test_keys_and_links_know_the_site(translated: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    translated.page.locator("body").press("Escape")
    for site in (*SITES[1:], SITES[0], SITES[1]):
        translated.part("heads").press("s")
        until(lambda site=site: translated.fragment("site") == site)  # type: ignore[misc]
    translated.part("site").select_option("decoder.cross")
    translated.wait_for_map()
    translated.part("zoom-in").click()
    translated.wait_for_map()
    other = open_screen(fake_server, f"#{urlsplit(translated.page.url).fragment}")
    other.wait_for_map()
    assert other.row_labels() == translated.row_labels()
    assert other.col_labels() == translated.col_labels()
    expect(other.part("sites").locator('[data-value="decoder.cross"]')).to_have_attribute("aria-pressed", "true")
    other.js("() => { location.hash = location.hash.replace('decoder.cross', 'encoder.self'); }")
    until(lambda: other.part("site").input_value() == "encoder.self")
    other.wait_for_map()
    other.js("() => { location.hash = location.hash.replace('encoder.self', 'nowhere'); }")
    until(lambda: other.fragment("site") == "encoder.self")


def test_a_given_target_is_looked_at_and_travels_in_links(
    screen: Screen, open_screen: OpenScreen, small_server: str
) -> None:
    screen.choose_model("fake-seq2seq")
    screen.part("target").fill("le chat est assis")
    screen.run(TEXT)
    expect(screen.part("target-side")).to_contain_text("as given")
    assert [one["text"].strip() for one in screen.tokens("target")][1:] == ["le", "chat", "est", "assis"]
    expect(screen.part("stale")).to_be_hidden()
    screen.part("target").fill("")
    expect(screen.part("stale")).to_be_visible()
    screen.part("copy-text").click()
    expect(screen.part("notice")).to_be_visible()
    fragment = urlsplit(screen.js("() => navigator.clipboard.readText()")).fragment
    assert parse_qs(fragment)["target"] == ["le chat est assis"]
    other = open_screen(small_server, f"#{fragment}")
    other.witness.allow("404")
    expect(other.part("problem")).to_contain_text("no longer stored")
    assert other.part("target").input_value() == "le chat est assis"
    other.part("problem").get_by_role("button").click()
    other.wait_for_map(30)
    expect(other.part("target-side")).to_contain_text("as given")


def test_a_run_from_a_link_fills_every_field(paired: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    fragment = urlsplit(paired.page.url).fragment
    paired.part("copy-text").click()
    expect(paired.part("notice")).to_be_visible()
    copied = urlsplit(paired.js("() => navigator.clipboard.readText()")).fragment
    assert parse_qs(copied)["pair"] == ["An animal is there"]
    other = open_screen(fake_server, f"#{fragment}", alone=True)
    other.wait_for_map()
    assert other.page.input_value("#text") == "The cat is there"
    assert other.part("pair").input_value() == "An animal is there"
    expect(other.part("stale")).to_be_hidden()


def test_a_run_from_a_link_has_its_given_target(screen: Screen, open_screen: OpenScreen, fake_server: str) -> None:
    screen.choose_model("fake-seq2seq")
    screen.part("target").fill("le chat est assis")
    screen.run(TEXT)
    other = open_screen(fake_server, f"#{urlsplit(screen.page.url).fragment}")
    other.wait_for_map()
    assert other.part("target").input_value() == "le chat est assis"
    expect(other.part("stale")).to_be_hidden()


def test_each_site_says_who_looks_at_what(translated: Screen) -> None:
    for site, words in (
        ("encoder.self", "Each source token looks at source tokens."),
        ("decoder.self", "Each target token looks at itself and the target tokens before it."),
        ("decoder.cross", "Each target token (row) looks at source tokens (columns) to write what comes next."),
    ):
        translated.choose_site(site)
        expect(translated.part("sites-what")).to_have_text(words)


def test_pieces_of_a_pair_are_marked_by_their_text(paired: Screen) -> None:
    segments = paired.part("strip").locator(".segment")
    expect(segments).to_have_count(2)
    expect(segments.nth(0)).to_contain_text("first text")
    expect(segments.nth(1)).to_contain_text("second text")
    shown = [segments.nth(at).locator(".tok:not(.is-special)").all_text_contents() for at in (0, 1)]
    tokens = [one for one in paired.tokens() if not one["special"]]
    assert shown == [[one["text"] for one in tokens if one["segment"] == segment] for segment in (0, 1)]
    expect(paired.part("count")).to_contain_text(f"{len(paired.tokens())} of")
    paired.part("pair").fill("")
    expect(paired.part("stale")).to_be_visible()
    expect(paired.part("count")).not_to_contain_text(f"{len(paired.tokens())} of")


def test_a_target_over_the_limit_is_refused_in_words(open_screen: OpenScreen, small_server: str) -> None:
    screen = open_screen(small_server)
    screen.witness.allow("422")
    screen.choose_model("fake-seq2seq")
    screen.type("short")
    screen.part("target").fill("word " * 90)
    screen.part("run").click()
    expect(screen.part("problem")).to_contain_text("The target text has")
    expect(screen.part("problem").get_by_role("button")).to_have_count(0)  # it is never cut


def test_the_code_that_runs_a_model_can_be_chosen_where_there_is_a_choice(screen: Screen) -> None:
    expect(screen.part("implementation-field")).to_be_hidden()
    asked: list[dict[str, object]] = []

    def two(route: Route) -> None:
        answer = route.fetch()
        models = answer.json()
        models["models"][0]["implementations"] = ["own", "transformers"]
        route.fulfill(response=answer, json=models)

    def note(route: Route) -> None:
        asked.append(json.loads(route.request.post_data or "{}"))
        route.fulfill(status=503, body='{"error": {"code": "queue_full", "message": "full", "details": {}}}')

    screen.witness.allow("503")
    screen.page.route("**/api/models", two)
    screen.page.route("**/api/runs", note)
    screen.page.reload()
    screen.type("any")
    screen.part("special").locator("xpath=ancestor::details").locator("summary").click()
    expect(screen.part("implementation")).to_have_value("own")
    # Waiting for the answer, not for the list: a handler runs only while Playwright is waiting itself.
    with screen.page.expect_response("**/api/runs"):
        screen.part("run").click()
    expect(screen.part("problem")).to_be_visible()  # until then the button would cancel
    screen.part("implementation").select_option("transformers")
    with screen.page.expect_response("**/api/runs"):
        screen.part("run").click()
    assert [one.get("implementation") for one in asked] == [None, "transformers"]


@pytest.mark.parametrize(("lang", "scheme"), [deep("en", "light"), ("zh", "dark")])
def test_axe_finds_nothing_serious(open_screen: OpenScreen, fake_server: str, lang: str, scheme: str) -> None:
    screen = open_screen(fake_server, lang=lang, color_scheme=scheme)
    for model, field in (("fake-seq2seq", None), ("fake-pairs", "pair")):
        screen.choose_model(model)
        if field:
            screen.part(field).fill("An animal is there")
        screen.run(TEXT)
        if field is None:
            screen.choose_site("decoder.cross")
        screen.part("strip").locator(".tok").nth(2).click()
        screen.page.wait_for_timeout(300)
        assert serious(screen) == []


@pytest.mark.parametrize("width", [320, 390, 1024])
def test_nothing_overflows_sideways(open_screen: OpenScreen, fake_server: str, width: int) -> None:
    screen = open_screen(fake_server, lang="en", viewport={"width": width, "height": 800})
    screen.choose_model("fake-seq2seq")
    screen.run(TEXT)
    screen.choose_site("decoder.cross")
    assert screen.js("() => document.documentElement.scrollWidth") <= width
