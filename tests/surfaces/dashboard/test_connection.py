"""The connection: a daemon that dies and comes back, and many tabs that share one stream."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, Route, expect
from tests.waiting import until

from .chromium import Tabs, needs_chromium
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]


@pytest.fixture
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Somebody whose daemon comes back at the same address."""
    one = Desk(tmp_path_factory.mktemp("home"), port=free_port())
    one.up()
    yield one
    one.leave()


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]


def test_a_killed_daemon_is_told_with_the_time_and_the_page_is_live_again_by_itself(
    mortal: Desk, tabs: Tabs
) -> None:
    mortal.hand_off("sleep 600", "goes on meanwhile")
    mortal.until(mortal.hand_off("true", "ended before"), "completed")
    page = tabs.open(mortal.link())
    expect(page.locator(".row")).to_have_count(2)
    mortal.kill()

    banner = page.locator(".banner")
    expect(banner).to_contain_text(re.compile(r"Disconnected since \d\d:\d\d:\d\d"))
    expect(page.locator(".live")).to_have_text("Disconnected")
    running = page.locator(".row", has_text="goes on meanwhile")
    expect(running.get_by_role("img", name="clock stopped")).to_be_visible()
    clock = running.locator(".row-time").inner_text()
    waits = page.locator(".banner [aria-live=off]")
    until(lambda: re.search(r"retrying in [2-9]s", waits.inner_text()), "seconds have gone by")
    assert running.locator(".row-time").inner_text() == clock
    page.locator(".row-title a", has_text="goes on meanwhile").click()
    expect(page.locator(".page-note")).to_contain_text(
        re.compile("does not answer|comes with the connection")
    )
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)  # under a pointer the order of the list would be held

    mortal.up()
    expect(page.locator(".live")).to_have_text("Live")
    expect(banner).to_have_count(0)
    mortal.until(mortal.hand_off("true", "came afterwards"), "completed")
    expect(page.locator(".row", has_text="came afterwards")).to_have_count(1)
    expect(page.locator(".row")).to_have_count(3)
    expect(running.locator(".state")).to_contain_text("Running")


def test_a_view_whose_file_did_not_come_is_asked_for_again_while_the_page_is_live(
    person: Desk, tabs: Tabs
) -> None:
    task = person.hand_off("true", "look at me")
    page = tabs.enter(person.link())
    refused: list[str] = []

    def refuse(route: Route) -> None:
        refused.append(route.request.url)
        route.abort() if len(refused) <= 4 else route.continue_()

    page.route("**/task-page.js*", refuse)
    page.goto(f"{person.info()['url']}/?task={task}")
    expect(page.locator("main [role=status]")).to_contain_text("This view is being loaded")
    expect(page.locator("h1")).to_have_text("look at me")
    assert len(refused) > 4


def test_retry_connects_at_once(mortal: Desk, tabs: Tabs) -> None:
    page = tabs.open(mortal.link())
    expect(page.locator(".live")).to_have_text("Live")
    mortal.kill()
    expect(page.locator(".banner")).to_be_visible()
    mortal.up()
    page.keyboard.press("R")

    expect(page.locator(".live")).to_have_text("Live")


class Streams:
    """The event streams that the tabs of a browser have open."""

    def __init__(self, tabs: Tabs) -> None:
        self._open: set[Request] = set()
        tabs.window.on("request", self._begun)
        tabs.window.on("requestfinished", self._ended)
        tabs.window.on("requestfailed", self._ended)

    def _begun(self, request: Request) -> None:
        if "/v1/events" in request.url:
            self._open.add(request)

    def _ended(self, request: Request) -> None:
        self._open.discard(request)

    @property
    def owners(self) -> list[Page]:
        pages = [request.frame.page for request in self._open]
        return [page for page in pages if not page.is_closed()]


@pytest.mark.parametrize("number", [3, pytest.param(12, marks=pytest.mark.browsers)])
def test_tabs_share_one_stream_and_another_takes_over_when_its_tab_is_closed(
    person: Desk, tabs: Tabs, number: int
) -> None:
    streams = Streams(tabs)
    pages = [tabs.open(person.link())]
    expect(pages[0].locator(".live")).to_have_text("Live")
    pages += [tabs.open(person.info()["url"]) for _ in range(number - 1)]
    person.hand_off("sleep 600", f"seen by all {number}")
    for page in pages:
        expect(page.locator(".row", has_text=f"seen by all {number}")).to_be_visible()
    assert streams.owners == [pages[0]]

    pages.pop(0).close()
    person.hand_off("sleep 600", f"seen by the rest of {number}")
    for page in pages:
        expect(page.locator(".row", has_text=f"seen by the rest of {number}")).to_be_visible()
        expect(page.locator(".live")).to_have_text("Live")
    assert len(streams.owners) == 1


def test_a_paused_page_stands_still_and_then_shows_what_changed(person: Desk, tabs: Tabs) -> None:
    page = tabs.open(person.link())
    expect(page.locator(".live")).to_have_text("Live")
    page.keyboard.press(".")
    expect(page.locator(".live")).to_have_text("Paused")
    person.hand_off("true", "while it stood still")
    expect(page.locator(".pause")).to_contain_text("changed")
    expect(page.locator(".row", has_text="while it stood still")).to_have_count(0)

    page.keyboard.press(".")
    expect(page.locator(".row", has_text="while it stood still")).to_have_count(1)
