"""Terminal output as the log shows it: the modules themselves, in the browser that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.cli.person import Person

from .chromium import needs_chromium
from .test_browsers import address

pytestmark = [needs_chromium, pytest.mark.browsers]


@pytest.fixture(scope="module")
def page(browser: Browser, person: Person) -> Iterator[Page]:
    one = browser.new_page()
    one.goto(address(person))
    yield one
    one.close()


def spans(page: Page, line: str) -> list[tuple[str, str, str]]:
    found = page.evaluate(
        """async (line) => {
          const { PLAIN, spansOf } = await import("/assets/log/ansi.js");
          return spansOf(line, PLAIN).spans;
        }""",
        line,
    )
    return [(one["text"], one["names"], one["link"]) for one in found]


def lines(page: Page, *pieces: str | int) -> Any:
    """What a buffer holds of these pieces; a number is a gap of so many bytes."""
    return page.evaluate(
        """async (pieces) => {
          const { LogBuffer } = await import("/assets/log/log-buffer.js");
          const buffer = new LogBuffer();
          for (const piece of pieces) typeof piece === "number" ? buffer.gap(piece) : buffer.push(piece);
          return buffer.lines.map((line, at) => [line.lost || buffer.text(at), line.number, line.counted]);
        }""",
        list(pieces),
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plain", [("plain", "", "")]),
        ("\x1b[31mred\x1b[0m not", [("red", "ansi-1", ""), (" not", "", "")]),
        ("\x1b[1;92mbold\x1b[22m thin", [("bold", "ansi-10 ansi-bold", ""), (" thin", "ansi-10", "")]),
        ("\x1b[38;5;196mcube", [("cube", "ansi-9", "")]),
        ("\x1b[38;2;0;0;200mblue", [("blue", "ansi-12", "")]),
        ("\x1b[7minverse", [("inverse", "ansi-page ansi-on-ink", "")]),
        ("\x1b[2J\x1b[10;20Hcursor", [("cursor", "", "")]),
        ("\x1b]0;title\x07after", [("after", "", "")]),
        ("\x1b[31", []),
    ],
    ids=["plain", "colour", "bold", "cube", "true colour", "inverse", "cursor", "title", "half a sequence"],
)
def test_colours_become_classes_and_other_sequences_are_dropped(
    page: Page, line: str, expected: list[tuple[str, str, str]]
) -> None:
    assert spans(page, line) == expected


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "not a url"]
)
def test_a_link_that_is_not_http_has_no_target(page: Page, target: str) -> None:
    assert spans(page, f"\x1b]8;;{target}\x1b\\text\x1b]8;;\x1b\\") == [("text", "", "")]


def test_a_link_to_a_web_page_keeps_its_target(page: Page) -> None:
    assert spans(page, "\x1b]8;id=1;https://example.org/a\x07text\x1b]8;;\x07 end") == [
        ("text", "", "https://example.org/a"),
        (" end", "", ""),
    ]


def test_characters_that_are_not_seen_or_turn_text_around_are_shown_by_their_code(page: Page) -> None:
    assert spans(page, "a\u202eb\u200bc\x00") == [("a‹202E›b‹200B›c‹00›", "", "")]


def test_lines_are_joined_over_pieces_and_an_unfinished_one_is_shown(page: Page) -> None:
    assert lines(page, "on", "e\ntw", "o") == [["one", 1, True], ["two", 2, True]]


def test_a_progress_bar_shows_its_newest_state(page: Page) -> None:
    assert lines(page, " 10 %\r 50 %", "\r100 %\r\nnext\n") == [["100 %", 1, True], ["next", 2, True]]


def test_a_gap_is_a_line_of_its_own_and_numbers_begin_again_after_it(page: Page) -> None:
    assert lines(page, "first\nhal", 5_000, "last\n") == [
        ["first", 1, True],
        ["hal", 2, True],
        [5_000, 0, False],
        ["last", 1, False],
    ]


def test_a_line_of_a_megabyte_is_cut_and_says_how_much_is_left(page: Page) -> None:
    piece = "x" * 10_000
    [[text, number, _], [after, _, _]] = lines(page, *([piece] * 100), "\nafter\n")

    assert text.endswith("… 996000 more characters")
    assert len(text) < 4_100
    assert (number, after) == (1, "after")


def test_a_log_that_never_ends_is_held_only_in_part(page: Page) -> None:
    held = page.evaluate(
        """async () => {
          const { LogBuffer, MOST_LINES } = await import("/assets/log/log-buffer.js");
          const buffer = new LogBuffer();
          for (let n = 0; n < 50; n++) buffer.push("line\\n".repeat(10_000));
          return [buffer.lines.length <= MOST_LINES, buffer.lines.length + buffer.dropped];
        }"""
    )
    assert held == [True, 500_000]


def test_a_long_line_is_wrapped_by_the_width_of_its_characters(page: Page) -> None:
    found = page.evaluate(
        """async () => {
          const { cuts } = await import("/assets/log/log-layout.js");
          return [cuts("abcdef", 3), cuts("表表表", 4), cuts("a\\tb", 8), cuts("", 5)];
        }"""
    )
    assert found == [[3], [2], [1, 2], []]


def test_search_finds_lines_as_they_come_and_says_what_is_not_an_expression(page: Page) -> None:
    found = page.evaluate(
        """async () => {
          const { LogBuffer } = await import("/assets/log/log-buffer.js");
          const { LogSearch } = await import("/assets/log/log-search.js");
          const buffer = new LogBuffer();
          const search = new LogSearch(buffer, () => {});
          const tick = () => new Promise((done) => setTimeout(done));
          const idle = async () => { do await tick(); while (search.working) };
          buffer.push("one\\nTWO\\nthree\\n");
          search.set("two", { regex: false, exact: false });
          await idle();
          buffer.push("two again\\n");
          search.more();
          await idle();
          const hits = [...search.hits];
          const next = [search.next(-1, 1), search.next(1, 1), search.next(3, 1), search.next(1, -1)];
          search.set("(", { regex: true, exact: false });
          return [hits, next, search.problem];
        }"""
    )
    assert found == [[1, 3], [1, 3, 1, 3], "This is not a regular expression."]
