"""Where things lie: what is read stays in sight on every width, and what scrolls sideways says so."""

from __future__ import annotations

from playwright.sync_api import Route, expect

from tests.browser.comparing import Compared
from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen, until

TABS = ("pictures", "table", "scatter", "alike", "layers")
BETWEEN = (600, 768, 820, 900)  # px, where the head lies under two columns
LOW_LAPTOP = {"width": 1280, "height": 720}
LAPTOP = {"width": 1366, "height": 768}
TABLET = {"width": 768, "height": 1024}
OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"


def test_the_comparison_writes_the_text_with_its_spaces(open_screen: OpenScreen, fake_server: str) -> None:
    """Pieces of words have no spaces of their own in some models: where they lie says where one was."""

    def bare(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        for token in content.get("tokens", {}).get("source", []):
            if token["text"].startswith(" "):
                token.update(text=token["text"][1:], start=token["start"] + 1)
        route.fulfill(response=answer, json=content)

    text = "When Mary and John went to the store, John gave"
    compared = Compared(open_screen(fake_server))
    run = compared.make(text)
    compared.page.route(f"**/api/runs/{run}", bare)
    compared.open(f"#a={run}&b={run}")
    for side in ("a", "b"):
        expect(compared.page.locator(f"[data-ref=excerpt-{side}] bdi")).to_have_text(text)


def test_cut_labels_of_sentences_say_so_and_are_told_apart(screen: Screen) -> None:
    screen.run("In the summer they rest. In the summer they work. Yes.")
    screen.part("unit").select_option("sentence")
    until(lambda: screen.fragment("unit") == "sentence")
    screen.wait_for_map()
    labels = [label.replace("\u200b", "") for label in screen.row_labels()]
    sentences = screen.api("/units", unit="sentence")
    assert len(labels) == len(set(labels)) > 2, sentences
    cut = [label for label in labels if "summer" in label or "summ" in label]
    assert len(cut) == 2
    assert all(label.endswith("…") for label in cut)
    assert labels[-1].endswith("Yes.")
