"""The core of the page, module by module, in the browser that runs it: search, order, stream, words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.cli.person import Person

from .chromium import needs_chromium
from .test_browsers import address

pytestmark = [needs_chromium, pytest.mark.browsers]

# A row that has everything a list asks for; `more` overrides.
ROW = """const row = (id, state, more = {}) => ({
  id, shortId: id, title: `task ${id}`, kind: "shell", agent: "shell", state, run: 1, thread: "conv-7",
  batch: null, parent: null, children: 0, now: "", percent: null, createdAt: "2026-11-17T10:00:00Z",
  startedAt: null, endedAt: null, lastEventAt: "2026-11-17T10:00:00Z", silentAfterMs: 30000, timeoutAt: null,
  usualMs: null, usualRuns: 0, queuePosition: null, question: null, exitCode: null, delivery: null, ...more
});
const at = (second) => new Date(Date.UTC(2026, 10, 17, 10, 0, second)).toISOString();
"""


@pytest.fixture(scope="module")
def page(browser: Browser, person: Person) -> Iterator[Page]:
    """A page without a right to ask: its modules are there, and nothing comes from the daemon."""
    one = browser.new_page()
    one.goto(address(person))
    yield one
    one.close()


def run(page: Page, body: str, given: Any = None) -> Any:
    """With the modules that the page itself has loaded: their paths have its version."""
    script = page.locator("script[src$='/opening.js']").get_attribute("src") or ""
    body = body.replace('"/assets/', f'"{script.removesuffix("opening.js")}')
    return page.evaluate(f"async (given) => {{ {ROW} {body} }}", given)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("status:failed,lost", [["status", ["failed", "lost"], False]]),
        ('-kind:shell "two words"', [["kind", ["shell"], True], ["", ["two words"], False]]),
        ('thread:"a, b"', [["thread", ["a, b"], False]]),
        ("note:this", [["", ["note:this"], False]]),
        ("", []),
    ],
)
def test_a_search_is_split_into_qualifiers_and_words(page: Page, query: str, terms: list[Any]) -> None:
    found = run(
        page,
        """const { parse } = await import("/assets/core/search-query.js");
        return parse(given).map((term) => [term.name, term.values, term.not]);""",
        query,
    )
    assert found == terms


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("status:running", True),
        ("-status:running", False),
        ("status:failed", False),
        ("status:active", True),
        ("status:ended,timed-out", False),
        ("TASK kind:shell", True),
        ("thread:conv-8", False),
        ("since:1s", False),
    ],
)
def test_a_row_that_changed_is_compared_with_the_search(page: Page, query: str, expected: bool) -> None:
    body = """const { matches, parse } = await import("/assets/core/search-query.js");
    return matches(parse(given), row("a", "running"));"""
    assert run(page, body, query) is expected


def test_a_filter_replaces_its_like_and_keeps_the_rest(page: Page) -> None:
    body = """const { withTerm } = await import("/assets/core/search-query.js");
    const changed = (...values) => withTerm("status:failed login", "status", ...values);
    return [changed("lost", "failed"), changed(), changed("a: b")];"""
    assert run(page, body) == ["login status:lost,failed", "login", 'login status:"a: b"']


def test_events_are_the_same_wherever_the_stream_is_cut(page: Page) -> None:
    text = (
        ": hello\r\nid: 7\r\nevent: patch\r\ndata: {\r\ndata: }\r\n\r\nevent: heartbeat\ndata: {}\n\nid: 8\n"
    )
    found = run(
        page,
        """const { EventParser } = await import("/assets/core/event-parser.js");
        const whole = JSON.stringify(new EventParser().push(given));
        for (let cut = 1; cut < given.length; cut++) {
          const parser = new EventParser();
          const events = [...parser.push(given.slice(0, cut)), ...parser.push(given.slice(cut))];
          if (JSON.stringify(events) !== whole) return cut;
        }
        return JSON.parse(whole);""",
        text,
    )
    assert found == [
        {"event": "patch", "id": "7", "data": "{\n}"},
        {"event": "heartbeat", "id": "7", "data": "{}"},
    ]


LIST = """const { store } = await import("/assets/core/store.js");
const { ListModel } = await import("/assets/list/list-model.js");
const model = new ListModel();
const put = (...rows) => {
  for (const each of rows) store.rows.set(each.id, each);
  model.update(new Set(rows.map((each) => each.id)));
};
store.rows.clear();
"""


@pytest.mark.behaviour("H16")
def test_each_group_has_its_own_order(page: Page) -> None:
    body = """put(
      row("old", "completed", { endedAt: at(1) }), row("new", "failed", { endedAt: at(5) }),
      row("short", "running", { startedAt: at(9) }), row("long", "running", { startedAt: at(2) }),
      row("second", "queued", { queuePosition: 2 }), row("first", "queued", { queuePosition: 1 }),
      row("later", "waiting", { question: { deadlineAt: at(40) } }),
      row("soon", "waiting", { question: { deadlineAt: at(20) } }), row("ever", "waiting", { question: {} }));
    return model.order;"""
    assert run(page, LIST + body) == {
        "needs": ["soon", "later", "ever"],
        "running": ["long", "short"],
        "queued": ["first", "second"],
        "finished": ["new", "old"],
    }


@pytest.mark.behaviour("H16")
def test_a_held_order_stays_until_it_is_released(page: Page) -> None:
    body = """put(row("a", "running", { startedAt: at(1) }), row("b", "running", { startedAt: at(2) }));
    model.hold(true);
    put(row("a", "completed", { endedAt: at(3) }), row("c", "running", { startedAt: at(0) }));
    const held = [[...model.order.running], [...model.order.finished], model.waiting.size, model.arrived];
    model.hold(false);
    return [held, model.order.running, model.order.finished, model.waiting.size];"""
    assert run(page, LIST + body) == [[["a", "b"], [], 2, 1], ["c", "b"], ["a"], 0]


def test_one_by_one_and_all_at_once_give_the_same_order(page: Page) -> None:
    body = """const states = ["waiting", "running", "queued", "completed", "failed"];
    const rows = Array.from({ length: 900 }, (_, i) => row(`t${(i * 7919) % 900}`, states[(i * 31) % 5],
      { startedAt: at((i * 17) % 50), endedAt: at((i * 13) % 50), queuePosition: (i * 11) % 97 }));
    for (const each of rows) put(each);
    for (const each of rows.slice(0, 300)) put({ ...each, state: "completed" });
    const other = new ListModel();
    other.setQuery("");
    return JSON.stringify(model.order) === JSON.stringify(other.order) && model.length === 900;"""
    assert run(page, LIST + body) is True


def test_a_row_that_no_longer_fits_the_search_leaves(page: Page) -> None:
    body = """model.setQuery("status:running");
    put(row("a", "running", { startedAt: at(1) }), row("b", "queued"));
    const before = model.length;
    put(row("a", "completed", { endedAt: at(2) }));
    return [before, model.length];"""
    assert run(page, LIST + body) == [1, 0]


def test_only_lines_in_the_window_are_laid_out_and_none_is_missed(page: Page) -> None:
    body = """const { ListLayout } = await import("/assets/list/list-layout.js");
    const rows = Array.from({ length: 10000 }, (_, i) => row(`t${i}`, i < 5 ? "running" : "completed",
      { startedAt: at(i % 60), endedAt: at(i % 60) }));
    for (const each of rows) store.rows.set(each.id, each);
    model.setQuery("");
    const layout = new ListLayout(model, new Set(), 32, 28);
    const seen = new Set();
    let most = 0;
    for (let y = 0; y < layout.height; y += 700) {
      const { top, lines } = layout.window(y, y + 800);
      most = Math.max(most, lines.length);
      for (const line of lines) if (line.id) seen.add(line.id);
      const first = lines.find((line) => line.id);
      const before = lines[0].id ? 0 : 28;
      if (first && layout.topOf(first.id) !== top + before) return ["wrong place", y];
    }
    return [seen.size, layout.height, most <= 28];"""
    assert run(page, LIST + body) == [10_000, 2 * 28 + 10_000 * 32, True]


def test_rows_beyond_the_limit_are_not_kept(page: Page) -> None:
    body = """const { MOST_ROWS, Store } = await import("/assets/core/store.js");
    const own = new Store();
    own.add(Array.from({ length: MOST_ROWS + 50 }, (_, i) => row(`t${i}`, "completed")));
    own.add([row("t3", "failed")]);
    return [own.rows.size === MOST_ROWS, own.rows.get("t3").state];"""
    assert run(page, body) == [True, "failed"]


def test_a_pause_holds_back_changes_and_gives_the_last_of_each(page: Page) -> None:
    body = """const { Store } = await import("/assets/core/store.js");
    const own = new Store();
    const overview = { counts: { all: 1 } };
    own.replace({ rows: [row("a", "running"), row("b", "running")], overview, seq: 1 });
    own.pause();
    own.patch({ rows: [row("a", "cancelling")], gone: [], seq: 2 });
    own.patch({ rows: [row("a", "cancelled"), row("c", "queued")], gone: ["b"], seq: 3 });
    const paused = [own.rows.get("a").state, own.rows.size, own.missed];
    own.resume();
    return [paused, own.rows.get("a").state, [...own.rows.keys()].sort(), own.seq];"""
    assert run(page, body) == [["running", 2, 3], "cancelled", ["a", "c"], 3]


@pytest.mark.parametrize(
    ("length", "running", "ended"),
    [
        (400, "0s", "0.4s"),
        (41_900, "41s", "41.9s"),
        (79_000, "1m 19s", "1m 19s"),
        (7_445_000, "2h 04m", "2h 04m"),
        (273_600_000, "3d 4h", "3d 4h"),
    ],
)
def test_durations_are_short_and_clocks_that_run_have_whole_seconds(
    page: Page, length: int, running: str, ended: str
) -> None:
    body = """const { duration } = await import("/assets/core/format.js");
    return [duration(given), duration(given, true)];"""
    assert run(page, body, length) == [running, ended]


@pytest.mark.parametrize(
    ("more", "now", "look", "text"),
    [
        ("percent: 62", 60, "exact", "62 % · 36s left"),
        ("usualMs: 120000", 60, "estimate", "usually 2m 00s"),
        ("usualMs: 20000", 60, "over", "3× usual 20s"),
        ("", 60, "none", ""),
    ],
)
def test_progress_is_reported_estimated_or_over_the_usual_time(
    page: Page, more: str, now: int, look: str, text: str
) -> None:
    found = run(
        page,
        f"""const {{ progressOf }} = await import("/assets/list/row-texts.js");
        const one = row("a", "running", {{ startedAt: at(0), lastEventAt: at({now}), {more} }});
        return progressOf(one, Date.parse(at({now})), false);""",
    )
    assert (found["look"], found["text"]) == (look, text)


@pytest.mark.behaviour("H16")
def test_a_running_task_that_says_nothing_is_called_silent(page: Page) -> None:
    body = """const { stateOf } = await import("/assets/list/row-texts.js");
    const one = row("a", "running", { startedAt: at(0), lastEventAt: at(0) });
    return [29, 45].map((second) => stateOf(one, Date.parse(at(second))).word);"""
    assert run(page, body) == ["Running", "Silent 45s"]


def test_an_answer_is_written_as_the_daemon_reads_it(page: Page) -> None:
    body = """const { answerText } = await import("/assets/task/question-parts.js");
    const question = { choices: [{ id: "allow" }, { id: "odd:id" }] };
    return [answerText(question, [], "words"), answerText(question, ["allow"], ""),
      answerText(question, ["allow"], "but: gently"), answerText(question, ["odd:id"], ""),
      answerText(question, ["allow", "odd:id"], "")];"""
    assert run(page, body) == ["words", "allow", "allow: but: gently", "2", "allow,2"]


@pytest.mark.behaviour("H16")
def test_the_code_leaves_the_address_before_anything_is_asked(browser: Browser, person: Person) -> None:
    page = browser.new_page()
    page.goto(f"{address(person)}/#code=none&go=/tasks/t_1")
    page.wait_for_selector(".refused")
    assert "#" not in page.url
    assert "meantime open" in page.locator(".refused").inner_text()
    page.close()


def test_every_key_of_a_footer_has_a_command_and_no_view_uses_a_key_twice(page: Page) -> None:
    # A tab of a task may hide a key of its task.
    body = """const { MAPS, footer } = await import("/assets/core/keys.js");
    const whole = Object.entries(MAPS).filter(([name]) => !name.startsWith("task-"));
    const twice = whole.flatMap(([name, keys]) => {
      const presses = keys.map((key) => key.press);
      return presses.filter((press, i) => presses.indexOf(press) !== i).map((press) => `${name} ${press}`);
    });
    const isBare = (name) => footer(name).some((entry) => entry.commands.some((each) => !each));
    const bare = Object.keys(MAPS).filter(isBare);
    return [twice, bare];"""
    assert run(page, body) == [[], []]
