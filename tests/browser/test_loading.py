"""What is fetched, when, and how often: static files once, Plotly after the overview, nothing from elsewhere."""

from __future__ import annotations

from urllib.parse import urlsplit

from tests.browser.conftest import OpenScreen
from tests.browser.screen import Screen


def test_plotly_is_asked_for_after_the_overview_is_drawn(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server, alone=True)
    assert not any("plotly.min.js" in url for url in screen.witness.requests)
    screen.run("When Mary went to the store")
    paths = [urlsplit(url).path for url in screen.witness.requests]
    overview = next(at for at, path in enumerate(paths) if path.endswith("/overview"))
    plotly = next(at for at, path in enumerate(paths) if path.endswith("plotly.min.js"))
    assert overview < plotly
    marks = screen.js(
        """() => {
            const timing = (part) => performance.getEntriesByType('resource').find((one) => one.name.includes(part));
            return [timing('/overview').responseEnd, timing('plotly.min.js').startTime];
        }"""
    )
    assert marks[0] <= marks[1]


def test_static_files_come_from_the_cache_the_second_time(open_screen: OpenScreen, fake_server: str) -> None:
    screen = open_screen(fake_server, alone=True)
    screen.run("When Mary went to the store")
    screen.page.reload()
    screen.wait_for_map()
    fetched = screen.js(
        """() => performance.getEntriesByType('resource')
            .filter((one) => new URL(one.name).pathname.startsWith('/static/'))
            .map((one) => [one.name, one.transferSize, one.encodedBodySize])"""
    )
    assert len(fetched) > 10
    assert [name for name, transferred, _body in fetched if transferred > 0] == [], "not even asked about"


def test_the_first_picture_needs_few_bytes(screen: Screen) -> None:
    screen.run("lamp " * 511)
    sizes = screen.js(
        """() => performance.getEntriesByType('resource')
            .filter((one) => /\\/api\\/runs\\/[^/]+(\\/overview|\\/heads)?(\\?|$)/.test(one.name))
            .map((one) => one.transferSize)"""
    )
    assert 0 < sum(sizes) <= 600_000


def test_zooming_and_walking_ask_no_window_twice(shown: Screen) -> None:
    shown.part("layer").select_option("3")
    shown.wait_for_map()
    shown.part("layer").select_option("0")
    shown.wait_for_map()
    windows = [url for url in shown.witness.requests if "/weights" in url]
    assert len(windows) == len(set(windows))
