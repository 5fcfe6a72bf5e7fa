"""`meantime demo` in a terminal: one types, it answers, and notices come in between."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

from . import left
from .terminal import DEMO, Session

pytestmark = pytest.mark.processes

LONG = ("--slow", "3600")  # longer than any deadline here: it is the person who ends it


def id_of(session: Session, title: str) -> str:
    found = re.search(rf"(\w{{8}})  {title}", session.text)
    assert found is not None
    return found[1]


def told(session: Session) -> list[int]:
    return [int(row[3]) for row in session.rows if re.match(r"  \[\d\] ", row)]


def test_typing_while_notices_come(tmp_path: Path):
    with Session(tmp_path, *LONG) as session:
        session.sees("Talk to me meanwhile")
        session.type("how is it")
        session.sees("[5]")  # everything but the countdown, while a line is half typed
        session.until(lambda: session.rows[-1] == "  you > how is it")
        session.type(" goigg\x7f\x7fng?\x1b[A")
        session.sees("  you > how is it going?")
        session.type("\r")
        session.sees("Still running: count down.")
        assert session.rows.count("  you > how is it going?") == 1

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
        assert "6 handed off, 6 told, 0 twice, in order." in session.text
        assert "stopped, as you asked" in session.text
        assert b"\x1b[6n" not in session.raw  # the place of the cursor: a late answer would reach the shell
        assert session.mode_now() == session.mode
    left.nothing(tmp_path)


@pytest.mark.parametrize("end", ["quit\r", "\x04"])
def test_leaving_early_tells_every_ending(end: str, tmp_path: Path):
    """What still runs is stopped, told like any other ending, and counted."""
    with Session(tmp_path, *LONG, columns=40, NO_COLOR="1") as session:
        session.sees("[1]")
        session.type(end)
        assert session.end() == 0
        assert told(session) == [1, 2, 3, 4, 5, 6]
        assert "6 handed off, 6 told, 0 twice, in order." in " ".join(session.text.split())
        assert b"\x1b[1m" not in session.raw
        assert session.mode_now() == session.mode
    left.nothing(tmp_path)


@pytest.mark.core("the one demo in a terminal")
@pytest.mark.parametrize("impatient", [False, True])
def test_an_interrupt_ends_the_demo_and_leaves_nothing(impatient: bool, tmp_path: Path):
    """Also by somebody who presses Ctrl+C again and again while it stops what runs."""
    with Session(tmp_path, *LONG) as session:
        session.sees("[1]")
        assert left.running(tmp_path) != []
        session.type("half a line")
        session.sees("half a line")
        session.type("\x03")

        def has_ended() -> bool:
            session.type("\x03" if impatient else "")
            session.read()
            return session.process.poll() is not None

        until(has_ended, "it ends", there=lambda: session.text)
        assert session.end() == 130
        assert "Stopped." in session.text  # a terminal shows ^C beside it
        assert session.mode_now() == session.mode
    left.nothing(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_demo_and_leaves_nothing(number: signal.Signals, tmp_path: Path):
    with Session(tmp_path, *LONG) as session:
        session.sees("[1]")
        session.process.send_signal(number)
        assert session.end() == 128 + number
        assert session.mode_now() == session.mode
    left.nothing(tmp_path)


def test_the_url_of_the_banner_works(tmp_path: Path):
    with Session(tmp_path, *LONG) as session:
        session.sees("[1]")
        url = re.search(r"http://\S+/v1/tasks", session.text)
        assert url is not None
        with urllib.request.urlopen(url[0], timeout=LIMIT) as answer:
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
        assert b"\x1b" not in session.raw
    left.nothing(tmp_path)


def test_suspended_and_continued(tmp_path: Path):
    """A shell sets the terminal to what it likes; after `fg` keys come one by one again."""
    import termios

    with Session(tmp_path, *LONG) as session:
        session.sees("[1]")
        termios.tcsetattr(session.far, termios.TCSANOW, session.mode)
        os.kill(session.process.pid, signal.SIGCONT)
        session.until(lambda: not session.mode_now()[3] & (termios.ICANON | termios.ECHO))
        session.type("hel")
        session.sees("  you > hel")
        session.type("p\r")
        session.sees("stop everything and sum up")
        session.type("quit\r")
        assert session.end() == 0


def test_ctrl_z_and_fg_in_a_shell(tmp_path: Path):
    """The half-typed line is there again, and the shell has its terminal back at the end."""
    with Session(tmp_path, program=["/bin/sh", "-i"], PS1="shell: ", ENV="") as session:
        session.sees("shell:")
        session.type(f"{shlex.join([*DEMO, *LONG])}\r")
        session.sees("[1]")
        session.type("hel")
        session.sees("  you > hel")
        session.type("\x1a")
        session.until(lambda: session.rows[-1].startswith("shell:"))
        session.type("fg\r")
        session.until(lambda: session.rows[-1] == "  you > hel")
        session.type("p\r")
        session.sees("stop everything and sum up")
        session.type("\x03")
        session.sees("Stopped.")
        session.until(lambda: session.rows[-1].startswith("shell:"))
        session.type("echo $?\r")
        session.until(lambda: "130" in session.rows)
        session.type("exit\r")
        session.end()
    left.nothing(tmp_path)


def patient(seconds: float) -> list[str]:
    """The demo with another patience for a half-typed line."""
    code = (
        f"import sys, meantime.app.demo.interactive_screen as screen; screen.PATIENCE = {seconds};"
        "from meantime.app.main import main; sys.argv.insert(1, 'demo'); main()"
    )
    return [sys.executable, "-c", code]


def test_a_half_typed_line_delays_the_end(tmp_path: Path):
    with Session(tmp_path, "--slow", "1", program=patient(3600)) as session:
        session.sees("Talk to me meanwhile")
        session.type("half")
        session.sees("[6]")
        session.type(" a line")
        session.until(lambda: session.rows[-1] == "  you > half a line")
        assert "6 handed off" not in session.text
        session.type("\x15")  # Ctrl+U: nothing is typed any more
        assert session.end() == 0
        assert "6 handed off, 6 told, 0 twice, in order." in session.text


def test_a_half_typed_line_that_is_left_alone_holds_up_nothing(tmp_path: Path):
    with Session(tmp_path, "--slow", "1", program=patient(0.1)) as session:
        session.sees("Talk to me meanwhile")
        session.type("half a line")
        assert session.end() == 0
        assert "6 handed off, 6 told, 0 twice, in order." in session.text
        assert "half a line" not in session.text  # it is not left in between


def test_pasted_lines_are_lines_and_have_a_limit(tmp_path: Path):
    with Session(tmp_path, *LONG) as session:
        session.sees("Talk to me meanwhile")
        session.type("\x1b[200~help\x07\n" + "x" * 2_000 + "\x1b[201~\r")
        session.sees("stop everything and sum up")
        session.type("quit\r")
        assert session.end() == 0
        assert "  you > help" in session.rows
        assert session.text.replace("\n", "").count("x" * 900) == 1
        assert "x" * 1_000 not in session.text.replace("\n", "")


def test_without_the_extra(tmp_path: Path):
    hide = "import sys; sys.modules['prompt_toolkit'] = None; from meantime.app.main import main; main()"
    with Session(tmp_path, "demo", program=[sys.executable, "-c", hide]) as session:
        assert session.end() == 1
        assert "`demo` needs prompt_toolkit, which is not installed." in session.text
        assert "pip install 'meantime[server]'" in session.text
    left.nothing(tmp_path)
