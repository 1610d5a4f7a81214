"""The page over the real SmolLM2-135M: the whole path, and hard texts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenScreen
from tests.browser.screen import WINDOW_ROUNDING, Screen
from tests.browser.test_labels import label_of

HARD = (
    "the cat saw the cat",
    "1E1 2A 3E2",
    "2024-01 2024-02",
    "<s> <b>x</b> &lt;",
    "<img src=x onerror=alert(1)>",
    "$x^2$",
    "北京 👩‍💻 ok",
    "القط يجلس على السجادة",
)
LOAD_S = 180.0  # the first run may wait for the conversion of the weights

pytestmark = pytest.mark.slow


@pytest.fixture
def real(open_screen: OpenScreen, real_server: str) -> Screen:
    """The empty page over SmolLM2."""
    return open_screen(real_server)


def test_a_pasted_text_shows_all_heads_and_the_apis_weights(real: Screen) -> None:
    real.run("When Mary and John went to the store, John gave a drink to", LOAD_S)
    expect(real.part("overview-title")).to_have_text("All 270 heads")
    expect(real.part("verdict")).to_contain_text("all pass")
    expect(real.part("model-note")).to_contain_text("4-bit (Q4_1)")
    for layer, head in ((0, 0), (17, 5), (29, 8)):
        real.part("layer").select_option(str(layer))
        real.part("head").select_option(str(head))
        real.wait_for_map()
        real.point_at(10, 2)
        expect(real.part("readout").locator("data")).to_be_visible()
        assert real.read_weight() == pytest.approx(real.weight(10, 2, layer, head), rel=WINDOW_ROUNDING)


@pytest.mark.parametrize("text", HARD)
def test_hard_texts_are_labelled_verbatim(real: Screen, text: str) -> None:
    real.run(text, LOAD_S)
    labels = [label_of(token) for token in real.tokens()]
    assert real.row_labels() == labels
    assert real.col_labels() == labels
    assert real.page.locator(".strip img, .strip b, .strip script").count() == 0
