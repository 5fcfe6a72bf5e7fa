"""Questions: a choice, words, a permission; and two people who answer the same one."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .chromium import Tabs, needs_chromium
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]


def asked(person: Desk, agent: str, title: str) -> str:
    task = person.ask_agent(agent, title=title)
    person.until(task, "waiting")
    return task


def question(person: Desk, tabs: Tabs, task: str) -> Page:
    page = tabs.enter(person.link(f"/tasks/{task}"))
    expect(page.locator(".task-title h1")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_role("heading", level=1)).to_have_text("It asks you")
    return page


def test_a_choice_with_words_is_sent_by_keyboard_alone(person: Desk, tabs: Tabs) -> None:
    task = asked(person, "paint", "paint by keys")
    page = question(person, tabs, task)
    expect(page.locator(".choice[data-chosen]")).to_have_count(0)  # nothing is chosen beforehand
    page.keyboard.press("2")
    expect(page.locator(".choice[data-chosen]")).to_contain_text("blue")
    page.keyboard.press("i")
    page.keyboard.type("like the sky")
    page.keyboard.press("Control+Enter")

    expect(page.locator(".message")).to_contain_text("Answered: blue.")
    assert person.until(task, "completed")["result"] == "Painted blue. like the sky"


def test_a_plain_choice_shows_its_prompt_and_no_scope_of_permissions(person: Desk, tabs: Tabs) -> None:
    task = person.ask_agent("paint", "Paint the fence, and nothing else.", "paint a fence")
    person.until(task, "waiting")
    page = question(person, tabs, task)
    beside = page.locator(".inspector")
    expect(beside).to_contain_text("Prompt of the task")
    expect(beside).to_contain_text("Paint the fence, and nothing else.")
    expect(beside).not_to_contain_text("How far it reaches")
    expect(page.locator(".choice .second").first).to_have_text("")
    person.post(f"/v1/tasks/{task}/answer", {"answer": "red"})


def test_a_choice_is_sent_by_mouse(person: Desk, tabs: Tabs) -> None:
    task = asked(person, "paint", "paint by mouse")
    page = question(person, tabs, task)
    page.locator(".choice", has_text="red").click()
    page.locator(".dialog-buttons .button").first.click()

    expect(page.locator(".message")).to_contain_text("Answered: red.")
    assert person.until(task, "completed")["result"].strip() == "Painted red."


def test_free_text_is_an_answer_and_nothing_is_sent_without_it(person: Desk, tabs: Tabs) -> None:
    task = asked(person, "christen", "give it a name")
    page = question(person, tabs, task)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".message")).to_contain_text("Write an answer first.")
    page.locator("textarea").fill("Ada")
    page.keyboard.press("Control+Enter")

    assert person.until(task, "completed")["result"] == "Its name is Ada."


def test_a_permission_shows_its_whole_command_and_can_be_refused(person: Desk, tabs: Tabs) -> None:
    task = asked(person, "push", "push it")
    page = tabs.enter(person.link(f"/tasks/{task}"))
    page.locator(".task-actions .button", has_text="Answer").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Allow this?")
    expect(page.locator(".ask-text")).to_have_text("git push origin main")
    expect(page.locator(".ask-facts")).to_contain_text("/srv/app")
    expect(page.locator(".inspector .rule").first).to_have_text('[agents.push]\notherwise = "ask"')
    expect(page.locator(".inspector")).to_contain_text('allow = ["shell"]')
    expect(page.locator("main .ask-time")).to_contain_text("then rejected")
    page.locator(".choice", has_text="Reject").or_(page.locator(".choice", has_text="Deny")).first.click()
    page.keyboard.press("Control+Enter")

    assert person.until(task, "completed")["result"] == "Not pushed."


def test_of_two_people_one_answers_and_the_other_is_told_so(
    person: Desk, tabs: Tabs, their_tabs: Tabs
) -> None:
    task = asked(person, "paint", "both want to paint")
    ours, theirs = question(person, tabs, task), question(person, their_tabs, task)
    ours.keyboard.press("1")
    theirs.keyboard.press("2")
    ours.keyboard.press("Control+Enter")
    theirs.keyboard.press("Control+Enter")
    expect(ours.locator(".message")).to_contain_text("Answered: red.")

    expect(theirs.locator(".ask-note")).to_contain_text(
        re.compile("Somebody else was first|answered elsewhere")
    )
    expect(theirs.locator(".message", has_text="Answered")).to_have_count(0)
    assert person.until(task, "completed")["result"].strip() == "Painted red."


def test_an_open_question_that_somebody_answers_elsewhere_says_so(person: Desk, tabs: Tabs) -> None:
    task = asked(person, "paint", "answered in a terminal")
    page = question(person, tabs, task)
    page.keyboard.press("2")
    assert person("answer", task, "red").code == 0

    expect(page.locator(".ask-note")).to_contain_text("answered")


def test_a_link_for_one_question_can_answer_it_and_nothing_else(person: Desk, tabs: Tabs) -> None:
    task = asked(person, "paint", "for a colleague")
    other = person.hand_off("sleep 600", "not for a colleague")
    page = tabs.open(person("open", task, "--question", "--print").out.strip())
    expect(page.locator(".choice")).to_have_count(2)
    page.goto(f"{person.info()['url']}/?task={other}")
    expect(page.locator("mt-app")).not_to_contain_text("not for a colleague")
    page.goto(person.info()["url"])
    page.locator(".choice", has_text="red").click()
    page.keyboard.press("Control+Enter")

    assert person.until(task, "completed")["result"].strip() == "Painted red."
