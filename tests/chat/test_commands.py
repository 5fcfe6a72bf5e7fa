"""The slash commands of seed 002, typed into a real terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.person import Person
from meantime import blocking

from .conftest import Talk
from .terminal import Terminal
from .test_talking import id_of, until_there

pytestmark = pytest.mark.processes

STARTED = re.compile(r"Launched async task: .* \((\w{8})\)")


def start(terminal: Terminal, command: str) -> str:
    """A task, by the eight characters that people see."""
    before = len(STARTED.findall(terminal.text))
    terminal.say(f"run {command}")
    terminal.until(lambda: len(STARTED.findall(terminal.text)) > before)
    return STARTED.findall(terminal.text)[-1]


@pytest.mark.parametrize("command", ["/tasks", "/tasks list"])
def test_llxprt_tasks_list(talk: Talk, command: str, tmp_path: Path):
    terminal = talk().ready()
    terminal.say(command)
    terminal.sees("No async tasks")
    done = start(terminal, "echo quick")
    terminal.sees("echo quick has completed.")
    bad = start(terminal, "exit 4")
    terminal.sees("exit 4 has failed.")
    runs = start(terminal, until_there(tmp_path / "go"))
    terminal.say(command)
    terminal.sees("Async Tasks:\n\n1. [OK]")
    shown = re.sub(r"\d+\.\ds", "N", terminal.text.rpartition("Async Tasks:\n\n")[2])
    assert shown.startswith(
        f"1. [OK] [{done}] echo quick\n"
        "   Status: completed | Duration: N\n"
        "   Goal: echo quick...\n"
        "\n"
        f"2. [ERROR] [{bad}] exit 4\n"
        "   Status: failed | Duration: N\n"
        "   Goal: exit 4...\n"
        "\n"
        f"3.  [{runs}] until [ -e go ]; do sleep 0.02; done\n"
        "   Status: running | Duration: N elapsed\n"
        "   Goal: until [ -e go ]; do sleep 0.02; done..."
    )
    (tmp_path / "go").touch()


def test_llxprt_task_end(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    id = start(terminal, "sleep 60")
    terminal.say(f"/task end {id[:6]}")
    terminal.sees(
        f"Cancelled task: sleep 60 ({id})", "sleep 60 was cancelled.", f"⊘ sleep 60 ({id}) cancelled"
    )
    terminal.say(f"/task end {id}")
    terminal.sees(f"Task {id} is not running (status: cancelled)")


def test_llxprt_task_end_without_an_id(talk: Talk):
    terminal = talk().ready()
    terminal.say("/task end")
    terminal.sees("Usage: /task end <task-id>\n\nUse /tasks list to see task IDs.")


@pytest.mark.parametrize("verb", ["end", "show", "follow"])
def test_llxprt_an_id_that_is_nothing(talk: Talk, verb: str):
    terminal = talk().ready()
    terminal.say(f"/task {verb} nonesuch")
    terminal.sees("Task not found: nonesuch")
    terminal.say(f"/task {verb} ../../etc")
    terminal.sees("Task not found: ../../etc")


def test_llxprt_an_id_that_is_several(talk: Talk, person: Person, thread: str):
    """Ids are random, so these are given by hand: from a shell, into the same conversation."""
    for name in ("one", "two"):
        person("run", "--thread", thread, "--id", f"t_same{name}", "-n", f"job {name}", "--", "sleep", "60")
    terminal = talk().ready()
    terminal.say("/task end same")
    terminal.sees("Multiple tasks match 'same'. Be more specific:")
    assert "\n  sameone: job one (running)" in terminal.text
    assert "\n  sametwo: job two (running)" in terminal.text
    terminal.say("/task end sameo")
    terminal.sees("Cancelled task: job one (sameone)")
    person("cancel", "t_sametwo")


@pytest.mark.behaviour("I2", "I7")
def test_task_show_shows_a_task_while_it_runs_and_after_it_ended(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    id = start(terminal, f"echo begun; {until_there(tmp_path / 'go')}")
    terminal.say(f"/task follow {id}")
    terminal.sees(f"[async:{id}] begun")
    terminal.say(f"/task show {id}")
    terminal.sees("Status: running", "Elapsed: ", "Goal: echo begun; until", "Emitted so far:\nbegun\n")
    (tmp_path / "go").touch()
    terminal.sees("has completed.")
    terminal.say(f"/task show {id}")
    terminal.sees(
        "Status: completed", "Duration: ", '"terminate_reason": "GOAL"', '"final_message": "begun\\n"'
    )


def test_llxprt_followed_output_has_the_id_before_it(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    one, two = until_there(tmp_path / "one"), until_there(tmp_path / "two")
    loud = start(terminal, f"{one}; echo first; {two}; printf last")
    quiet = start(terminal, f"echo not asked for; {two}")
    terminal.say(f"/task follow {loud}")
    terminal.sees("Following until [ -e one ]; do sleep 0.02; done; e", "1 followed")
    (tmp_path / "one").touch()
    terminal.sees(f"[async:{loud}] first")
    (tmp_path / "two").touch()
    terminal.sees(f"[async:{loud}] last", "2 ended")
    assert f"[async:{quiet}]" not in terminal.text
    assert terminal.text.count(f"[async:{loud}] first") == 1


def test_following_can_be_ended(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    id = start(terminal, f"{until_there(tmp_path / 'one')}; echo unheard; {until_there(tmp_path / 'two')}")
    terminal.say(f"/task follow {id}")
    terminal.sees("1 followed")
    terminal.say(f"/task follow {id}")
    terminal.sees("No longer following ")
    (tmp_path / "one").touch()
    (tmp_path / "two").touch()
    terminal.sees("1 ended")
    assert f"[async:{id}]" not in terminal.text


def test_a_flood_leaves_room_for_typing(talk: Talk):
    terminal = talk().ready()
    id = start(terminal, "while :; do echo water water water; done")
    terminal.say(f"/task follow {id}")
    terminal.sees(f"[async:{id}] water water water")
    terminal.sees("lines are not shown")
    terminal.type(f"/task end {id}\r")
    terminal.sees("Cancelled task: ", "was cancelled.")


@pytest.mark.parametrize("value", ["0", "-2", "many", "nan", "inf", "1e999", "1e300"])
def test_llxprt_task_max_async_is_checked(talk: Talk, value: str):
    terminal = talk().ready()
    terminal.say(f"/set task-max-async {value}")
    terminal.sees("task-max-async must be a positive number or -1 for unlimited")


@pytest.mark.behaviour("M1")
def test_no_more_tasks_run_than_task_max_async_allows(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    terminal.say("/set task-max-async 2")
    terminal.sees("task-max-async is 2 now.")
    start(terminal, f"{until_there(tmp_path / 'go')}; echo 1")
    start(terminal, f"{until_there(tmp_path / 'go')}; echo 2")
    terminal.say("run echo one too many")
    terminal.sees("[ERROR] Max async tasks (2) reached - 2 running", "I could not hand it off.")
    terminal.press("ctrl-d")
    assert terminal.end() == 0

    again = talk().ready()  # a setting belongs to the conversation
    again.say("run echo one too many")
    again.until(lambda: again.text.count("[ERROR] Max async tasks (2) reached - 2 running") == 1)
    again.say("/set task-max-async -1")
    again.sees("task-max-async is -1 now.")
    again.say("run echo there is room")
    again.sees("  └ there is room")
    (tmp_path / "go").touch()
    again.sees("0 running")


@pytest.mark.behaviour("M1")
def test_task_max_async_may_be_above_the_number_listed_at_once(talk: Talk):
    terminal = talk().ready()
    terminal.say("/set task-max-async 1001")
    terminal.sees("task-max-async is 1001 now.")
    terminal.say("do echo in front")
    terminal.sees("  └ in front", "Done.")
    terminal.say("run echo behind")
    terminal.sees("  └ behind")


def test_a_limit_that_nobody_can_mean_is_not_taken_up_again(talk: Talk, thread: str, tmp_path: Path):
    """An earlier version kept any number that was set."""
    ledger = tmp_path / "chat.db"
    with blocking.Meantime.open(ledger) as mt:
        transcript = mt.thread(thread).transcript
        transcript.add(None, f"task-max-async {10**300}", role="setting")
        transcript.save()
    terminal = talk("--embedded", "--ledger", str(ledger)).ready()
    terminal.say("/set")
    terminal.sees("It is 5 now.")


def test_wrong_commands_are_answered_with_their_usage(talk: Talk):
    terminal = talk().ready()
    terminal.say("/nonsense at all")
    terminal.sees("Unknown command: /nonsense", "Use /help to see the commands.")
    terminal.say("/")
    terminal.sees("Unknown command: /\n")
    terminal.say("/tasks everything")
    terminal.sees("Usage: /tasks [list]")
    for line in ("/task", "/task foo", "/task foo bar"):
        terminal.say(line)
        terminal.sees("Usage: /task end|show|follow <task-id>")
    terminal.say("/task follow")
    terminal.sees("Usage: /task follow <task-id>")
    terminal.say("/set")
    terminal.sees("Usage: /set task-max-async <n>", "It is 5 now.")
    terminal.say("/set volume 11")
    terminal.sees("Unknown setting: volume", "There is: task-max-async")
    terminal.type("\r   \r")
    terminal.say("run")
    terminal.sees("Run what?")
    terminal.say("do")
    terminal.sees("Do what?")


def test_help_lists_commands_and_keys(talk: Talk):
    terminal = talk().ready()
    terminal.say("/help")
    terminal.sees("/task follow <id>", "Ctrl+B ", "Ctrl+C ")


@pytest.mark.core("the one chat whose commands are typed")
def test_completion_knows_commands_and_live_ids(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    ended = start(terminal, "true")
    terminal.sees("true has completed.")
    runs = start(terminal, until_there(tmp_path / "go"))
    terminal.sees("1 running · 1 ended")
    terminal.type("/ta")
    terminal.sees("/tasks", "end, show or follow one")
    terminal.type("sk end ")
    terminal.sees(f"{runs}  until")
    assert f"{ended}  true" not in terminal.text, "there is nothing to end"
    terminal.press("tab")
    terminal.sees(f"> /task end {runs}")
    terminal.press("enter")
    terminal.sees("Cancelled task: ")
    terminal.type("/task show ")
    terminal.sees(f"{ended}  true (completed)", f"{runs}  until")
    terminal.press("ctrl-c")
    terminal.type("/set t")
    terminal.sees("how many may run at once")


def test_commands_are_answered_while_the_agent_is_busy(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    terminal.say(f"do {until_there(tmp_path / 'go')}; echo through")
    terminal.sees("Ctrl+B background")
    terminal.say("/tasks")
    terminal.sees("No async tasks")
    terminal.press("ctrl-b")
    terminal.sees("It goes on as ")
    terminal.say(f"/task end {id_of(terminal)}")
    terminal.sees("Cancelled task: ")
