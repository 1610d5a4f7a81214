"""A server in a process of its own, a headless Chromium, and a page that remembers what must not happen.

Servers come in two kinds: over the fake model (quick, for the page's behaviour) and over the real one.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Playwright,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.browser.screen import WAITING, Screen

ROOT = Path(__file__).parents[2]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CONVERTED = ROOT / "build" / "test-data" / "models"
START_S = 60.0
PATIENCE_MS = 20_000  # a busy machine takes several seconds for what takes one
expect.set_options(timeout=PATIENCE_MS)
WIDE: ViewportSize = {"width": 1440, "height": 900}
OpenScreen = Callable[..., Screen]


def deep(*values: object) -> object:
    """A case for `make test-deep`, of a test that has another one in `make test`."""
    return pytest.param(*values, marks=pytest.mark.deep)


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(arguments: list[str], port: int, environment: dict[str, str], log: Path) -> Iterator[str]:
    """A server's address while it runs; its output is in the failure when it does not answer."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_it_answers(process, f"http://127.0.0.1:{port}/healthz", log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until_it_answers(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(address, timeout=2):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    pytest.fail(f"the server did not answer:\n{log.read_text(errors='replace')}")


def chromium() -> str:
    """The Chromium in CHROMIUM, else the system's."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail("no Chromium found: install it, or set CHROMIUM to its path")
    return path


@pytest.fixture(scope="session")
def playing() -> Iterator[Playwright]:
    """Playwright, started once."""
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playing: Playwright) -> Iterator[Browser]:
    """Headless Chromium without a profile, for the tests that need one of their own."""
    launched = playing.chromium.launch(executable_path=chromium(), headless=True, args=list(FLAGS))
    yield launched
    launched.close()


@pytest.fixture(scope="session")
def fake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service over the fake model of 30 layers × 9 heads."""
    folder = tmp_path_factory.mktemp("fake")
    port = free_port()
    arguments = ["tests.fake_server", "--port", str(port), "--delay", "0.002", "--data-dir", str(folder / "data")]
    with serving(arguments, port, {}, folder / "log") as address:
        yield address


@pytest.fixture(scope="session")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The fake again, slow, and with room for 64 tokens only."""
    folder = tmp_path_factory.mktemp("small")
    port = free_port()
    arguments = ["tests.fake_server", "--port", str(port), "--delay", "0.05", "--max-tokens", "64"]
    with serving([*arguments, "--data-dir", str(folder / "data")], port, {}, folder / "log") as address:
        yield address


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service as it is started by hand, with SmolLM2-135M, which the parity tests' folder holds converted."""
    folder = tmp_path_factory.mktemp("real")
    CONVERTED.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    data.mkdir(mode=0o700)
    (data / "models").symlink_to(CONVERTED, target_is_directory=True)
    port = free_port()
    environment = {
        "PORT": str(port),
        "EVERYHEAD_DATA_DIR": str(data),
        "EVERYHEAD_OFFLINE": "true",
        "EVERYHEAD_DEFAULT_MODEL": "smollm2-135m",
        "OMP_NUM_THREADS": str(os.cpu_count()),  # 4,096 tokens take minutes on one
    }
    with serving(["app"], port, environment, folder / "log") as address:
        yield address


class Witness:
    """What a page did that it must never do. `allow(part)` takes back one expected kind of console message."""

    def __init__(self, page: Page, base: str) -> None:
        self.wrongs: list[str] = []
        self.requests: list[str] = []
        self._allowed: list[str] = []
        self._base = base
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)
        page.on("dialog", self._dialog)

    def allow(self, part: str) -> None:
        """Messages that hold this text are expected by the test."""
        self._allowed.append(part)

    def check(self) -> None:
        """Fails on any console error, uncaught error, dialog or request to another host."""
        wrongs = [wrong for wrong in self.wrongs if not any(part in wrong for part in self._allowed)]
        assert wrongs == []

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrongs.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.wrongs.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _error(self, error: Error) -> None:
        self.wrongs.append(f"uncaught: {error.message}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((self._base, "data:", "blob:")):
            self.wrongs.append(f"request to another host: {request.url}")


CLIPBOARD = ["clipboard-read", "clipboard-write"]
OF_A_PAGE = {"viewport", "color_scheme"}  # options that a page of the usual profile can have to itself


@pytest.fixture(scope="session")
def usual(playing: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """The profile that most tests share, on disk: so Chromium keeps the compiled Plotly, most of a page's opening."""
    folder = tmp_path_factory.mktemp("profile")
    context = playing.chromium.launch_persistent_context(
        folder, executable_path=chromium(), headless=True, args=list(FLAGS), viewport=WIDE, permissions=CLIPBOARD
    )
    yield context
    context.close()


@pytest.fixture
def open_screen(browser: Browser, usual: BrowserContext) -> Iterator[OpenScreen]:
    """Opens pages; each is watched, and what it did wrong fails the test when it ends.

    `alone`, or an option that a page cannot have to itself, gives it a profile of its own
    """
    opened: list[Screen] = []
    own: list[BrowserContext] = []

    def open_one(
        base: str, fragment: str = WAITING, *, lang: str = "en", alone: bool = False, **options: Any
    ) -> Screen:
        if alone or set(options) - OF_A_PAGE:
            context = browser.new_context(**{"viewport": WIDE, "permissions": CLIPBOARD, **options})
            own.append(context)
            page = context.new_page()
        else:
            page = usual.new_page()
            page.set_viewport_size(options.get("viewport", WIDE))
            page.emulate_media(color_scheme=options.get("color_scheme"))
        page.set_default_timeout(PATIENCE_MS)
        screen = Screen(page, base, Witness(page, base))
        opened.append(screen)
        screen.goto(fragment, lang)
        return screen

    yield open_one
    # nothing stays in the shared profile but its cache: each test begins as a first visit
    for screen in opened:
        if screen.page.url.startswith(screen.base):
            screen.page.evaluate("() => localStorage.clear()")
        screen.page.close()
    usual.clear_cookies()
    for context in own:
        context.close()
    for screen in opened:
        screen.witness.check()


@pytest.fixture
def screen(open_screen: OpenScreen, fake_server: str) -> Screen:
    """The empty page over the fake model."""
    return open_screen(fake_server)


@pytest.fixture
def shown(screen: Screen) -> Screen:
    """The page with a run of a short text."""
    screen.run("When Mary and John went to the store, John gave a drink to")
    return screen
