"""Acting on many tasks at once: by keyboard and by mouse, with the count named before anything is done."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .chromium import Tabs, needs_chromium
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]


def batch_of(person: Desk, batch: str) -> list[str]:
    return [
        person.hand_off("sleep 600", f"{batch} {n}", thread=f"{batch}-{n}", batch=batch) for n in (1, 2, 3)
    ]


def matching(person: Desk, tabs: Tabs, batch: str) -> Page:
    page = tabs.enter(person.link())
    page.goto(f"{person.info()['url']}/?q=batch:{batch}")
    expect(page.locator(".row")).to_have_count(3)
    return page


def test_a_selection_is_cancelled_by_keyboard_and_the_count_is_named(person: Desk, tabs: Tabs) -> None:
    ids = batch_of(person, "keys")
    page = matching(person, tabs, "keys")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("X")
    expect(page.locator(".bulk")).to_contain_text("2 selected")
    page.keyboard.press("c")
    dialog = page.locator("dialog")
    expect(dialog.locator("h2")).to_have_text("Cancel 2 tasks?")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    assert {person.task(id)["state"] for id in ids} == {"running"}

    page.keyboard.press("c")
    expect(dialog).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".message")).to_contain_text("Cancel: 2 tasks.")
    rows = page.locator(".row")
    expect(rows.filter(has_text="Cancelled")).to_have_count(2)
    expect(rows.filter(has_text="Running")).to_have_count(1)


def test_everything_that_matches_is_cancelled_by_mouse(person: Desk, tabs: Tabs) -> None:
    ids = batch_of(person, "mouse")
    page = matching(person, tabs, "mouse")
    page.locator(".row").first.locator("[data-select]").click()
    page.locator(".row").nth(1).locator("[data-select]").click(modifiers=["Shift"])
    expect(page.locator(".bulk b").first).to_have_text("2 selected")
    page.get_by_role("button", name="Select all 3 that match").click()
    page.locator(".bulk .button", has_text="Cancel all").click()
    expect(page.locator("dialog h2")).to_have_text("Cancel 3 tasks?")
    page.get_by_role("button", name="Cancel 3").click()

    expect(page.locator(".message")).to_contain_text("Cancel: 3 tasks.")
    for id in ids:
        person.until(id, "cancelled")
