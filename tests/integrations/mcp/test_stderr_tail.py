"""The last words of a server that ended are in an error that a model reads: few, and whole lines."""

from __future__ import annotations

from meantime.integrations.mcp.stderr_tail import LAST_CHARACTERS, LAST_LINES, StderrTail


def said(*lines: str) -> StderrTail:
    tail = StderrTail()
    for line in lines:
        tail.write(line.encode() + b"\n")
    return tail


def test_the_last_lines_alone_are_its_last_words():
    tail = said(*(f"line {n}" for n in range(10)))
    assert tail.last_words.splitlines() == ["line 7", "line 8", "line 9"]
    assert LAST_LINES == 3


def test_a_line_that_does_not_fit_is_left_out_whole():
    tail = said("old " * 100, "why it ended")
    assert tail.last_words == "why it ended"


def test_a_last_line_that_is_too_long_shows_where_it_is_cut():
    words = said("x" * 1_000 + "the reason").last_words
    assert words.startswith("…")
    assert words.endswith("the reason")
    assert len(words) == LAST_CHARACTERS + 1


def test_a_program_that_said_nothing_has_no_last_words():
    assert StderrTail().last_words == ""
