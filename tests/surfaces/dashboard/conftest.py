"""The page in real browsers, against a real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from .chromium import WAIT, Tabs, chromium
from .desk import Desk

HERE = Path(__file__).parent
expect.set_options(timeout=WAIT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One browser for all: these tests are run by one process, one after the other."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browsers"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For the tests of one file: while Playwright is open an event loop counts as running in this thread, and
    tests of other files, which have loops of their own, fail."""
    with chromium() as one:
        yield one


@pytest.fixture
def window(browser: Browser) -> Iterator[BrowserContext]:
    """A person's browser: its tabs share what tabs share."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(WAIT)
    yield context
    context.close()


@pytest.fixture
def tabs(window: BrowserContext) -> Iterator[Tabs]:
    """Tabs of that browser. At the end of every test none of them may have complained."""
    one = Tabs(window)
    yield one
    assert one.complaints == []


@pytest.fixture
def their_tabs(browser: Browser) -> Iterator[Tabs]:
    """The browser of somebody else."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(WAIT)
    one = Tabs(context)
    yield one
    context.close()
    assert one.complaints == []


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Somebody with a daemon of their own, for all tests of a file."""
    one = Desk(tmp_path_factory.mktemp("home"))
    one.up()
    yield one
    one.leave()


@pytest.fixture
def loner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The same for one test alone, which may harm the daemon."""
    one = Desk(tmp_path_factory.mktemp("home"))
    one.up()
    yield one
    one.leave()
