"""The keys around a dialog: its own while it is open, the page's from the moment in which it is closed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .chromium import Tabs, needs_chromium
from .desk import Desk
from .firefox import firefox, needs_firefox

pytestmark = pytest.mark.browsers

ROUNDS = (
    10  # the browser takes a moment to find that a closed dialog has no focus: now and then a key is quicker
)
ESCAPE = "\ue00c"  # as WebDriver writes it
DIALOGS = (("c", "dialog textarea"), ("?", "dialog .keys-help"))


@pytest.fixture(scope="module")
def task(person: Desk) -> str:
    return person.hand_off("sleep 600", "watch the door")


@needs_chromium
def test_a_key_directly_after_a_dialog_is_the_pages(person: Desk, task: str, tabs: Tabs) -> None:
    page = tabs.enter(person.link(f"/tasks/{task}"))
    expect(page.locator("h1")).to_have_text("watch the door")
    page.keyboard.press("?")
    for _ in range(ROUNDS):
        for key, shown in DIALOGS:
            expect(page.locator("dialog")).to_be_visible()
            page.keyboard.press("Escape")
            page.keyboard.press(key)
            expect(page.locator(shown)).to_be_visible()


@needs_chromium
def test_the_button_of_a_dialog_has_the_focus_again(person: Desk, task: str, tabs: Tabs) -> None:
    page = tabs.enter(person.link(f"/tasks/{task}"))
    button = page.locator(".task-actions .button", has_text="Cancel")
    button.click()
    expect(page.locator("dialog textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()


@needs_firefox
def test_firefox_gives_a_key_after_a_dialog_to_the_page(person: Desk, task: str) -> None:
    with firefox() as one:
        one.go(person.link(f"/tasks/{task}"))
        one.until("document.querySelector('h1')?.textContent == 'watch the door'")
        one.until("document.querySelector('.live')?.textContent == 'Live'")
        one.press("?")
        for _ in range(ROUNDS):
            for key, shown in DIALOGS:
                one.until("document.querySelector('dialog[open]') !== null")
                one.press(ESCAPE)
                one.press(key)
                one.until(
                    f"document.querySelector('dialog[open]') && document.querySelector('{shown}') !== null"
                )
        assert one.complaints == []
