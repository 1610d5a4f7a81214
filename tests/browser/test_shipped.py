"""The page as somebody meets it who has just installed it: an empty data folder, no settings, the models that ship."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen, free_port, serving
from tests.browser.screen import Screen, until

COPY = 0.5  # of a row's weight, on the token behind an earlier copy; the scores of the card are above 0.8


@pytest.fixture(scope="module")
def fresh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service without a setting, but for where it may write and listen."""
    folder = tmp_path_factory.mktemp("fresh")
    port = free_port()
    environment = {
        "PORT": str(port),
        "EVERYHEAD_DATA_DIR": str(folder / "data"),
    }
    with serving(["app"], port, environment, folder / "log") as address:
        yield address


@pytest.fixture
def waiting(open_screen: OpenScreen, fresh_server: str) -> Screen:
    """The page with its default model, and no run yet."""
    return open_screen(fresh_server)


def run_example(screen: Screen, name: str) -> None:
    """Runs an example and waits for its picture."""
    screen.part("examples").get_by_text(name).click()
    screen.part("run").click()
    until(lambda: screen.fragment("run") is not None, 20)
    screen.wait_for_map()


def test_the_first_picture_is_of_a_model_that_ships(open_screen: OpenScreen, fresh_server: str) -> None:
    screen = open_screen(fresh_server, "")
    until(lambda: screen.fragment("run") is not None, 20)
    screen.wait_for_map()
    expect(screen.part("model-button")).to_contain_text("everyhead-mini")
    expect(screen.part("overview-title")).to_have_text("All 32 heads")
    expect(screen.part("verdict")).to_contain_text("all pass")
    assert screen.page.input_value("#text").startswith("And God said, Let there be light")
    examples = screen.part("examples").locator("button:visible")
    assert examples.all_inner_texts() == ["Let there be light", "床前明月光", "Repeated"]
    finds_the_repetition(screen)


def finds_the_repetition(screen: Screen) -> None:
    """In the verse a sentence comes twice: some head looks behind its first copy.

    Looked at is the end of "Let", which comes nowhere else: of what comes more often a head may read every copy.
    """
    tokens = [token["text"] for token in screen.tokens()]
    first, second = (i for i in range(1, len(tokens)) if tokens[i - 1] + tokens[i] == " Let")
    assert tokens[first + 1] == tokens[second + 1], "the same sentence comes again"
    weights = [screen.weight(second, first + 1, layer, head) for layer in range(4) for head in range(8)]
    assert max(weight for weight in weights if weight is not None) > COPY


def test_a_first_visit_in_chinese(open_screen: OpenScreen, fresh_server: str) -> None:
    screen = open_screen(fresh_server, "", lang="zh", viewport={"width": 390, "height": 844})
    until(lambda: screen.fragment("run") is not None, 20)
    screen.wait_for_map()
    assert screen.page.input_value("#text").startswith("床前明月光")
    assert "".join(token["text"] for token in screen.tokens()).count("床前明月光") == 2
    expect(screen.part("overview-title")).to_have_text("全部 32 个头")


def test_dates(waiting: Screen) -> None:
    waiting.choose_model("everyhead-dates")
    run_example(waiting, "二〇二一年三月五日")
    written = "".join(token["text"] for token in waiting.tokens("target"))
    assert "2021-03-05" in written
    expect(waiting.part("verdict")).to_contain_text("all pass")
