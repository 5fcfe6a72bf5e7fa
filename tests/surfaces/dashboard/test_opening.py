"""Getting in: a link works once, says what it may, and says when it may no longer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .chromium import Tabs, needs_chromium
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]


def test_open_prints_a_link_that_shows_the_tasks(person: Desk, tabs: Tabs) -> None:
    person.hand_off("sleep 600", "watch the door")
    link = person("open", "--print").out.strip()
    page = tabs.open(link)

    expect(page.locator(".row", has_text="watch the door")).to_be_visible()
    expect(page.locator(".live")).to_have_text("Live")
    assert "#" not in page.url  # the code is out of the address bar, and out of the history


def test_a_link_works_once_and_its_second_use_is_told_in_words(
    person: Desk, tabs: Tabs, their_tabs: Tabs
) -> None:
    link = person.link()
    expect(tabs.open(link).locator("mt-list-page")).to_be_visible()
    second = their_tabs.open(link)

    expect(second.get_by_role("heading", name="This page needs a key")).to_be_visible()
    expect(second.get_by_text(re.compile("used"))).to_be_visible()
    expect(second.locator(".command code")).to_have_text("meantime open")
    expect(second.locator(".row")).to_have_count(0)


def test_a_page_without_a_key_says_how_to_get_one(person: Desk, tabs: Tabs) -> None:
    page = tabs.open(person.info()["url"])

    expect(page.get_by_role("heading", name="This page needs a key")).to_be_visible()
    expect(page.locator(".command code")).to_have_text("meantime open")


def test_a_second_tab_gets_the_right_of_the_first(person: Desk, tabs: Tabs) -> None:
    expect(tabs.open(person.link()).locator("mt-list-page")).to_be_visible()

    expect(tabs.open(person.info()["url"]).locator("mt-list-page")).to_be_visible()


def test_a_link_to_a_task_or_a_conversation_opens_it(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("true", "say nothing")
    expect(tabs.open(person.link(f"/tasks/{task}")).locator("h1")).to_have_text("say nothing")

    expect(tabs.open(person.link("/threads/conv-1")).locator("h1")).to_have_text("conv-1")


def test_a_read_only_page_can_look_and_every_action_says_why_not(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("sleep 600", "cannot be stopped from here")
    page = tabs.open(person("open", "--read-only", "--print", task).out.strip())
    expect(page.locator("h1")).to_have_text("cannot be stopped from here")

    for name in ("Cancel", "Send", "Resume", "Fork"):
        button = page.locator(".task-actions > .button", has_text=name)
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_attribute("title", re.compile(r"\w+"))
    cancel = page.locator(".task-actions > .button", has_text="Cancel")
    expect(cancel).to_have_attribute("title", re.compile("may only look"))
    cancel.click(force=True)
    expect(page.locator(".message")).to_contain_text("may only look")
    assert person.task(task)["state"] == "running"


def test_a_token_that_is_revoked_is_told_and_the_page_stops(person: Desk, tabs: Tabs) -> None:
    page = tabs.open(person.link())
    expect(page.locator(".live")).to_have_text("Live")
    revoke_all(person)
    next_request(page)

    expect(page.get_by_role("alert")).to_contain_text("revoked")
    page.reload()
    expect(page.get_by_role("heading", name="This page needs a key")).to_be_visible()


def revoke_all(person: Desk) -> None:
    for token in person.get("/v1/tokens")["tokens"]:
        if token["state"] == "valid":
            person.post(f"/v1/tokens/{token['id']}/revoke")


def next_request(page: Page) -> None:
    """Whatever the page asks next is refused; its stream is cut by the revocation itself, or asks again."""
    page.keyboard.press("R")
