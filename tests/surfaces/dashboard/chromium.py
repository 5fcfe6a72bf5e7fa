"""Debian's Chromium, driven by Playwright, with nothing of the network but this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from tests.waiting import LIMIT

PROGRAM = shutil.which("chromium") or "/usr/bin/chromium"
AXE = Path(__file__).parents[3] / ".browsers/node_modules/axe-core/axe.min.js"
WAIT = 1_000 * LIMIT  # milliseconds
ALONE = [
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic", "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=127.0.0.1;localhost",
    "--no-sandbox",  # the suite may be run by root, for whom Chromium has no sandbox
]  # fmt: skip

needs_chromium = pytest.mark.skipif(
    not (Path(PROGRAM).exists() and AXE.exists()) and os.environ.get("CI") != "true",
    reason="`make browsers` installs Chromium and axe-core",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=ALONE)
        try:
            yield browser
        finally:
            browser.close()


class Console:
    """Everything that a page complains of: errors, refusals by its own policies, exceptions."""

    def __init__(self, page: Page) -> None:
        self.complaints: list[str] = []
        page.on("console", self._message)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")


class Tabs:
    """Tabs of one browser, and what they complain of."""

    def __init__(self, window: BrowserContext) -> None:
        self.window = window
        self._consoles: list[Console] = []

    def open(self, url: str) -> Page:
        page = self.window.new_page()
        self._consoles.append(Console(page))
        page.goto(url)
        return page

    def enter(self, link: str) -> Page:
        """Opens a link, and waits until the page is live."""
        page = self.open(link)
        expect(page.locator(".live")).to_have_text("Live", timeout=WAIT)
        return page

    @property
    def complaints(self) -> list[str]:
        """Chromium itself writes a line for each answer that is an error: those the page tells in words."""
        every = [line for console in self._consoles for line in console.complaints]
        return [line for line in every if not line.startswith("error: Failed to load resource")]


AXE_RUN = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  const place = (node) => `${node.target.join(" ")} (${node.failureSummary})`;
  return found.violations.map((rule) => `${rule.id}: ${rule.nodes.slice(0, 3).map(place).join("; ")}`);
}"""


def violations(page: Page) -> list[str]:
    """The rules of axe-core that the page breaks now, each with the first elements that break it."""
    page.evaluate(AXE.read_text())
    found = page.evaluate(AXE_RUN)
    assert isinstance(found, list)
    return [str(one) for one in found]
