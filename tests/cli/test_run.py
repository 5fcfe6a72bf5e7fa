"""`meantime run`: the command gets what the caller has, and the caller gets what the command gives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

import pytest
from tests.waiting import LIMIT, until

from gates import open_gate

from .person import Person


@pytest.mark.behaviour("H17")
def test_it_says_what_was_started(person: Person):
    done = person("run", "-n", "tests", "--", "true")
    assert done.code == 0
    word, id, name = done.out.split()
    assert (word, name) == ("started", "(tests)")
    assert id.startswith("t_")
    assert person("wait", id, "-q") == (0, "", "")


def test_on_a_terminal_it_says_what_to_do_next(person: Person):
    terminal = person.terminal("run", "--", "true")
    assert terminal.end() == 0
    assert "meantime logs -f" in terminal.screen
    assert "stop it" in terminal.screen


def test_the_command_has_the_folder_and_the_environment_of_its_caller(person: Person):
    """Not those of the daemon, which was started elsewhere."""
    place = person.folder / "elsewhere"
    place.mkdir()
    done = person("run", "-w", "-c", "pwd; echo $FLAVOUR $MORE", "-e", "MORE=b=c", cwd=place,
                  environ={"FLAVOUR": "mint"})  # fmt: skip
    assert done == (0, f"{place}\nmint b=c\n", "")
    assert person("run", "-w", "--cwd", "elsewhere", "--", "pwd").out == f"{place}\n"


@pytest.mark.processes
def test_no_variable_of_the_daemon_comes_through(loner: Person):
    assert loner("up", environ={"SECRET": "of another shell"}).code == 0
    line = "echo ${SECRET:-none} ${KEPT:-none}"
    assert loner("run", "-w", "-c", line, environ={"KEPT": "yes"}).out == "none yes\n"
    assert loner("run", "-w", "--no-env", "-c", line).out == "of another shell none\n"


def test_no_env_hands_over_only_what_is_named(person: Person):
    done = person("run", "-w", "--no-env", "-e", "A=1", "-e", "KEPT", "-c", 'echo "$A-$KEPT-$LEFT"',
                  environ={"KEPT": "yes", "LEFT": "no"})  # fmt: skip
    assert done.out == "1-yes-\n"


@pytest.mark.behaviour("H17")
@pytest.mark.parametrize(
    ("line", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("exit 255", 255)],
)
def test_wait_passes_the_exit_code_through(person: Person, line: str, code: int):
    assert person("run", "-w", "-c", line).code == code


def test_wait_keeps_stdout_and_stderr_apart(person: Person):
    done = person("run", "--wait", "-c", "echo out; echo err >&2; exit 5")
    assert done == (5, "out\n", "err\n")
    done = person.bytes("run", "--wait", "-c", "printf '\\377\\000x'")
    assert done.stdout == b"\xff\0x"


@pytest.mark.behaviour("H17", "H18")
def test_wait_streams_while_it_runs(person: Person):
    gate = person.folder / "gate"
    os.mkfifo(gate)
    running = person.begin("run", "-w", "-c", f"echo first; read line < {gate}; echo second")
    assert running.stdout is not None
    assert running.stdout.readline() == b"first\n"  # it waits for us, so this came while it ran
    open_gate(gate, "go\n")
    assert running.stdout.read() == b"second\n"
    assert running.wait(LIMIT) == 0
    running.communicate()


def test_a_timeout_is_124(person: Person):
    done = person("run", "-w", "-t", "100ms", "--", "sleep", "60")
    assert done.code == 124
    assert "Timed out" in done.err


def test_interrupting_the_wait_leaves_the_task_alive(person: Person):
    running = person.begin("run", "-w", "--id", "left-alive", "-c", "echo here; sleep 300")
    assert running.stdout is not None
    assert running.stdout.readline() == b"here\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=LIMIT)
    assert running.returncode == 130
    assert "left-ali runs on." in err.decode()
    assert person.json("show", "left-alive")["state"] == "running"
    assert person("cancel", "-w", "left-alive").code == 0


def test_json_is_the_task(person: Person):
    task = person.json("run", "-n", "j", "-b", "b1", "--thread", "talk", "--", "true")
    assert (task["description"], task["batchId"], task["parentSessionID"]) == ("j", "b1", "talk")
    done = person("run", "--json", "-w", "-c", "echo hidden; exit 9")
    assert done.code == 9
    assert json.loads(done.out)["exitCode"] == 9


def test_the_thread_comes_from_the_environment(person: Person):
    task = json.loads(person("run", "--json", "--", "true", environ={"MEANTIME_THREAD": "mine"}).out)
    assert task["parentSessionID"] == "mine"
    assert person.json("run", "true")["parentSessionID"] == "cli"


def test_what_may_run_again_has_no_variables(person: Person):
    done = person("run", "--retry", "--", "true")
    assert done.code == 2
    assert "--no-env" in done.err
    assert person("run", "-w", "--retry", "--no-env", "--", "echo", "again") == (0, "again\n", "")


def test_options_after_the_command_are_the_commands(person: Person):
    assert person("run", "-w", "echo", "-n", "--json").out == "--json"


def test_a_second_start_with_the_same_id_is_refused(person: Person):
    person.start("--id", "only-one", "--", "true")
    done = person("run", "--id", "only-one", "--", "true")
    assert done.code == 1
    assert "only-one" in done.err
    assert "Nothing was started. `meantime show only-one` shows that task." in done.err


def test_a_program_that_is_not_there_is_named(person: Person):
    done = person("run", "-w", "--", "no-such-program-at-all")
    assert done.code == 6
    assert "no-such-program-at-all" in done.err


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "-c", "x", "--", "y"], ["run", "-e", "=x", "true"], ["run", "-t", "soon", "true"]],
)
def test_bad_orders_are_refused_here(person: Person, arguments: list[str]):
    done = person(*arguments)
    assert done.code == 2
    assert done.err.startswith("meantime: ")
    assert "Traceback" not in done.err


def test_an_environment_that_is_too_big_says_what_to_do(person: Person):
    big = {f"BIG{at}": "x" * 100_000 for at in range(11)}
    done = person("run", "--", "true", environ=big)
    assert done.code == 2
    assert "--no-env" in done.err
    assert person("run", "-w", "--no-env", "-e", "PATH", "--", "true", environ=big).code == 0


def test_a_variable_that_is_not_utf8_is_left_out_and_named(person: Person):
    done = person("run", "-w", "-c", "echo ${STRANGE:-unset}", environ={"STRANGE": os.fsdecode(b"\xff")})
    assert done.out == "unset\n"
    assert done.err == "meantime: not UTF-8, and therefore not handed over: STRANGE\n"


def test_a_terminal_for_the_command_and_an_open_stdin(person: Person):
    done = person("run", "-w", "--pty", "--", sys.executable, "-c", "import os; print(os.isatty(1))")
    assert done.out == "True\r\n"
    id = person.start("--stdin-open", "--", "cat")
    assert person("send", id, "hello", "you").code == 0
    assert person("send", id, "-n", "--eof", "end").code == 0
    assert person("wait", id, "-q").code == 0
    assert person("result", id).out == "hello you\nend\n"
    id = person.start("--stdin-open", "--", "cat")
    assert person("send", id, "-", "--eof", stdin="piped\n").code == 0
    assert person("wait", id, "-q").code == 0
    assert person("logs", id).out == "piped\n"
    assert person("send", id, "late").code == 1


def test_what_is_over_the_limit_waits_for_a_slot(person: Person):
    with contextlib.closing(person.daemon()) as asking:
        before = asking.get("/v1/info")["limits"]["perThread"]
        for _ in range(before):
            asking.post("/v1/tasks", {"thread": "busy", "command": ["sleep", "300"]})
    done = person("run", "--thread", "busy", "--", "true")
    assert done.out.startswith("queued t_")
    assert "waits for a slot" in person("ps", "--thread", "busy").out
    assert person("cancel", "--thread", "busy", "-w").code == 0
    active = ("ps", "--thread", "busy", "--status", "active")
    until(lambda: person.json(*active)["tasks"] == [], "nothing is active")


def test_an_agent_without_a_prompt(person: Person):
    done = person("run", "--agent", "explore")
    assert done.code == 2
    assert done.err.startswith("meantime: An agent needs a prompt.\n  For example: meantime run --agent NAME")
    assert person("run").err.startswith("meantime: Nothing to run.\n  For example: meantime run -- ")


@pytest.mark.processes
def test_a_person_is_told_by_seeing_it_end(loner: Person):
    """No notice is left unread that nobody will take; who names a thread, or is an agent, is told."""
    for arguments in ((), ("--thread", "cli"), ("--thread", "talk")):
        id = loner.start(*arguments, "--", "true")
        assert loner("wait", id).code == 0
    loner("run", "-w", "--", "true")
    assert len(loner.json("inbox")["notices"]) == 1
    assert len(loner.json("inbox", "talk")["notices"]) == 1
    assert len(loner.json("ps", "-a")["tasks"]) == 4
    assert loner("audit").code == 0
