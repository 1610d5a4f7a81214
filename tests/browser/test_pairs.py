"""Find by example: a marked link opens the head that makes it, in every way to mark one, and the link stays."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.conftest import OpenScreen
from tests.browser.screen import WINDOW_ROUNDING, Screen, until

SHOWN = 10  # heads in the list
SEQ2SEQ = "fake-seq2seq"


def token(screen: Screen, index: int, strip: str = "strip") -> Locator:
    """One token of a strip."""
    return screen.part(strip).locator(f'.tok[data-i="{index}"]')


def mark(screen: Screen, query: int, key: int) -> None:
    """Marks a link by clicking on the strip."""
    if screen.part("mark").get_attribute("aria-pressed") == "false":
        screen.part("mark").click()
    token(screen, query).click()
    token(screen, key).click()


def best(screen: Screen, pairs: str, **query: Any) -> list[dict[str, Any]]:
    """Heads by their weight on the links as the API gives it, largest first."""
    heads: list[dict[str, Any]] = screen.api("/heads", pairs=pairs, **query)["heads"]
    return sorted(heads, key=lambda head: (-head["pairs"]["mean"], head["layer"], head["head"]))


def settled(screen: Screen, pairs: str) -> None:
    """Waits until the address names these links and their heads are listed."""
    until(lambda: screen.fragment("pairs") == pairs)
    expect(screen.part("link-answer").locator(".link-head")).not_to_have_count(0)


def listed(screen: Screen) -> list[tuple[int, int, float]]:
    """The heads in the list: layer, head, weight."""
    found: list[tuple[int, int, float]] = screen.js(
        """() => [...document.querySelectorAll('.link-head')].map((one) =>
            [Number(one.dataset.layer), Number(one.dataset.head), Number(one.querySelector('data').value)])"""
    )
    return [(int(layer), int(head), weight) for layer, head, weight in found]


def assert_opened_head(screen: Screen, pairs: str, **query: Any) -> list[dict[str, Any]]:
    """The page shows the head that the API ranks first. Gives the best ones."""
    heads = best(screen, pairs, **query)[:SHOWN]
    wanted = (str(heads[0]["layer"]), str(heads[0]["head"]))
    until(lambda: (screen.fragment("layer"), screen.fragment("head")) == wanted)
    screen.wait_for_map()
    return heads


def assert_opened(screen: Screen, pairs: str, **query: Any) -> None:
    """The page shows the head that the API ranks first, and lists the best ones with the API's weights."""
    settled(screen, pairs)
    heads = assert_opened_head(screen, pairs, **query)
    expected: list[Any] = [(head["layer"], head["head"], pytest.approx(head["pairs"]["mean"])) for head in heads]
    assert listed(screen) == expected


def test_a_link_marked_on_the_strip_opens_the_head_that_makes_it(shown: Screen) -> None:
    mark(shown, 10, 4)
    assert_opened(shown, "10:4")
    until(lambda: shown.fragment("score") == "pairs")  # heads are shown by what was marked
    weight = best(shown, "10:4")[0]["pairs"]["mean"]
    expect(shown.part("readout").locator("data")).to_be_visible()
    assert shown.read_weight() == pytest.approx(weight, rel=WINDOW_ROUNDING)  # the cell itself, on the picture
    expect(token(shown, 10)).to_have_class(re.compile("is-from"))
    expect(token(shown, 4)).to_have_class(re.compile("is-onto"))


def test_the_other_way_round_is_another_head(shown: Screen) -> None:
    """A page that swapped query and key would open another head, or none: the mask hides it."""
    mark(shown, 4, 10)
    until(lambda: shown.fragment("pairs") == "4:10")
    expect(shown.part("link-list").locator("li")).to_contain_text("masked")
    expect(shown.part("link-answer").locator(".link-head")).to_have_count(0)
    assert shown.fragment("layer") == "0"
    shown.js("() => { location.hash = location.hash.replace(/pairs=[^&]*/, 'pairs=12:3'); }")
    settled(shown, "12:3")
    assert best(shown, "12:3")[0]["head"] != 0
    assert shown.fragment("head") == "0"  # what was marked before asked for nothing, and moves nothing later


def without_kinds(route: Route) -> None:
    """A run's summary with masks that the page cannot tell."""
    answer = route.fetch()
    summary = answer.json()
    for site in summary.get("sites", []):
        site["masks"] = [{**mask, "kind": "dense"} for mask in site["masks"]]
    route.fulfill(response=answer, json=summary)


def test_a_link_that_only_the_service_knows_to_be_masked_is_asked_for_once(screen: Screen) -> None:
    screen.witness.allow("422")  # the service refuses the link
    screen.page.route(re.compile(r"/api/runs(/[0-9a-f]+)?$"), without_kinds)
    screen.run("When Mary and John went to the store")
    mark(screen, 2, 5)
    expect(screen.part("link-list").locator("li")).to_contain_text("masked")
    mark(screen, 5, 2)
    settled(screen, "2:5,5:2")
    assert len([url for url in screen.witness.requests if "pairs=2%3A5" in url]) == 1
    screen.run("When Mary and John went to the shop")
    expect(screen.part("link-list").locator("li").first).to_contain_text("masked")
    settled(screen, "2:5,5:2")
    assert len([url for url in screen.witness.requests if "pairs=2%3A5" in url]) == 2
    assert_opened_head(screen, "5:2")


def shown_in(screen: Screen) -> tuple[str | None, str | None]:
    """The layer and the head that the address names."""
    return screen.fragment("layer"), screen.fragment("head")


HIDDEN_WRONGLY = """async () => {
    const { hides } = await import('/static/js/masks.js');
    const seen = {
        full: () => true,
        causal: (row, col) => col <= row,
        causal_window: (row, col) => col <= row && col > row - 3,
        window: (row, col) => Math.abs(row - col) <= 3,
    };
    const spans = Array.from({ length: 36 }, (_, at) => [(at % 6) * 2, (at % 6) * 2 + Math.floor(at / 6)]);
    const within = ([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => first + at);
    const some = (see, rows, cols) => within(rows).some((row) => within(cols).some((col) => see(row, col)));
    return Object.entries(seen).flatMap(([kind, see]) => spans.flatMap((rows) => spans.filter((cols) =>
        hides({ kind, window: 3 })(...rows, ...cols) === some(see, rows, cols))));
}"""
MS_OF_A_LONG_LINK = """async () => {
    const { problemOf } = await import('/static/js/links.js');
    const masks = Array(30).fill({ kind: 'causal' });
    const site = { site: 'decoder.self', query_len: 4096, key_len: 4096, masks };
    const run = { summary: { sites: [site], tokens: {} } };
    const state = { run, view: { site: site.site }, pairs: { sides: null, refused: [] } };
    const begun = performance.now();
    const problem = problemOf(state, { query: [0, 1999], key: [2000, 3999] });
    return problem === 'masked' ? performance.now() - begun : null;
}"""


def test_what_a_mask_hides_whole_is_told_from_its_corners(screen: Screen) -> None:
    assert screen.js(HIDDEN_WRONGLY) == []
    assert screen.js(MS_OF_A_LONG_LINK) < 50


def test_spans_and_several_links(shown: Screen) -> None:
    shown.part("mark").click()
    token(shown, 10).click()
    token(shown, 11).click(modifiers=["Shift"])
    token(shown, 2).click()
    settled(shown, "10-11:2")
    token(shown, 4).click(modifiers=["Shift"])
    assert_opened(shown, "10-11:2-4")
    shown.part("mark-extend").click()  # without a Shift key
    token(shown, 1).click()
    assert_opened(shown, "10-11:1-4")
    mark(shown, 13, 6)
    assert_opened(shown, "10-11:1-4,13:6")
    expect(shown.part("link-list").locator("li")).to_have_count(2)


def test_by_keyboard(shown: Screen) -> None:
    shown.part("mark").focus()
    shown.page.keyboard.press("Enter")
    for _ in range(9):
        shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("Enter")
    for _ in range(4):
        shown.page.keyboard.press("ArrowLeft")
    shown.page.keyboard.press("Enter")
    assert_opened(shown, "9:5")
    shown.page.keyboard.press("Escape")
    expect(shown.part("mark")).to_have_attribute("aria-pressed", "false")


def test_a_head_of_the_list_opens(shown: Screen) -> None:
    mark(shown, 10, 4)
    assert_opened(shown, "10:4")
    layer, head, _ = listed(shown)[3]
    button = shown.part("link-answer").locator(".link-head").nth(3)
    button.press("Enter")
    until(lambda: shown_in(shown) == (str(layer), str(head)))
    shown.wait_for_map()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(button).to_be_focused()


def test_links_survive_a_reload_and_the_view_stays(shown: Screen) -> None:
    mark(shown, 10, 4)
    assert_opened(shown, "10:4")
    shown.part("layer").select_option("2")
    shown.wait_for_map()
    before = listed(shown)
    shown.page.reload()
    settled(shown, "10:4")
    shown.wait_for_map()
    assert shown.fragment("layer") == "2"
    assert listed(shown) == before


def test_removed_links_are_gone(shown: Screen) -> None:
    mark(shown, 10, 4)
    mark(shown, 12, 3)
    settled(shown, "10:4,12:3")
    shown.part("link-list").get_by_role("button").first.press("Enter")
    settled(shown, "12:3")
    expect(shown.part("link-list").get_by_role("button")).to_be_focused()  # the next one
    first = best(shown, "12:3")[0]
    until(lambda: listed(shown)[0][:2] == (first["layer"], first["head"]))
    shown.part("unmark-all").press("Enter")
    until(lambda: shown.fragment("pairs") is None)
    expect(shown.part("mark")).to_be_focused()
    expect(shown.part("link-answer").locator(".link-head")).to_have_count(0)
    expect(token(shown, 12)).not_to_have_class(re.compile("is-from"))


def test_another_text_is_asked_the_same_where_it_has_the_tokens(shown: Screen) -> None:
    mark(shown, 10, 4)
    mark(shown, 3, 2)
    settled(shown, "10:4,3:2")
    shown.run("only five words of text")
    settled(shown, "10:4,3:2")
    expect(shown.part("link-list").locator("li").first).to_contain_text("not in this text")
    expected = best(shown, "3:2")[0]
    until(lambda: listed(shown)[0][:2] == (expected["layer"], expected["head"]))


def test_a_cell_of_the_picture_can_be_marked(shown: Screen) -> None:
    shown.part("figure").click(position=shown.js("() => ({ x: 1, y: 1 })"))
    expect(shown.part("mark-cell")).to_be_hidden()  # not a cell
    shown.page.mouse.click(*shown.place_of(9, 5))
    expect(shown.part("mark-cell")).to_be_visible()
    shown.part("mark-cell").click()
    assert_opened(shown, "9:5")
    shown.point_at(11, 7)
    shown.page.keyboard.press("m")
    assert_opened(shown, "9:5,11:7")


def test_a_cell_of_larger_units_is_marked_by_their_names(screen: Screen) -> None:
    screen.run("猫吃鱼。")
    screen.part("unit").select_option("character")
    screen.wait_for_map()
    screen.page.mouse.click(*screen.place_of(3, 1))
    expect(screen.part("mark-cell")).to_have_text("Mark 鱼 → 猫")
    screen.part("unit").select_option("token")
    expect(screen.part("mark-cell")).to_be_hidden()  # the cell at the same place is another
    screen.part("unit").select_option("character")
    screen.wait_for_map()
    screen.page.mouse.click(*screen.place_of(3, 1))
    screen.part("mark-cell").click()
    settled(screen, "7-9:1-3")


def test_between_two_texts(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)
    screen.choose_model(SEQ2SEQ)
    screen.run("one two three four five six")
    screen.choose_site("decoder.cross")
    screen.part("mark").click()
    token(screen, 2).click()  # of the source: no query here
    token(screen, 1, "target-strip").click()
    token(screen, 2).click()
    assert_opened(screen, "1:2", site="decoder.cross")
    screen.choose_site("encoder.self")
    expect(screen.part("link-list").locator("li")).to_contain_text("another attention")
    screen.page.reload()  # as a change of language does
    screen.wait_for_map()
    expect(screen.part("link-list").locator("li")).to_contain_text("another attention")
    until(lambda: screen.fragment("sides") == "target-source")
    screen.choose_site("decoder.cross")
    settled(screen, "1:2")
    until(lambda: screen.fragment("sides") is None)  # those of the attention that is named
    of_two_texts = str(screen.js("() => location.hash"))
    screen.choose_model("fake-30x9")
    screen.run("one two three four five six")
    screen.js("(hash) => { location.hash = hash; }", of_two_texts)
    screen.wait_for_map()
    settled(screen, "1:2")
    expect(screen.part("link-list").locator("li")).not_to_contain_text("another attention")


def test_a_link_of_another_attention_keeps_its_own_words(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)
    screen.choose_model(SEQ2SEQ)
    screen.run("one two three four five six")
    run = f"run={screen.run_id}"
    sides = screen.part("link-list").locator("li .link-side")
    screen.js("(hash) => { location.hash = hash; }", f"#{run}&site=decoder.cross&pairs=3:2")
    words = ["·fake", "·two"]  # of the target, and of the source
    expect(sides).to_have_text(words)
    for site in ("decoder.self", "encoder.self"):
        screen.choose_site(site)
        expect(screen.part("link-list").locator("li")).to_contain_text("another attention")
        expect(sides).to_have_text(words)
    screen.js("(hash) => { location.hash = hash; }", f"#{run}&site=encoder.self&pairs=3:2&sides=target-source")
    expect(sides).to_have_text(words)


def test_links_that_cannot_be_asked_for_say_why_in_the_table(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server)
    screen.choose_model(SEQ2SEQ)
    screen.run("one two three four five six")
    cell = screen.part("table-body").locator("tr[data-at] td.number").first
    table = f"run={screen.run_id}&heads=table&score=pairs&site=decoder.self"
    for pairs, why in (
        ("2:5", "masked: the model could not look there"),
        ("90:1", "not in this text"),
        ("2:5,90:1", "no marked link can be asked for here"),
        ("3:2&sides=target-source", "marked in another attention"),
    ):
        screen.js("(hash) => { location.hash = hash; }", f"{table}&pairs={pairs}")
        expect(cell).to_have_attribute("title", why)
        expect(cell).to_have_text("–")
    screen.js("(hash) => { location.hash = hash; }", f"{table}&pairs=2:5,5:2")  # one that can be is enough
    expect(cell).not_to_have_text("–")


@pytest.mark.parametrize(("lang", "said"), [("en", "Best of 270 heads"), ("zh", "270 个头中最高的")])
def test_in_both_languages(open_screen: OpenScreen, fake_server: str, lang: str, said: str) -> None:
    screen = open_screen(fake_server, lang=lang)
    screen.run("When Mary and John went to the store, John gave a drink to")
    mark(screen, 10, 4)
    assert_opened(screen, "10:4")
    expect(screen.part("link-answer")).to_contain_text(said)
    chance = best(screen, "10:4")[0]["pairs"]["chance"]
    expect(screen.part("link-answer")).to_contain_text(f"{chance:.3f}")
