"""A real Chromium on the real server: the Debian package, driven by Playwright."""

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.explorer_fixtures import ExplorerServer

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Every task of the main thread that took 50 ms or more, of whichever frame.
_WATCH = """
window.longTasks = [];
new PerformanceObserver(list => {
  for (const task of list.getEntries()) window.longTasks.push(Math.round(task.duration));
}).observe({type: "longtask", buffered: true});
"""

# The machine may have other work.
expect.set_options(timeout=30_000)

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for a file: its thread has a running event loop as long as it is there, which other tests cannot have."""
    chromium = shutil.which("chromium")
    assert chromium, "These tests need Chromium: run `infra/setup.sh test`."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, explorer_server: ExplorerServer) -> Iterator[Open]:
    """Opens a page of the server as a user, or as nobody; what it fetches elsewhere, and its errors, fail the test."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def open_as(user: str | None, path: str, *, scheme: str = "light") -> Page:
        context = browser.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 860})
        contexts.append(context)
        if user is not None:
            with explorer_server.client(user) as client:
                token = client.headers["Authorization"].removeprefix("Bearer ")
            context.add_cookies([{"name": "_token", "value": token, "url": explorer_server.url}])
        context.add_init_script(_WATCH)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda said: "Content Security Policy" not in said.text or faults.append(said.text))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                request.url.startswith((explorer_server.url, "data:", "blob:"))
                or faults.append(f"fetched {request.url}")
            ),
        )
        page.goto(f"{explorer_server.url}{path}")
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert not faults
