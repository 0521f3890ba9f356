"""A real browser for the tests of the dashboard: the machine's Chromium, driven by Playwright.

`make test` passes --require-browser where there is one: then a missing one is a failure. Without it, it is a skip.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
# No sandbox, because containers have none; nothing that calls home.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# A bound that only a failure reaches: on a busy machine the first answer of a language model waits for a vendor's library, and a page for its turn.
PATIENCE_MS = 120_000
HOW = "install one (Debian: `apt-get install chromium fonts-noto-cjk`)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--require-browser`."""
    parser.addoption("--require-browser", action="store_true", help="the tests in a browser must run: a missing one is a failure")


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The browser that the tests of a module share; each opens a context of its own, which has no cookies yet.

    While Playwright is open, an event loop runs in this thread, which tests of other modules must not find.
    """
    if executable() is None:
        if request.config.getoption("--require-browser"):
            pytest.fail(f"the tests in a browser must run, but there is no {', '.join(NAMES)}: {HOW}")
        pytest.skip(f"there is no {', '.join(NAMES)}: {HOW}")
    with opened() as browser:
        yield browser


def executable() -> str | None:
    """The machine's browser."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def opened() -> Iterator[Any]:
    """The browser, running. Its contexts wait for `PATIENCE_MS`."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  it takes a while, and most tests want no browser

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        new_context = browser.new_context

        def patient_context(**options: Any) -> Any:
            context = new_context(**options)
            context.set_default_timeout(PATIENCE_MS)
            return context

        browser.new_context = patient_context  # type: ignore[method-assign]
        yield browser
        browser.close()
