"""All text of tasks and agents is hostile: nothing of it is executed, and nothing of it breaks the layout."""

from __future__ import annotations

import shlex

import pytest
from playwright.sync_api import Page, expect

from .chromium import Tabs, needs_chromium
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]

IMAGE = '<img src=x onerror="window.hacked=1">'
SCRIPT = "</script><script>window.hacked=1</script>"
TEMPLATE = "${window.hacked=1} {{window.hacked=1}}"
BIDI = "\u202etxt.exe\u202c \u2066\u2067"
NO_SPACE = "w" * 150
EVIL = f"{IMAGE}{SCRIPT}{TEMPLATE}{BIDI}{NO_SPACE}"
LINKS = (
    "\x1b]8;;javascript:window.hacked=1\x1b\\harmless\x1b]8;;\x1b\\\n"
    "\x1b]8;;data:text/html,<script>window.hacked=1</script>\x1b\\harmless\x1b]8;;\x1b\\\n"
    "\x1b]8;;https://example.org/\x1b\\honest\x1b]8;;\x1b\\\n"
)
UNTOUCHED = """() => window.hacked === undefined
  && !document.querySelector("img, iframe, object, body script, a[href^='javascript'], a[href^='data']")
  && document.documentElement.scrollWidth <= innerWidth"""


@pytest.fixture(scope="module")
def evil(person: Desk) -> dict[str, str]:
    """Tasks of which every text is hostile, by name."""
    folder = person.folder
    (folder / "said").write_text(
        f"{EVIL}\n{LINKS}\x1b[31;9999m\x1b]0;title\x07{'x' * 1_000_000}\nlast words\n"
    )
    tasks = {
        "command": person.hand_off(f"cat {shlex.quote(str(folder / 'said'))}", EVIL),
        "failure": person.hand_off(f"printf %s {shlex.quote(EVIL)} >&2; exit 1", EVIL),
        "agent": person.ask_agent("look", EVIL, EVIL),
        "question": person.ask_agent("repeat", EVIL, EVIL),
    }
    person.until(tasks["command"], "completed")
    person.until(tasks["failure"], "failed")
    person.until(tasks["agent"], "completed", "failed")
    person.until(tasks["question"], "waiting")
    return tasks


def untouched(page: Page) -> None:
    page.wait_for_function(UNTOUCHED)
    assert page.evaluate("() => window.hacked") is None


def test_the_list_shows_hostile_titles_as_text(person: Desk, evil: dict[str, str], tabs: Tabs) -> None:
    page = tabs.enter(person.link())
    expect(page.locator(".row")).to_have_count(len(evil))
    expect(page.locator(".row-title a").first).to_contain_text(IMAGE)
    heights = page.locator(".row").evaluate_all("rows => rows.map(row => row.offsetHeight)")
    assert set(heights) == {32}
    untouched(page)
    page.keyboard.press("/")
    page.keyboard.type(IMAGE)
    page.keyboard.press("Enter")
    untouched(page)


@pytest.mark.parametrize("tab", ["overview", "timeline", "messages", "runs", "raw"])
def test_a_task_shows_hostile_texts_as_text(person: Desk, evil: dict[str, str], tabs: Tabs, tab: str) -> None:
    page = tabs.enter(person.link())
    for task in evil.values():
        page.goto(f"{person.info()['url']}/?task={task}&tab={tab}")
        expect(page.locator("h1")).to_contain_text(IMAGE)
        expect(page.locator(".task-tab")).not_to_be_empty()
        untouched(page)


def test_a_log_shows_escapes_as_text_and_only_honest_links(
    person: Desk, evil: dict[str, str], tabs: Tabs
) -> None:
    page = tabs.enter(person.link())
    page.goto(f"{person.info()['url']}/?task={evil['command']}&tab=log")
    expect(page.locator(".log-line").first).to_contain_text(IMAGE)
    expect(page.locator(".log-line", has_text="last words")).to_be_visible()
    links = page.locator(".log-line a")
    expect(links).to_have_count(1)
    expect(links).to_have_attribute("href", "https://example.org/")
    expect(links).to_have_attribute("title", "https://example.org/")
    untouched(page)
    page.keyboard.press("w")  # a megabyte without a space, wrapped
    expect(page.locator(".log-scroll[data-wrap]")).to_be_visible()
    page.keyboard.press("g")
    expect(page.locator(".log-line").first).to_contain_text(IMAGE)
    untouched(page)


def test_a_question_shows_hostile_text_as_text(person: Desk, evil: dict[str, str], tabs: Tabs) -> None:
    page = tabs.enter(person.link())
    page.goto(f"{person.info()['url']}/?answer={evil['question']}")
    expect(page.locator("blockquote")).to_contain_text(IMAGE)
    expect(page.locator(".choice").first).to_contain_text(IMAGE)
    untouched(page)


def test_a_conversation_shows_hostile_titles_as_text(person: Desk, evil: dict[str, str], tabs: Tabs) -> None:
    page = tabs.enter(person.link("/threads/conv-1"))
    expect(page.locator(".notice").first).to_contain_text(IMAGE)
    untouched(page)


@pytest.mark.parametrize(
    "query", [f"?task={IMAGE}", f"?thread={IMAGE}", f"?answer={IMAGE}", f"?q={IMAGE}", "?q=%"]
)
def test_hostile_addresses_are_answered_in_words(
    person: Desk, evil: dict[str, str], tabs: Tabs, query: str
) -> None:
    page = tabs.enter(person.link())
    page.goto(f"{person.info()['url']}/{query.replace('EVIL', IMAGE)}")
    expect(page.locator("main")).not_to_be_empty()
    expect(page.locator(".live")).to_have_text("Live")
    untouched(page)
