"""`meantime demo` in a terminal: one types, it answers, and notices come in between."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request
from pathlib import Path

import pytest

from . import left
from .terminal import Session

LONG = ("--slow", "120")  # longer than any deadline here: it is the person who ends it


def id_of(session: Session, title: str) -> str:
    found = re.search(rf"(\w{{8}})  {title}", str(session.picture))
    assert found is not None
    return found[1]


def told(session: Session) -> list[int]:
    return [int(row[3]) for row in session.picture.rows if re.match(r"  \[\d\] ", row)]


def test_typing_while_notices_come(tmp_path: Path):
    with Session(tmp_path, *LONG) as session:
        session.sees("Talk to me meanwhile")
        session.type("how is it")
        session.sees("[5]")  # everything but the countdown, while a line is half typed
        session.until(lambda now: now.picture.rows[-1] == "  you > how is it")
        session.type(" goigg\x7f\x7fng?\x1b[A")
        session.sees("  you > how is it going?")
        session.type("\r")
        session.sees("Still running: count down.")
        assert session.picture.rows.count("  you > how is it going?") == 1

        session.type("ps\r")
        session.sees("└ count the functions")
        session.type(f"show {id_of(session, 'ask the subagent')[:5]}\r")
        session.sees("children  ")
        session.type(f"logs {id_of(session, 'check the settings')[:5]}\r")
        session.sees("agent > Expecting ':' delimiter")
        session.type("logs nothing\r")
        session.sees("No task begins with 'nothing'.")
        session.type("cancel\r")
        session.sees("cancel which one?")
        session.type(f"cancel {id_of(session, 'count down')}\r")
        session.sees("I asked count down to stop.")

        assert session.end() == 0
        assert told(session) == [1, 2, 3, 4, 5, 6]
        assert "6 handed off, 6 told, 0 twice, in order." in str(session.picture)
        assert "stopped, as you asked" in str(session.picture)
        assert session.picture.odd == []
        assert session.mode_now() == session.mode
    left.nothing(tmp_path)


@pytest.mark.parametrize("end", ["quit\r", "\x04"])
def test_leaving_early(end: str, tmp_path: Path):
    """What still runs is stopped, told like any other ending, and counted."""
    with Session(tmp_path, *LONG, columns=40, NO_COLOR="1") as session:
        session.sees("[1]")
        session.type(end)
        assert session.end() == 0
        assert told(session) == [1, 2, 3, 4, 5, 6]
        assert "6 handed off, 6 told, 0 twice, in order." in " ".join(str(session.picture).split())
        assert "\x1b[1m" not in session.raw
        assert session.mode_now() == session.mode
    left.nothing(tmp_path)


@pytest.mark.parametrize("impatient", [False, True])
def test_interrupted(impatient: bool, tmp_path: Path):
    """Also by somebody who presses Ctrl+C again and again while it stops what runs."""
    with Session(tmp_path, *LONG) as session:
        session.sees("[1]")
        assert left.running(tmp_path) != []
        session.type("half a line")
        session.sees("half a line")
        session.type("\x03")
        while impatient and session.process.poll() is None:
            session.type("\x03")
            session.read(0.01)
        assert session.end() == 130
        assert "Stopped." in session.picture.rows
        assert session.mode_now() == session.mode
    left.nothing(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_killed_politely(number: signal.Signals, tmp_path: Path):
    with Session(tmp_path, *LONG) as session:
        session.sees("[1]")
        session.process.send_signal(number)
        assert session.end() == 128 + number
        assert session.mode_now() == session.mode
    left.nothing(tmp_path)


def test_the_url_of_the_banner_works(tmp_path: Path):
    with Session(tmp_path, *LONG) as session:
        session.sees("[1]")
        url = re.search(r"http://\S+/v1/tasks", str(session.picture))
        assert url is not None
        with urllib.request.urlopen(url[0], timeout=30) as answer:
            page = json.load(answer)
        assert {task["description"] for task in page["tasks"]} >= {"count down", "hash the library"}
        session.type("quit\r")
        assert session.end() == 0


def test_a_terminal_that_cannot_erase_is_written_to_plainly(tmp_path: Path):
    with Session(tmp_path, *LONG, TERM="dumb") as session:
        session.sees("nobody can type here")
        session.sees("└ count the functions")
        session.type("\x03")
        assert session.end() == 130
        assert "\x1b" not in session.raw
    left.nothing(tmp_path)


def test_suspended_and_continued(tmp_path: Path):
    """A shell sets the terminal to what it likes; after `fg` keys come one by one again."""
    import termios

    with Session(tmp_path, *LONG) as session:
        session.sees("[1]")
        termios.tcsetattr(session.terminal, termios.TCSANOW, session.mode)
        os.kill(session.process.pid, signal.SIGCONT)
        session.until(lambda now: not now.mode_now()[3] & (termios.ICANON | termios.ECHO))
        session.type("hel")
        session.sees("  you > hel")
        session.type("p\r")
        session.sees("stop everything and sum up")
        session.type("quit\r")
        assert session.end() == 0
