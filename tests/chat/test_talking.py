"""Somebody talks to the scripted agent, and looks at the screen."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

from cli.person import Person

from .conftest import Talk
from .terminal import Terminal

pytestmark = pytest.mark.processes

ENDED = re.compile(r"^[✓✗⊘] (.*?) \((\w{8})\) ", re.MULTILINE)


def until_there(file: Path) -> str:
    """A command that waits for a file in the folder of the chat: the test says when it ends."""
    return f"until [ -e {file.name} ]; do sleep 0.02; done"


def told(terminal: Terminal) -> list[str]:
    """The titles of what was told, as the screen has them, from the top."""
    return [found[1] for found in ENDED.finditer(terminal.text)]


def id_of(terminal: Terminal) -> str:
    found = re.findall(r"(?:runs|goes on) as (\w{8})\.", terminal.text)
    return found[-1]


@pytest.mark.core("the one chat that is woken")
@pytest.mark.behaviour("N5")
def test_it_answers_at_once_and_wakes_by_itself(talk: Talk, tmp_path: Path):
    """Handing off is an answer; the ending comes when nobody says anything."""
    terminal = talk().ready()
    terminal.say(f"run {until_there(tmp_path / 'go')}; echo over there")
    terminal.sees("Launched async task: ", "I tell you when it has ended; go on.")
    terminal.say("status")
    terminal.sees("Still running: ")
    (tmp_path / "go").touch()
    terminal.sees("completed in", "  └ over there", "has completed.")
    assert len(told(terminal)) == 1


@pytest.mark.behaviour("N3", "N8")
def test_endings_are_shown_once_each_in_order(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    for name in ("one", "two", "three"):
        terminal.say(f"run {until_there(tmp_path / name)}; echo {name}")
        terminal.until(
            lambda name=name: terminal.text.count("go on.") == ["one", "two", "three"].index(name) + 1
        )
    for place, name in enumerate(("two", "three", "one"), 1):
        (tmp_path / name).touch()
        terminal.until(lambda place=place: len(told(terminal)) == place)
    terminal.sees("0 running · 3 ended")
    assert [title.rpartition(" ")[2] for title in told(terminal)] == ["two", "three", "one"]


@pytest.mark.behaviour("N6")
def test_a_busy_agent_is_told_between_turns(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    terminal.say(f"run {until_there(tmp_path / 'first')}; echo from behind")
    terminal.sees("go on.")
    terminal.say(f"do {until_there(tmp_path / 'second')}; echo in front")
    terminal.sees("Ctrl+B background")
    (tmp_path / "first").touch()
    terminal.sees("0 running · 1 ended")
    assert told(terminal) == [], "it is in the middle of a turn"
    (tmp_path / "second").touch()
    terminal.sees("  └ from behind")
    assert terminal.text.index("└ in front") < terminal.text.index("└ from behind")


def test_a_foreground_call_shows_what_came_of_it(talk: Talk):
    terminal = talk().ready()
    terminal.say("do echo to stdout; echo to stderr >&2; exit 3")
    terminal.sees("to stderr", "It failed.")
    terminal.say("do seq 1 20")
    terminal.sees("… 12 lines before", "    20", "Done.")
    assert "    12\n" not in terminal.text


@pytest.mark.parametrize("ends", ["", "; exit 3"])
def test_of_what_is_too_long_to_keep_the_lines_are_counted_too(talk: Talk, ends: str):
    terminal = talk().ready()
    terminal.say(f"run seq 1 100000{ends}")
    terminal.sees("  └ … 99,992 lines before\n    99993\n", "    100000\n")


def test_a_failed_command_shows_its_own_last_lines(talk: Talk):
    """Its exit code is in the line above; a long title is cut, and says so."""
    terminal = talk(columns=80).ready()
    terminal.say("run for i in $(seq 12); do echo line $i; done; exit 3 # " + "and so on " * 10)
    terminal.sees("failed with exit code 3 after", "  └ … 4 lines before\n    line 5\n", "    line 12\n")
    terminal.say("/tasks")
    terminal.sees("[ERROR] [")
    row = next(row for row in terminal.rows if row.startswith("1. [ERROR] ["))
    assert row.endswith("…")


@pytest.mark.behaviour("F5")
def test_ctrl_b_sends_the_call_to_the_background(talk: Talk, tmp_path: Path):
    """The same run goes on: nothing is executed twice."""
    terminal = talk().ready()
    terminal.say(f"do echo x >> ran; {until_there(tmp_path / 'go')}; echo later")
    terminal.sees("Ctrl+B background")
    terminal.press("ctrl-b")
    terminal.sees("Launched async task: ", "It goes on as ", "1 running")
    (tmp_path / "go").touch()
    terminal.sees("  └ later")
    assert (tmp_path / "ran").read_text() == "x\n"


def test_ctrl_b_moves_the_cursor_where_nothing_is_waited_for(talk: Talk):
    terminal = talk().ready()
    terminal.type("status?\x02\x08")  # back over the ?, and away with the s
    terminal.until(lambda: terminal.text.rstrip().split("\n")[-1].strip() and "> statu?" in terminal.text)


def test_ctrl_c_interrupts_the_agent_and_the_work_lives_on(
    talk: Talk, tmp_path: Path, person: Person, thread: str
):
    terminal = talk().ready()
    terminal.say(f"do {until_there(tmp_path / 'go')}; echo survived")
    terminal.sees("Ctrl+B background")
    terminal.press("ctrl-c")
    terminal.sees("Launched async task: ", "Interrupted.", "1 running")
    assert "It goes on as" not in terminal.text, "it was interrupted"
    terminal.say("status")
    terminal.sees("Still running: ")
    (tmp_path / "go").touch()
    terminal.sees("  └ survived", "has completed.")
    terminal.press("ctrl-d")
    assert terminal.end() == 0
    again = talk().ready()
    again.sees("— now —")
    assert again.text.count("Interrupted.") == 1


def test_ctrl_c_on_an_idle_agent_clears_the_line(talk: Talk):
    terminal = talk().ready()
    terminal.type("nothing that I want to say")
    terminal.sees("> nothing that I want to say")
    terminal.press("ctrl-c")
    terminal.until(lambda: "nothing that" not in terminal.text)
    terminal.press("ctrl-c")
    terminal.sees("Ctrl+D leaves; what runs goes on.")
    assert terminal.process.poll() is None


@pytest.mark.parametrize("way", ["\x04", "/quit\r"])
def test_leaving_says_what_still_runs(talk: Talk, tmp_path: Path, way: str, person: Person, thread: str):
    terminal = talk().ready()
    terminal.say(f"run {until_there(tmp_path / 'go')}")
    terminal.sees("1 running")
    terminal.type(way)
    assert terminal.end() == 0
    id = id_of(terminal)
    assert "Still running; you are told when you are back:" in terminal.text
    assert f"  {id}  until" in terminal.text
    assert person.json("show", id)["state"] == "running"
    (tmp_path / "go").touch()


def test_leaving_in_the_middle_of_a_call_leaves_it_running(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    terminal.say(f"do {until_there(tmp_path / 'go')}; echo alone")
    terminal.sees("Ctrl+B background")
    terminal.press("ctrl-d")
    assert terminal.end() == 0
    assert "Still running; you are told when you are back:" in terminal.text
    (tmp_path / "go").touch()
    again = talk().ready()
    again.sees("  └ alone")


def test_leaving_with_nothing_running_is_quiet(talk: Talk):
    terminal = talk().ready()
    terminal.press("ctrl-d")
    assert terminal.end() == 0
    assert "Still running" not in terminal.text
    assert terminal.modes_are_back()


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("where", ["daemon", "embedded"])
def test_what_ended_meanwhile_is_told_once_when_one_is_back(
    talk: Talk, tmp_path: Path, where: str, person: Person
):
    """The conversation is in the ledger: what was said is shown again, what was told is not told again."""
    options = ["--embedded", "--ledger", str(tmp_path / "chat.db")] if where == "embedded" else []
    terminal = talk(*options).ready()
    terminal.say("run echo before")
    terminal.sees("  └ before", "has completed.")
    terminal.say(f"run {until_there(tmp_path / 'go')}; echo meanwhile")
    terminal.until(lambda: terminal.text.count("go on.") == 2)
    terminal.press("ctrl-d")
    assert terminal.end() == 0

    (tmp_path / "go").touch()
    again = talk(*options).ready()
    again.sees("— earlier in ", "> run echo before", "  └ before", "— now —", "  └ meanwhile")
    earlier, _, now = again.text.partition("— now —")
    assert earlier.count("  └ before") == 1
    assert "  └ before" not in now
    assert now.count("  └ meanwhile") == 1
    again.sees("e… has completed.")
    again.until(lambda: again.rows[-1].startswith(" 0 running"), "the agent is idle")
    again.press("up")
    again.until(lambda: f"> run {until_there(tmp_path / 'go')}"[:60] in now_of(again))
    again.press("ctrl-c")
    again.press("ctrl-d")
    assert again.end() == 0

    third = talk(*options).ready()
    third.sees("  └ meanwhile")
    third.say("status")
    third.sees("Nothing is running.")
    assert "  └ meanwhile" not in now_of(third)


def now_of(terminal: Terminal) -> str:
    return terminal.text.partition("— now —")[2]


# It is killed when the notice is leased and in its hands, and not acknowledged.
KILLED_BEFORE_ITS_ACK = """
import os, signal
from meantime.conversation import turn
async def ack(self, *notices, transcript=None):
    os.kill(os.getpid(), signal.SIGKILL)
turn.Turn.ack = ack
from meantime.app.main import main
main()
"""
# And when it is acknowledged, and not shown.
KILLED_AFTER_ITS_ACK = """
import os, signal
from meantime.conversation import turn
real = turn.Turn.ack
async def ack(self, *notices, transcript=None):
    await real(self, *notices, transcript=transcript)
    os.kill(os.getpid(), signal.SIGKILL)
turn.Turn.ack = ack
from meantime.app.main import main
main()
"""


@pytest.mark.core("the one chat that is killed")
@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("program", [KILLED_BEFORE_ITS_ACK, KILLED_AFTER_ITS_ACK], ids=["before", "after"])
def test_killed_around_the_ack_it_is_told_once(
    talk: Talk, tmp_path: Path, program: str, person: Person, thread: str
):
    """Never lost, never doubled: neither on the screen nor in the transcript."""
    terminal = talk(program=[sys.executable, "-c", program]).ready()
    terminal.say("run echo the news")
    terminal.sees("go on.")
    assert terminal.end() == -signal.SIGKILL
    assert told(terminal) == [], "it was not shown before it was saved"

    again = talk().ready()
    again.sees("  └ the news")
    again.sees("has completed.")
    assert len(told(again)) == 1
    again.press("ctrl-d")
    assert again.end() == 0
    third = talk().ready()
    third.sees("— now —")
    assert len(told(third)) == 1
    assert told_in_ledger(person, thread) == 1


def told_in_ledger(person: Person, thread: str) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{person.home}/ledger.db?mode=ro", uri=True)) as reading:
        found = reading.execute("SELECT count(notice) FROM transcripts WHERE thread = ?", [thread]).fetchone()
    return found[0]


def test_killed_in_the_middle_of_a_turn_it_does_not_do_it_again(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    terminal.say("do echo x >> ran; sleep 3600")
    ran = tmp_path / "ran"
    until(lambda: ran.exists() and ran.read_text(), "the command runs")
    terminal.kill()
    again = talk().ready()
    again.sees("I was stopped before I answered")
    assert ran.read_text() == "x\n"


@pytest.mark.behaviour("P3")
def test_what_was_typed_to_a_busy_agent_is_not_lost_by_a_kill(talk: Talk, tmp_path: Path):
    """It was never taken up: so it is said when one is back, once."""
    terminal = talk().ready()
    terminal.say(f"do {until_there(tmp_path / 'go')}")
    terminal.sees("Ctrl+B background")
    terminal.say("run echo first of two")
    terminal.say("run echo second of two")
    terminal.type("/tasks\r")  # answered at once, and after the lines before it
    terminal.sees("No async tasks")
    terminal.kill()

    again = talk().ready()
    again.sees("— now —\n> run echo first of two\n> run echo second of two\n", 'before I answered "do until')
    again.sees("  └ first of two", "  └ second of two", "0 running · 2 ended")
    assert again.text.count("● run  echo first of two") == 1
    again.press("ctrl-d")
    assert again.end() == 0

    third = talk().ready()
    third.sees("— now —")
    third.say("status")
    third.sees("Nothing is running.")
    assert third.text.count("● run") == 0, "they were said, and are not said again"
    (tmp_path / "go").touch()


@pytest.mark.behaviour("P3")
def test_a_second_terminal_does_not_say_what_the_first_is_about_to(talk: Talk, tmp_path: Path):
    first = talk().ready()
    first.say(f"do {until_there(tmp_path / 'go')}")
    first.sees("Ctrl+B background")
    first.say("do echo x >> ran")
    first.type("/tasks\r")  # answered after the line before it is kept
    first.sees("No async tasks")

    second = talk().ready()
    second.sees("— now —")
    second.say("do echo here I am")
    second.sees("  └ here I am")
    assert "echo x >> ran" not in second.text
    assert "I was stopped before I answered" not in second.text
    assert not (tmp_path / "ran").exists()
    (tmp_path / "go").touch()
    first.until(lambda: first.text.count("Done.") == 2)
    assert (tmp_path / "ran").read_text() == "x\n"


def test_a_terminal_that_goes_away(talk: Talk, tmp_path: Path, person: Person):
    """The chat ends cleanly; the work goes on, and is told in the next terminal."""
    terminal = talk().ready()
    terminal.say(f"run {until_there(tmp_path / 'go')}; echo after the window was closed")
    terminal.sees("go on.")
    terminal.hang_up()
    assert terminal.process.wait(LIMIT) == 128 + signal.SIGHUP
    (tmp_path / "go").touch()
    again = talk().ready()
    again.sees("  └ after the window was closed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_chat_and_leaves_the_terminal_as_it_was(talk: Talk, number: signal.Signals):
    terminal = talk().ready()
    terminal.process.send_signal(number)
    assert terminal.end() == 128 + number
    assert terminal.modes_are_back()


def test_killed_politely_on_a_terminal_that_can_only_write(talk: Talk):
    terminal = talk(TERM="dumb")
    terminal.sees("/help", "\n>")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.end() == 128 + signal.SIGTERM
    assert terminal.modes_are_back()


# The signal comes between two prompts: a line is being kept, which can last where the daemon is away.
KILLED_BETWEEN_PROMPTS = """
import asyncio, os, signal
from meantime.surfaces.chat.chat_transcript import ChatTranscript
from meantime.surfaces.terminal.screen import Screen
heard = asyncio.Event()
leave, typed = Screen.leave, ChatTranscript.typed
def leaving(self):
    leave(self)
    heard.set()
async def typing(self, text):
    os.kill(os.getpid(), signal.SIGTERM)
    await heard.wait()
    await typed(self, text)
Screen.leave, ChatTranscript.typed = leaving, typing
from meantime.app.main import main
main()
"""


def test_killed_politely_between_two_prompts(talk: Talk):
    """It leaves, and the line is not lost."""
    terminal = talk(program=[sys.executable, "-c", KILLED_BETWEEN_PROMPTS]).ready()
    terminal.say("do echo still to be kept")
    assert terminal.end() == 128 + signal.SIGTERM
    assert terminal.modes_are_back()
    again = talk().ready()
    again.sees("> do echo still to be kept")


# A line is kept as soon as somebody opens the other end of a FIFO in the folder of the chat.
KEPT_LATE = """
import asyncio
from meantime.surfaces.chat.chat_transcript import ChatTranscript
typed = ChatTranscript.typed
async def typing(self, text):
    if text == "wait":
        await asyncio.to_thread(lambda: open("keep").close())
    await typed(self, text)
ChatTranscript.typed = typing
from meantime.app.main import main
main()
"""


def test_ctrl_c_between_two_prompts_interrupts_with_the_next(talk: Talk, tmp_path: Path):
    os.mkfifo(tmp_path / "keep")
    terminal = talk(program=[sys.executable, "-c", KEPT_LATE]).ready()
    terminal.say(f"do {until_there(tmp_path / 'go')}")
    terminal.sees("Ctrl+B background")
    terminal.say("wait")
    terminal.until(lambda: "Ctrl+B background" not in terminal.text, "the prompt ends")
    terminal.press("ctrl-c")
    (tmp_path / "keep").write_text("")
    terminal.sees("Interrupted.")
    (tmp_path / "go").touch()


def test_the_daemon_is_started_again_under_it(talk: Talk, person: Person, tmp_path: Path):
    """The work goes on, the chat finds the next daemon, and the ending is told once."""
    terminal = talk().ready()
    terminal.say(f"run {until_there(tmp_path / 'go')}; echo over the restart")
    terminal.sees("go on.", "1 running")
    assert person("down", "--keep").code == 0
    (tmp_path / "go").touch()
    person.up()
    terminal.sees("  └ over the restart", "0 running · 1 ended")
    terminal.say("run echo and on")
    terminal.sees("  └ and on")
    assert len(told(terminal)) == 2


def test_no_color_shows_no_colours(talk: Talk):
    terminal = talk(NO_COLOR="1").ready()
    terminal.say("do echo plain; exit 1")
    terminal.sees("It failed.")
    terminal.say("/nonsense")
    terminal.sees("Unknown command")
    terminal.press("ctrl-d")
    assert terminal.end() == 0
    colours = re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw)
    assert {code for found in colours for code in found.split(b";")} <= {b"", b"0"}


def test_calls_are_coloured_on_a_terminal(talk: Talk):
    terminal = talk().ready()
    terminal.say("do true")
    terminal.sees("Done.")
    assert b"\x1b[36m" in terminal.raw


def test_what_a_task_says_cannot_touch_the_terminal(talk: Talk):
    terminal = talk().ready()
    terminal.say(r"do printf '\033]0;owned\007\033[2Jgone\rback\n\342\200\256reversed'")
    terminal.sees("Done.")
    assert b"owned" not in terminal.raw.replace(b"033]0;owned", b"")
    assert "\u202e" not in terminal.text


def test_a_narrow_terminal(talk: Talk):
    terminal = talk(columns=40).ready()
    terminal.say("run true")
    terminal.sees("has completed.")
    assert max(len(row) for row in terminal.rows) <= 40


def test_a_terminal_that_can_only_write(talk: Talk):
    """No toolbar and no colours; it talks and tells all the same."""
    terminal = talk(TERM="dumb")
    terminal.sees("/help")
    terminal.type("run echo simple\r")
    terminal.sees("go on.", "  └ simple", "has completed.")
    terminal.press("ctrl-d")
    assert terminal.end() == 0
    assert b"\x1b[3" not in terminal.raw


def test_several_lines_at_once(talk: Talk, tmp_path: Path):
    """Pasted, as terminals do it: one message, not several."""
    terminal = talk().ready()
    terminal.type("\x1b[200~do echo one\necho two\x1b[201~")
    terminal.sees("> do echo one\n  echo two")
    terminal.press("enter")
    terminal.sees("  └ one\n    two", "Done.")


def test_the_errands_are_real_work(talk: Talk, tmp_path: Path):
    (tmp_path / "poem.txt").write_text("roses are red\nviolets are blue\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "data.json").write_text(json.dumps({"a": 1}))
    terminal = talk().ready()
    terminal.say("index .")
    terminal.sees("2 files, 2 lines, 8 words: 1 .txt, 1 .json")
    terminal.say("explore folder")
    terminal.sees("1 files, 8 bytes")
    terminal.say("index nowhere")
    terminal.sees("There is no folder nowhere.")


def test_the_executable_says_what_it_needs(person: Person):
    done = person("chat")
    assert done.code == 2
    assert "`chat` needs a terminal to talk in." in done.err
    done = person("chat", "--base-url", "http://127.0.0.1:1")
    assert (done.code, "Give --model too." in done.err) == (2, True)
    done = person("chat", "--ledger", "x.db")
    assert (done.code, "Give --embedded too." in done.err) == (2, True)


@pytest.mark.parametrize(
    ("missing", "options", "install"),
    [
        ("prompt_toolkit", [], "pip install 'meantime[server]'"),
        ("pydantic_ai", ["--model", "openai:x"], "pip install 'meantime[server,model]'"),
    ],
)
def test_without_the_extra(talk: Talk, missing: str, options: list[str], install: str):
    hide = f"import sys; sys.modules[{missing!r}] = None; from meantime.app.main import main; main()"
    terminal = talk(*options, program=[sys.executable, "-c", hide])
    assert terminal.end() == 1
    assert f"needs {missing}, which is not installed." in terminal.text
    assert install in terminal.text


def test_a_ledger_that_is_taken(talk: Talk, tmp_path: Path):
    ledger = ["--embedded", "--ledger", str(tmp_path / "chat.db")]
    talk(*ledger, columns=200).ready()
    second = talk(*ledger, columns=200)
    assert second.end() == 1
    assert "meantime: " in second.text
    assert "Traceback" not in second.text
