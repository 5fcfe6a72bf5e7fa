"""The list: filters, search, groups, selection, order, address; by keyboard alone, and by mouse."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.waiting import until

from .chromium import Tabs, needs_chromium
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]

# Titles by the filter that shows them. Conversation "busy" has two slots, so its third task waits in line.
SHOWN = {
    "Needs you": ["choose a colour"],
    "Running": ["first in line", "second in line"],
    "Queued": ["third in line"],
    "Completed": ["say hello"],
    "Failed": ["break a leg"],
    "Cancelled": ["stop early"],
    "Timed out": ["take too long"],
    "Lost": [],
}
EVERY = [title for titles in SHOWN.values() for title in titles]


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    one = Desk(tmp_path_factory.mktemp("home"), "[limits]\nper_thread = 2\n")
    one.up()
    one.until(one.hand_off("echo hello", "say hello", thread="night", batch="nightly"), "completed")
    one.until(one.hand_off("exit 3", "break a leg", thread="night", batch="nightly"), "failed")
    one.until(one.hand_off("sleep 600", "take too long", thread="night", timeout=0.2), "timed_out")
    stopped = one.hand_off("sleep 600", "stop early", thread="night")
    one.post(f"/v1/tasks/{stopped}/cancel")
    one.until(stopped, "cancelled")
    one.until(one.ask_agent("paint", title="choose a colour", thread="night"), "waiting")
    for place in ("first", "second", "third"):
        one.hand_off("sleep 600", f"{place} in line", thread="busy")
    yield one
    one.leave()


@pytest.fixture
def page(person: Desk, tabs: Tabs) -> Page:
    one = tabs.open(person.link())
    expect(one.locator(".row")).to_have_count(len(EVERY))
    return one


def titles(page: Page) -> list[str]:
    return page.locator(".row .row-title").all_inner_texts()


def filter_of(page: Page, name: str) -> Locator:
    return page.locator(".rail-filters .rail-item").filter(has=page.get_by_text(name, exact=True))


def shows(page: Page, *expected: str) -> None:
    """The list has these tasks and no others."""
    expect(page.locator(".row")).to_have_count(len(expected))
    for title in expected:
        expect(page.locator(".row", has_text=title)).to_have_count(1)


def test_every_filter_shows_its_tasks_their_count_and_has_an_address(page: Page) -> None:
    for name, expected in SHOWN.items():
        filter = filter_of(page, name)
        filter.click()
        expect(filter).to_have_attribute("aria-current", "page")
        expect(filter.locator(".rail-count")).to_have_text(str(len(expected)))
        shows(page, *expected)
        assert "q=status:" in page.url
    page.locator(".rail-filters .rail-item").first.click()
    shows(page, *EVERY)


def test_conversations_and_batches_are_in_the_rail(page: Page) -> None:
    batch = page.locator(".rail-batch", has_text="nightly")
    expect(batch.locator(".rail-count")).to_have_text("2/2")
    batch.click()
    shows(page, "say hello", "break a leg")
    expect(page.locator(".rail-item", has_text="busy")).to_be_visible()


def test_groups_stand_in_the_order_of_what_needs_a_person(page: Page) -> None:
    heads = page.locator(".group-button b")
    expect(heads).to_have_text(["Needs you", "Running", "Queued", "Finished"])

    page.locator(".group-button", has_text="Finished").click()
    shows(page, "choose a colour", "first in line", "second in line", "third in line")
    page.locator(".group-button", has_text="Finished").click()
    shows(page, *EVERY)


def test_a_qualifier_is_completed_and_becomes_a_chip_by_keyboard_alone(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("stat")
    expect(page.get_by_role("option", name="status:").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("fai")
    option = page.locator("mt-search").get_by_role("option")
    expect(option).to_have_count(1)
    expect(option).to_contain_text("status:failed")
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")

    expect(page.locator(".chip")).to_have_text(re.compile("status:\\s*failed"))
    shows(page, "break a leg")
    page.keyboard.press("Backspace")
    shows(page, *EVERY)


def test_a_completion_is_taken_before_the_daemon_has_answered_and_while_it_answers(page: Page) -> None:
    held: list[Route] = []
    page.route("**/v1/complete*", lambda route: held.append(route))
    options = page.locator("mt-search").get_by_role("option")
    page.keyboard.press("/")
    page.keyboard.type("kin")
    expect(options).to_have_text(re.compile("kind:"))
    page.keyboard.press("ArrowDown")
    until(lambda: page.evaluate("1") and held, "the daemon is asked")
    with page.expect_response("**/v1/complete*"):
        held.pop().continue_()
    expect(options).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator("mt-search input")).to_have_value("kind:")


SEARCHES = [
    ("in line -status:queued", ["first in line", "second in line"]),
    ("hello", ["say hello"]),
    ('"second in"', ["second in line"]),
    ("status:completed,failed", ["say hello", "break a leg"]),
    ("agent:paint", ["choose a colour"]),
    ("kind:agent", ["choose a colour"]),
    ("thread:busy -status:queued", ["first in line", "second in line"]),
    ("batch:nightly leg", ["break a leg"]),
    ("since:1h thread:busy", ["first in line", "second in line", "third in line"]),
    ("until:2020-01-01", []),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [pytest.param(*each, marks=pytest.mark.browsers if place else ()) for place, each in enumerate(SEARCHES)],
)
def test_words_and_qualifiers_find_tasks(page: Page, query: str, expected: list[str]) -> None:
    page.keyboard.press("/")
    page.keyboard.type(query)
    page.keyboard.press("Enter")

    shows(page, *expected)


def test_a_search_that_is_not_understood_is_told_in_words(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("status:asleep")
    page.keyboard.press("Enter")

    expect(page.locator(".list-note[role=alert]")).to_contain_text("asleep")


def test_tasks_are_opened_and_left_by_keyboard_alone(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("j")
    current = page.locator(".row[data-current]")
    expect(current).to_contain_text("first in line")
    page.keyboard.press("k")
    expect(current).to_contain_text("choose a colour")
    page.keyboard.press("End")
    expect(current).to_contain_text("say hello")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("say hello")

    page.keyboard.press("Escape")
    expect(current).to_contain_text("say hello")


def test_the_address_keeps_the_filter_and_the_open_task(page: Page) -> None:
    filter_of(page, "Failed").click()
    shows(page, "break a leg")
    page.locator(".row-title a").click()
    expect(page.locator("h1")).to_have_text("break a leg")

    page.reload()
    expect(page.locator("h1")).to_have_text("break a leg")
    page.go_back()
    shows(page, "break a leg")
    expect(page.locator(".chip")).to_have_count(1)
    page.reload()
    shows(page, "break a leg")
    page.go_back()
    shows(page, *EVERY)


def test_the_order_is_held_under_the_pointer_and_a_pill_says_what_waits(person: Desk, page: Page) -> None:
    page.locator(".row", has_text="say hello").hover()
    before = titles(page)
    added = person.hand_off("true", "came meanwhile", thread="night")
    person.until(added, "completed")
    pill = page.locator(".pill")
    expect(pill).to_contain_text("1 new")
    assert titles(page) == before

    page.keyboard.press("o")
    expect(page.locator(".row", has_text="came meanwhile")).to_be_visible()
    page.mouse.move(0, 0)
    expect(pill).to_have_count(0)
    person.post("/v1/purge", {"ids": [added]})
    shows(page, *EVERY)


def test_of_thousands_of_tasks_only_a_window_is_on_the_page(loner: Desk, tabs: Tabs) -> None:
    number = 1_200
    loner.post("/v1/limits", {"total": 1})
    for n in range(number):
        loner.hand_off("sleep 600", f"task {n:04}")
    page = tabs.open(loner.link())
    expect(page.locator(".list-head")).to_contain_text("1,200 tasks")

    rows = page.locator(".row")
    expect(page.locator(".row", has_text="task 0000")).to_be_visible()
    assert rows.count() < 80
    page.keyboard.press("j")
    page.keyboard.press("End")
    expect(page.locator(".row[data-current]")).to_contain_text("task 1199")
    assert rows.count() < 80


GROUPED = {
    "conversation": ["busy", "night"],
    "kind": ["agent · paint", "shell"],
    "state": ["Needs you", "Running", "Queued", "Finished"],
}


def test_tasks_are_grouped_by_keyboard_and_the_address_keeps_it(page: Page) -> None:
    heads = page.locator(".group-button b")
    for grouping in ("conversation", "batch", "kind", "state"):
        page.keyboard.press("v")
        expect(heads.filter(has_text="nightly")).to_have_count(1 if grouping == "batch" else 0)
        expect(page.locator(".group-by select")).to_have_value(grouping)
        if grouping in GROUPED:
            expect(heads).to_have_text(GROUPED[grouping])
        assert ("group=" + grouping in page.url) == (grouping != "state")
    page.keyboard.press("v")
    expect(page.locator(".group-button", has_text="busy").locator(".quiet")).to_have_text("3")
    page.reload()
    expect(heads).to_have_text(GROUPED["conversation"])
    rows = page.locator(".row .row-title")
    expect(rows.first).to_have_text("first in line")


def test_tasks_are_grouped_by_mouse(page: Page) -> None:
    page.locator(".group-by select").select_option("kind")
    expect(page.locator(".group-button b")).to_have_text(GROUPED["kind"])
    page.locator(".group-button", has_text="shell").click()
    shows(page, "choose a colour")


def test_a_view_is_saved_opened_and_deleted(page: Page) -> None:
    filter_of(page, "Failed").click()
    shows(page, "break a leg")
    page.keyboard.press("v")
    page.keyboard.press("V")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.type("what broke")
    page.keyboard.press("Control+Enter")
    saved = page.locator(".rail-view")
    expect(saved).to_have_text("what broke")
    page.locator(".rail-filters .rail-item").first.click()
    page.keyboard.press("v")
    page.reload()
    saved.locator("a").click()

    shows(page, "break a leg")
    expect(page.locator(".group-button b")).to_have_text(["night"])
    expect(saved.locator("a")).to_have_attribute("aria-current", "page")
    saved.get_by_role("button", name="Delete the view what broke").click()
    expect(saved).to_have_count(0)


VIEWS = """const assets = document.querySelector("script[src$='/opening.js']").src.replace("/opening.js", "");
const { MOST_NAME, MOST_VIEWS, save, views } = await import(`${assets}/list/saved-views.js`);
const view = (name) => ({ name, q: "status:failed", group: "" });
const told = [save(view(" ")), save(view("x".repeat(MOST_NAME + 1))), save(view("a\\u202eb"))];
for (let n = 0; n < MOST_VIEWS; n++) save(view(`view ${n}`));
told.push(save(view("one more")), save(view("view 3")));
const count = views().length;
localStorage.setItem("meantime.views", '[{"name": 1}, null, {"name": "kept", "q": "", "group": ""}]');
dispatchEvent(new StorageEvent("storage", { key: "meantime.views" }));
const kept = views().map((one) => one.name);
localStorage.setItem("meantime.views", "{");
dispatchEvent(new StorageEvent("storage", { key: "meantime.views" }));
return [told, count, kept, views()];"""


def test_saved_views_are_bounded_and_what_is_not_a_view_is_left_out(page: Page) -> None:
    told, count, kept, broken = page.evaluate(f"async () => {{ {VIEWS} }}")
    assert told[0] == "A view needs a name."
    assert told[1] == "A name has at most 40 characters."
    assert told[2] == "A name has no control characters."
    assert told[3].startswith("There are 20 views already.")
    assert (told[4], count, kept, broken) == ("", 20, ["kept"], [])


def test_an_empty_ledger_hands_off_six_tasks_by_key(loner: Desk, tabs: Tabs) -> None:
    page = tabs.open(loner.link())
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    page.keyboard.press("d")
    expect(page.locator(".row")).to_have_count(6)


@pytest.mark.parametrize("width", [1280, 1440])
def test_the_words_of_progress_end_before_the_next_column(loner: Desk, tabs: Tabs, width: int) -> None:
    """A command that usually takes 0.1 s, and this time longer: `9.9× usual 0.1s`."""
    for _ in range(3):
        loner.until(loner.hand_off("sleep 0.1", "build"), "completed")
    task = loner.hand_off("sleep 600", "build")
    page = tabs.enter(loner.link())
    page.set_viewport_size({"width": width, "height": 800})
    row = page.locator(f"#row-{task}")
    expect(row.locator(".row-words")).to_contain_text("× usual")
    words, thread = row.locator(".row-words").bounding_box(), row.locator(".row-thread").bounding_box()
    assert words is not None
    assert thread is not None
    assert words["x"] + words["width"] + 8 <= thread["x"]
    assert row.locator(".row-words").evaluate("it => it.scrollWidth <= it.clientWidth")
    expect(page.locator(".stats")).to_contain_text("Not told after 1 min")
    loner.post(f"/v1/tasks/{task}/cancel")
