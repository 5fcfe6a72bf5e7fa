"""A conversation: whether its agent was told, as a line of notices."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .chromium import Tabs, needs_chromium
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]


def test_a_notice_is_unread_then_leased_then_told(person: Desk, tabs: Tabs) -> None:
    person.until(person.hand_off("true", "told in time", thread="talk"), "completed")
    page = tabs.enter(person.link("/threads/talk"))
    notice = page.locator(".notice", has_text="told in time")
    expect(notice).to_have_attribute("data-state", "unread")
    turn = person.post("/v1/threads/talk/turns")
    page.reload()
    expect(notice).to_have_attribute("data-state", "leased")

    person.post(f"/v1/turns/{turn['turn']}/ack", {"notices": [one["id"] for one in turn["notices"]]})
    person.until(person.hand_off("true", "comes next", thread="talk"), "completed")
    expect(notice).to_have_attribute("data-state", "told")
    expect(notice.locator(".notice-delivery")).to_contain_text("told ·")
    expect(page.locator(".notice", has_text="comes next")).to_have_attribute("data-state", "unread")


def test_a_reminder_is_in_the_line_and_leads_to_no_task(person: Desk, tabs: Tabs) -> None:
    person.post("/v1/threads/reminded/schedules", {"text": "look at the deploy", "delay": 0})
    page = tabs.enter(person.link("/threads/reminded"))
    notice = page.locator(".notice", has_text="look at the deploy")
    expect(notice).to_have_attribute("data-state", "unread")
    expect(notice).to_contain_text("alarm")
    expect(notice.locator("a")).to_have_count(0)


def test_a_parked_notice_says_why_and_is_delivered_again(person: Desk, tabs: Tabs) -> None:
    person.until(person.hand_off("true", "could not be told", thread="deaf"), "completed")
    for _ in range(5):
        turn = person.post("/v1/threads/deaf/turns")
        person.post(f"/v1/turns/{turn['turn']}/release", {"failed": True})
    page = tabs.enter(person.link("/threads/deaf"))
    notice = page.locator(".notice", has_text="could not be told")
    expect(notice).to_have_attribute("data-state", "parked")
    notice.get_by_role("button", name="Deliver again").click()

    expect(page.locator(".message")).to_contain_text("1 notice will be delivered again.")
    expect(notice).to_have_attribute("data-state", "unread")


def test_notices_are_moved_through_and_opened_by_keyboard(person: Desk, tabs: Tabs) -> None:
    for title in ("first of two", "second of two"):
        person.until(person.hand_off("true", title, thread="line"), "completed")
    page = tabs.enter(person.link("/threads/line"))
    expect(page.locator(".notice")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".notice[data-current]")).to_contain_text("second of two")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("second of two")
    page.go_back()

    expect(page.locator("h1")).to_have_text("line")


def test_the_reminder_is_shown_as_the_agent_sees_it(person: Desk, tabs: Tabs) -> None:
    person.hand_off("sleep 600", "still at work", thread="reminded")
    page = tabs.enter(person.link("/threads/reminded"))
    inspector = page.locator(".inspector")

    expect(inspector.locator("pre")).to_contain_text("still at work")
    expect(inspector.locator(".child", has_text="still at work")).to_be_visible()
