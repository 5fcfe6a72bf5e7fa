"""What is made of texts that cannot be trusted, of ids, times and searches."""

from __future__ import annotations

import base64
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.due_times import FARTHEST
from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.output_sinks import Copy, Harmless
from meantime.surfaces.cli.parameter_types import DELAY, DURATION
from meantime.surfaces.cli.verbs import inbox
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.exit_code import own_code, worst
from meantime.surfaces.terminal.terminal_text import columns, fitted, plain, plain_lines

HOSTILE = [
    ("\x1b[2J\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;title\x07after", "after"),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x9b31mred", "red"),
    ("one\ntwo\tthree", "one two three"),
    ("a\x08\x7fb\x00", "ab"),
    ("user\u202egnp.exe\u2066\u200b", "usergnp.exe"),
    ("\x1bPdevice\x1b\\end", "end"),
    ("\ud800lone", "lone"),
]


@pytest.mark.parametrize(("given", "shown"), HOSTILE)
def test_a_line_holds_nothing_that_a_terminal_obeys(given: str, shown: str):
    assert plain(given) == shown


@given(st.text())
def test_no_text_brings_a_control_character_through(text: str):
    assert plain(text).isprintable() or all(not _obeyed(char) for char in plain(text))
    assert all(not _obeyed(char) or char == "\n" for char in plain_lines(text))


def _obeyed(char: str) -> bool:
    return ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u202e\u2066\u200f\u061c"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


COLOURED = "\x1b[1;31mred\x1b[0m\x1b[2Jé\x1b]0;evil\x07\rgo\x1b[10;10H\x07on\u202e\n"


@given(st.lists(st.integers(1, 6), max_size=40))
def test_output_keeps_its_colours_and_nothing_else_however_it_is_cut(cuts: list[int]):
    screen, data = Screen(), COLOURED.encode()
    sink = Harmless(screen)
    for cut in cuts:
        sink.write(data[:cut])
        data = data[cut:]
    sink.write(data)
    sink.end()
    assert screen.getvalue() == "\x1b[1;31mred\x1b[0mé\rgoon\n\x1b[0m"


@given(st.lists(st.text(alphabet="\x1b[]PX^_0;m\x07\x9b\x9c\\ aé\u202e", max_size=12), max_size=8))
def test_no_cut_of_any_sequence_gets_through(parts: list[str]):
    screen = Screen()
    sink = Harmless(screen)
    for part in parts:
        sink.write(part.encode())
    sink.end()
    import re

    left = re.sub(r"\x1b\[[0-9;:]*m", "", screen.getvalue())
    assert not any(_obeyed(char) for char in left)


def test_a_sequence_that_never_ends_is_not_kept_forever():
    screen = Screen()
    sink = Harmless(screen)
    for _ in range(100):
        sink.write(b"\x1b]0;" + b"x" * 1000)
    sink.write(b"\x07done")
    sink.end()
    assert screen.getvalue().endswith("done")


@given(st.text(), st.integers(1, 30))
def test_what_is_fitted_fits(text: str, width: int):
    assert columns(fitted(plain(text), width)) <= width


def test_ids_are_as_long_as_it_takes():
    ids = ["t_2qxz4s75ab", "t_2qxz4s75zz", "t_zwbe8txf00", "mine", "t_mine2345678"]
    assert task_format.short_ids(ids) == {
        "t_2qxz4s75ab": "2qxz4s75a",
        "t_2qxz4s75zz": "2qxz4s75z",
        "t_zwbe8txf00": "zwbe8txf",
        "mine": "mine",
        "t_mine2345678": "mine2345",
    }


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.4, "0.4s"), (12.44, "12.4s"), (59.97, "1m00"), (64, "1m04"), (3_900, "1h05"), (270_000, "3d03h")],
)
def test_times_are_shown_short(seconds: float, shown: str):
    assert task_format.span(seconds) == shown


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("90", 90), ("90s", 90), ("1h30m", 5_400), ("7d", 604_800), ("1.5", 1.5), ("250ms", 0.25)],
)
def test_durations_are_read_as_people_write_them(said: str, seconds: float):
    assert DURATION.read(said) == seconds


@pytest.mark.parametrize("said", ["", "soon", "-1", "5 minutes", "1h30", "inf", "nan"])
def test_what_is_no_duration(said: str):
    with pytest.raises(ValueError, match="is not a duration"):
        DURATION.read(said)


def test_a_duration_that_is_too_long_is_one():
    with pytest.raises(ValueError, match=r"'10000000000' is too long\."):
        DURATION.read("10000000000")
    assert DELAY.read(f"{FARTHEST:.0f}") == FARTHEST
    with pytest.raises(ValueError, match=r"'99999d' is too long: ten years are the most\."):
        DELAY.read("99999d")


@pytest.mark.parametrize(("late", "said"), [(0.0, []), (7_500.0, ["(2h05 late)"])])
def test_the_inbox_says_how_late_a_reminder_came(late: float, said: list[str]):
    notice = {"task": None, "kind": "alarm", "text": "look at it", "events": 1, "late": late}
    assert [part for part in inbox._parts(notice, "", whole=False) if part] == ["alarm", "look at it", *said]


def test_the_inbox_names_what_a_notice_of_several_lines_is_about():
    notice = {"task": None, "kind": "event", "text": "/var/log changed\n+ a.log\n- b.log\n", "events": 1}
    assert inbox._parts(notice, "", whole=False)[2] == "/var/log changed  + a.log  - b.log"
    notice["text"] = "  before\n> ERROR: no database\n  behind"
    assert inbox._parts(notice, "", whole=False)[2] == "ERROR: no database"
    ended = task("completed")
    notice |= {"task": ended, "kind": "ending", "text": "nothing matched until the deadline"}
    assert inbox._parts(notice, "", whole=False)[2] == "nothing matched until the deadline"
    assert inbox._parts(notice, "", whole=True)[2] == "", "the text follows"


def test_words_of_a_command_line_are_one_search_in_the_daemons_grammar():
    words = ["status:failed", "agent:my agent", "fix the bug", "http://x"]
    assert task_search.query(words) == 'status:failed agent:"my agent" "fix the bug" http://x'
    assert task_search.states("error,running") == ("failed", "timed_out", "lost", "running")
    with pytest.raises(CliError) as caught:
        task_search.states("broken")
    assert caught.value.exit_code == USAGE


def task(state: str, **more: object) -> dict[str, object]:
    return {"state": state, **more}


def test_exit_codes_of_endings():
    assert own_code(task("completed")) == 0
    assert own_code(task("failed", exitCode=3)) == 3
    assert own_code(task("failed", error="It was killed by SIGKILL.")) == 137
    assert own_code(task("failed", error="It was killed by signal 40.")) == 168
    assert own_code(task("failed", error="The program x was not found.")) == 6
    assert own_code(task("timed_out")) == 124
    assert own_code(task("cancelled")) == 7
    assert worst([task("completed"), task("cancelled"), task("lost")]) == 6
    assert worst([task("completed"), task("cancelled")]) == 7


def test_a_table_fits_its_terminal(monkeypatch: pytest.MonkeyPatch):
    rows = [("2qxz4s75", "● running", "12.4s", "a title that is long " * 5, "62 % of everything " * 5)]
    for width in (20, 40, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = task_format.table(("ID", "STATUS", "TIME", "TASK", "NOW"), rows, shrink=3, right=2)
        assert all(columns(line) <= width for line in lines)
    assert "a title" in lines[1]
    assert "62 %" in lines[1]


class Written:
    """A place for output that remembers it."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def end(self) -> None:
        pass


def test_a_gap_is_said_and_never_makes_one_line_of_two(capsys: pytest.CaptureFixture[str]):
    to = Written()
    copy = Copy(to)
    at = 0
    for data, lost in ((b"one\ntw", 0), (b"", 500), (b"ree\n", 0), (b"four\n", 7)):
        at += lost + len(data)
        copy.take({"dataBase64": base64.b64encode(data).decode(), "lostBytes": lost, "next": at})
    assert to.data == b"one\ntw\nree\nfour\n"
    assert copy.offset == at
    said = capsys.readouterr().err.splitlines()
    assert said == ["meantime: 500 bytes were not kept here.", "meantime: 7 bytes were not kept here."]
