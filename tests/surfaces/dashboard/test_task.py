"""One task: each tab, and each action once; actions that are not legal say why."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .chromium import Tabs, needs_chromium
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]


def opened(person: Desk, tabs: Tabs, task: str, tab: str = "") -> Page:
    page = tabs.enter(person.link(f"/tasks/{task}"))
    expect(page.locator(".task-title h1")).to_be_visible()
    if tab:
        page.locator(".tabs a", has_text=tab).click()
        expect(page.locator(".tabs a", has_text=tab)).to_have_attribute("aria-current", "page")
    return page


def action(page: Page, name: str) -> str:
    return f".task-actions .button:has-text('{name}')"


def test_the_overview_says_how_it_went_and_whether_it_was_told(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("echo out; echo wrong >&2; exit 3", "break a leg", thread="told", batch="legs")
    person.until(task, "failed")
    page = opened(person, tabs, task)
    expect(page.locator(".task-meta")).to_contain_text("Failed")
    expect(page.locator(".facts", has_text="Exit code")).to_contain_text("3")
    expect(page.locator(".inspector .delivery")).to_contain_text("unread")
    expect(page.locator(".inspector")).to_contain_text("batch legs, 1 of 1")
    person.tell("told")
    page.reload()

    expect(page.locator(".inspector .delivery")).to_contain_text("told once · turn 1")
    expect(page.locator(".inspector .command code").first).to_contain_text("meantime show")


def test_a_task_that_nobody_is_told_of_says_so(person: Desk, tabs: Tabs) -> None:
    told = person.hand_off("exec sleep 600", "told", thread="told")
    alone = person.hand_off("exec sleep 600", "alone", thread="cli", notify=False)
    page = opened(person, tabs, told)
    expect(page.locator(".inspector")).to_contain_text("Will be told to told")
    expect(page.locator(".overview h2").first).to_contain_text("Command")
    page.goto(f"{person.info()['url']}/?task={alone}")

    expect(page.locator(".inspector")).to_contain_text("Nobody will be told")
    expect(page.locator(".inspector")).not_to_contain_text("Will be told")
    for task in (told, alone):
        person.post(f"/v1/tasks/{task}/cancel")


def test_the_newest_line_of_a_log_is_seen_on_a_phone(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("seq 1 400; exec sleep 600", "count")
    page = opened(person, tabs, task, "Log")
    for width, height in ((390, 844), (1280, 800)):
        page.set_viewport_size({"width": width, "height": height})
        expect(page.locator(".log-line", has_text=re.compile(r"^\s*400\s+400$"))).to_be_in_viewport(ratio=1)
    keys = page.locator(".footer-keys > span")
    foot = page.locator(".footer-keys").bounding_box()
    assert foot is not None
    for key in keys.all():  # whole, or not at all
        box = key.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= foot["x"] + foot["width"] or box["y"] >= foot["y"] + foot["height"]
    expect(page.locator(".footer-help")).to_have_text("?all keys")
    person.post(f"/v1/tasks/{task}/cancel")


def test_tabs_are_reached_by_number(person: Desk, tabs: Tabs) -> None:
    task = person.ask_agent("look", "grep", "look around")
    person.until(task, "completed")
    page = opened(person, tabs, task)
    for key, tab in enumerate(["Overview", "Timeline", "Log", "Messages", "Runs", "Raw"], 1):
        page.keyboard.press(str(key))
        expect(page.locator(".tabs a", has_text=tab)).to_have_attribute("aria-current", "page")
    expect(page.locator(".task-tab pre")).to_contain_text(f'"{task}"')
    page.keyboard.press("5")
    expect(page.locator(".table tbody tr")).to_have_count(1)


LOG = r"printf 'plain\n\033[1;31mred words\033[0m\nERROR: it broke\n'; read more; echo $more; exec sleep 600"


def test_a_log_has_colours_follows_and_is_searched(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off(LOG, "print and wait", openStdin=True)
    page = opened(person, tabs, task, "Log")
    lines = page.locator(".log-line")
    expect(lines).to_have_count(3)
    red = lines.nth(1).locator(".ansi-1").first
    expect(red).to_have_text("red words")
    assert red.evaluate("it => getComputedStyle(it).color") != lines.nth(0).evaluate(
        "it => getComputedStyle(it).color"
    )
    person.post(f"/v1/tasks/{task}/send", {"data": "and more\n"})
    expect(lines).to_have_count(4)
    page.keyboard.press("/")
    page.keyboard.type("words")
    expect(page.locator(".log-find [role=status]")).to_contain_text("1")
    page.keyboard.press("Enter")
    expect(page.locator(".log-line[data-current]")).to_contain_text("red words")
    page.keyboard.press("Escape")
    page.keyboard.press("e")

    expect(page.locator(".log-line[data-current]")).to_contain_text("ERROR: it broke")


def test_a_log_is_downloaded_as_it_is(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off(r"printf '\033[31mred\033[0m\n'", "print in red")
    person.until(task, "completed")
    page = opened(person, tabs, task, "Log")
    expect(page.locator(".log-foot")).to_contain_text("The log has ended.")
    with page.expect_download() as download:
        page.keyboard.press("D")

    assert download.value.suggested_filename == f"{task}.log"
    assert download.value.path().read_bytes() == b"\x1b[31mred\x1b[0m\n"


def test_a_log_says_where_output_was_not_kept(person: Desk, tabs: Tabs) -> None:
    """The first megabyte and the last four are kept: of lines of 1,000 letters, the 1,047 first ones."""
    command = "head -c 12000000 /dev/zero | tr '\\0' x | fold -w 1000; echo; echo the end"
    task = person.hand_off(command, "talk a lot")
    person.until(task, "completed")
    page = opened(person, tabs, task, "Log")
    expect(page.locator(".log-foot")).to_contain_text("The log has ended.")
    page.keyboard.press("G")
    expect(page.locator(".log-line", has_text="the end")).to_be_visible()
    assert page.locator(".log-line").count() < 120
    page.locator(".log-scroll").evaluate("it => it.scrollTop = 20 * 1035")

    expect(page.locator(".log-gap")).to_contain_text("not kept")


def test_messages_fold_calls_with_their_results(person: Desk, tabs: Tabs) -> None:
    task = person.ask_agent("look", "grep", "look for words")
    person.until(task, "completed")
    page = opened(person, tabs, task, "Messages")

    messages = page.locator("mt-messages")
    expect(messages).to_contain_text("I look around.")
    expect(messages).to_contain_text("grep")
    page.locator(".tabs a", has_text="Timeline").click()
    expect(page.locator("mt-timeline")).to_contain_text("grep")


def test_a_task_is_cancelled_by_keyboard_with_a_reason(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("sleep 600", "to be stopped")
    page = opened(person, tabs, task)
    page.keyboard.press("c")
    dialog = page.locator("dialog")
    expect(dialog.locator("h2")).to_have_text("Cancel: to be stopped")
    expect(dialog.locator(".command code")).to_contain_text("meantime cancel ")
    page.keyboard.type("not needed")
    page.keyboard.press("Control+Enter")

    person.until(task, "cancelled")
    expect(page.locator(".task-meta .state")).to_contain_text("Cancelled")
    expect(page.locator(action(page, "Cancel"))).to_have_attribute("title", re.compile("has ended"))


def test_actions_that_are_not_legal_say_why(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("sleep 600", "only a command")
    page = opened(person, tabs, task)
    for name, reason in (("Send", "stdin is closed"), ("Resume", "cannot be resumed"), ("Fork", "to fork")):
        button = page.locator(action(page, name))
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_attribute("title", re.compile(reason))
        button.click(force=True)
        expect(page.locator(".message", has_text=re.compile(reason))).to_be_visible()
    expect(page.locator("dialog")).not_to_be_visible()


def test_text_is_sent_to_a_command_and_to_an_agent(person: Desk, tabs: Tabs) -> None:
    command = person.hand_off("read word; echo got $word", "read a word", openStdin=True)
    agent = person.ask_agent("listen", title="listen to me")
    for task, text in ((command, "hello"), (agent, "listen up")):
        person.until(task, "running")
        page = opened(person, tabs, task)
        page.keyboard.press("s")
        expect(page.locator("dialog textarea")).to_be_focused()
        page.keyboard.type(text)
        page.keyboard.press("Control+Enter")
    assert "got hello" in str(person.until(command, "completed")["result"])
    assert person.until(agent, "completed")["result"] == "Heard: listen up"


def test_an_agent_is_resumed_and_forked(person: Desk, tabs: Tabs) -> None:
    task = person.ask_agent("look", "grep", "look twice")
    person.until(task, "completed")
    page = opened(person, tabs, task)
    page.locator(action(page, "Resume")).click()
    page.locator("dialog textarea").fill("find")
    page.locator("dialog .button", has_text="Resume").click()
    expect(page.locator(".task-meta")).to_contain_text("run 2")
    person.until(task, "completed")
    page.keyboard.press("5")
    expect(page.locator(".table tbody tr")).to_have_count(2)
    page.keyboard.press("f")
    page.locator("dialog textarea").fill("sort")
    page.keyboard.press("Control+Enter")

    page.wait_for_url(lambda url: "task=" in url and task not in url)
    expect(page.locator(".task-title h1")).to_be_visible()


def test_an_ended_task_is_cleared_and_purged_after_a_confirmation(person: Desk, tabs: Tabs) -> None:
    cleared = person.hand_off("true", "to be cleared")
    purged = person.hand_off("true", "to be purged")
    for task, name, said in ((cleared, "Clear", "not listed"), (purged, "Purge", "1 task was deleted.")):
        person.until(task, "completed")
        page = opened(person, tabs, task)
        page.get_by_label("More actions").click()
        page.locator(".menu-items .button", has_text=name).click()
        expect(page.locator("dialog .command code")).to_contain_text("meantime ")
        page.locator("dialog .dialog-buttons .button", has_text=name).click()
        expect(page.locator(".message").last).to_contain_text(said)
    listed = {each["id"] for each in person.get("/v1/tasks", limit=200)["tasks"]}
    assert not {cleared, purged} & listed


def test_the_next_task_is_reached_without_going_back(person: Desk, tabs: Tabs) -> None:
    for title in ("one of a pair", "other of a pair"):
        person.until(person.hand_off("true", title, batch="pair"), "completed")
    page = tabs.enter(person.link())
    page.goto(f"{person.info()['url']}/?q=batch:pair")
    expect(page.locator(".row")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".task-title h1")).to_have_text("other of a pair")
    page.keyboard.press("j")

    expect(page.locator(".task-title h1")).to_have_text("one of a pair")


def test_a_timeline_is_moved_through_folded_and_zoomed_by_keyboard_and_by_mouse(
    person: Desk, tabs: Tabs
) -> None:
    task = person.ask_agent("look", "grep", "look for a while")
    person.until(task, "completed")
    page = opened(person, tabs, task, "Timeline")
    rows = page.locator(".tl-canvas .tl-row")
    expect(rows.filter(has_text="grep")).to_contain_text("src")  # the key argument
    whole = rows.count()
    page.keyboard.press("ArrowDown")
    expect(rows.first).to_have_attribute("data-current", "")
    page.keyboard.press("ArrowLeft")
    expect(rows.filter(has_text="grep")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(rows).to_have_count(whole)
    grid = page.get_by_role("grid", name="Timeline")
    page.keyboard.press("+")
    expect(grid).not_to_have_css("--zoom", "1")
    page.keyboard.press("0")
    expect(grid).to_have_css("--zoom", "1")

    page.get_by_label("Zoom in").click()
    expect(grid).not_to_have_css("--zoom", "1")
    page.locator(".tl-tools .button", has_text="Fit").click()
    expect(grid).to_have_css("--zoom", "1")
    rows.first.get_by_label("Close").click()
    expect(rows.filter(has_text="grep")).to_have_count(0)
    rows.filter(has_text="Turn 2").click()
    expect(rows.filter(has_text="Turn 2")).to_have_attribute("data-current", "")


def test_a_task_is_sent_text_and_cancelled_by_mouse(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("read word; echo got $word; exec sleep 600", "read and wait", openStdin=True)
    person.until(task, "running")
    page = opened(person, tabs, task, "Log")
    page.locator(action(page, "Send")).click()
    page.locator("dialog textarea").fill("hello")
    page.locator("dialog .button", has_text="Send").click()
    expect(page.locator(".log-line")).to_have_text("1 got hello")
    page.locator(action(page, "Cancel")).click()
    page.locator("dialog .dialog-buttons .button", has_text="Cancel").click()

    person.until(task, "cancelled")


def test_an_ended_task_is_purged_by_keyboard_alone(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("true", "to be purged by keys")
    person.until(task, "completed")
    page = opened(person, tabs, task)
    page.get_by_label("More actions").focus()
    page.keyboard.press("Enter")
    purge = page.locator(".menu-items .button", has_text="Purge")
    for _ in range(6):
        page.keyboard.press("Tab")
        if purge.evaluate("it => it === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.locator("dialog h2")).to_contain_text("to be purged by keys")
    page.keyboard.press("Control+Enter")

    expect(page.locator(".message").last).to_contain_text("1 task was deleted.")


def test_a_log_that_has_ended_is_opened_at_its_end(person: Desk, tabs: Tabs) -> None:
    task = person.hand_off("seq 1 5000; exit 1", "count and fail")
    person.until(task, "failed")
    page = opened(person, tabs, task)
    page.get_by_role("link", name="See what it printed").click()
    expect(page.locator(".log-line").last).to_have_text("5,000 5000")
    expect(page.locator(".log-line").last).to_be_in_viewport()
    page.keyboard.press("g")
    expect(page.locator(".log-line").first).to_have_text("1 1")
    expect(page.locator(".log-line").first).to_be_in_viewport()
