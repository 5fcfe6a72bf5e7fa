"""No rule of axe-core is broken: on every view, in light and dark, on wide and narrow screens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from .chromium import Tabs, needs_chromium, violations
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]

# Each view: its address, and an element that is there when it is shown.
VIEWS = {
    "list": ("/", ".row"),
    "search": ("/?q=status:failed", ".row"),
    "groups": ("/?group=conversation", ".group-button"),
    "nothing found": ("/?q=nowhere", ".list-note"),
    "overview": ("/?task={failed}", ".facts"),
    "timeline": ("/?task={agent}&tab=timeline", "mt-timeline *"),
    "log": ("/?task={failed}&tab=log", ".log-line"),
    "messages": ("/?task={agent}&tab=messages", "mt-messages *"),
    "runs": ("/?task={failed}&tab=runs", ".table"),
    "raw": ("/?task={failed}&tab=raw", "pre"),
    "question": ("/?answer={choice}", ".choice"),
    "permission": ("/?answer={permission}", ".ask-text"),
    "conversation": ("/?thread=conv-1", ".notice"),
    "no such task": ("/?task=t_0000000000", ".page-note h1"),
}
COLOURS = r"printf '\033[31mred \033[42mgreen\033[0m\n'; exit 3"
CORE = ("list", "overview")


@pytest.fixture(scope="module")
def tasks(person: Desk) -> dict[str, str]:
    found = {
        "failed": person.hand_off(COLOURS, "break a leg", batch="night"),
        "running": person.hand_off("sleep 600", "watch the door"),
        "agent": person.ask_agent("look", "look", "look around"),
        "choice": person.ask_agent("paint", title="choose a colour"),
        "permission": person.ask_agent("push", title="push it"),
    }
    person.until(found["failed"], "failed")
    person.until(found["agent"], "completed")
    person.until(found["choice"], "waiting")
    person.until(found["permission"], "waiting")
    person.tell("conv-1")
    return found


def looks(page: Page) -> Iterator[str]:
    """The page in every look, one after the other."""
    for width, height in ((1440, 900), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            yield f"{scheme}, {width} px"


@pytest.mark.parametrize(
    "view", [pytest.param(name, marks=() if name in CORE else pytest.mark.browsers) for name in VIEWS]
)
def test_no_rule_is_broken(person: Desk, tasks: dict[str, str], tabs: Tabs, view: str) -> None:
    address, shown = VIEWS[view]
    page = tabs.enter(person.link())
    page.goto(person.info()["url"] + address.format(**tasks))
    expect(page.locator(shown).first).to_be_visible()

    for look in looks(page):
        expect(page.locator(shown).first).to_be_visible()
        assert violations(page) == [], look
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), look


def test_no_rule_is_broken_in_dialogs_and_menus(person: Desk, tasks: dict[str, str], tabs: Tabs) -> None:
    page = tabs.enter(person.link(f"/tasks/{tasks['running']}"))
    expect(page.locator("h1")).to_have_text("watch the door")
    for look in looks(page):
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_be_visible()
        assert violations(page) == [], look
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).not_to_be_visible()  # keys of the page rest until it is closed
        page.keyboard.press("c")
        expect(page.locator("dialog textarea")).to_be_visible()
        assert violations(page) == [], look
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).not_to_be_visible()


def test_no_rule_is_broken_on_the_first_page_and_without_a_key(loner: Desk, tabs: Tabs) -> None:
    page = tabs.open(loner.info()["url"])
    expect(page.get_by_role("heading", name="This page needs a key")).to_be_visible()
    for look in looks(page):
        assert violations(page) == [], look
    page = tabs.enter(loner.link())
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    for look in looks(page):
        assert violations(page) == [], look


def test_every_view_is_shown_in_forced_colours(person: Desk, tasks: dict[str, str], tabs: Tabs) -> None:
    page = tabs.enter(person.link())
    page.emulate_media(forced_colors="active")
    expect(page.locator(".row").first).to_be_visible()
    assert violations(page) == []
