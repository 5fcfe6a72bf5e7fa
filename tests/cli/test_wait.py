"""`meantime wait` and `meantime cancel`: one, any, all, a batch; what they print and how they end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from gates import open_gate

from .person import Person


class Gates:
    """Commands that end when they are told to."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.count = 0

    def start(self, *arguments: str, then: str = "exit 0") -> tuple[str, Path]:
        self.count += 1
        gate = self.person.folder / f"gate{self.count}"
        os.mkfifo(gate)
        return self.person.start(*arguments, "-c", f"read line < {gate}; {then}"), gate


@pytest.fixture(scope="module")
def gates(person: Person) -> Gates:
    return Gates(person)


def test_wait_ends_with_its_task(person: Person, gates: Gates):
    id, gate = gates.start("-n", "slow")
    waiting = person.begin("wait", id)
    open_gate(gate)
    out, err = waiting.communicate(timeout=LIMIT)
    assert (waiting.returncode, err) == (0, b"")
    words = out.decode().split()
    assert words[:3] == [id[2:10], "✓", "completed"]
    assert words[-1] == "slow"


@pytest.mark.parametrize(("then", "code"), [("exit 3", 6), ("kill -9 $$", 6), ("true", 0)])
def test_how_it_ended_is_the_exit_code(person: Person, then: str, code: int):
    assert person("wait", "-q", person.start("-c", then)).code == code


def test_any_and_all(person: Person, gates: Gates):
    slow, slow_gate = gates.start()
    quick, quick_gate = gates.start(then="exit 3")
    open_gate(quick_gate)
    done = person("wait", "--any", slow, quick)
    assert done.code == 6
    assert done.out.splitlines()[0].startswith(quick[2:10])
    assert len(done.out.splitlines()) == 1
    open_gate(slow_gate)
    found = person.json("wait", slow, quick)
    assert found["done"] is True
    assert {task["id"]: task["state"] for task in found["tasks"]} == {slow: "completed", quick: "failed"}


def test_a_batch_with_its_bar(person: Person, gates: Gates):
    first, second = gates.start("-b", "auth-fix", then="exit 1"), gates.start("-b", "auth-fix")
    terminal = person.terminal("wait", "-b", "auth-fix")
    terminal.until("auth-fix  ░░░░░░░░ 0/2")
    first[1].write_text("\n")
    terminal.until("auth-fix  ▓▓▓▓░░░░ 1/2  ✗1")
    third = gates.start("-b", "auth-fix")
    second[1].write_text("\n")
    terminal.until("▓▓▓▓▓░░░ 2/3  ✗1")
    third[1].write_text("\n")
    assert terminal.end() == 6
    assert terminal.screen.count("✓ completed") == 2
    assert person("wait", "-q", "-b", "auth-fix").code == 6


@pytest.mark.processes
def test_a_batch_without_a_terminal_is_plain_lines(person: Person, gates: Gates):
    started = [gates.start("-b", "plain") for _ in range(2)]
    waiting = person.begin("wait", "-b", "plain")
    for id, gate in started:
        open_gate(gate)
        assert waiting.stdout is not None
        assert waiting.stdout.readline().decode().startswith(id[2:10])
    assert waiting.communicate(timeout=LIMIT)[0] == b""
    assert waiting.returncode == 0


def test_the_time_is_over(person: Person, gates: Gates):
    id, gate = gates.start("-n", "slow one")
    said = f"meantime: 1 of 1 still active: {id.removeprefix('t_')[:8]} (slow one).\n"
    assert person("wait", "-t", "100ms", id) == (124, "", said)
    assert person("wait", "-q", "-t", "100ms", id) == (124, "", "")
    assert person("wait", "-t", "0", id).code == 8
    assert person.json("wait", "-t", "0", id)["done"] is False
    open_gate(gate)
    assert person("wait", "-q", id, "-t", f"{LIMIT:g}").code == 0


def test_interrupting_leaves_the_task_alive(person: Person, gates: Gates):
    id, gate = gates.start("-n", "patient")
    terminal = person.terminal("wait", id)
    terminal.until("patient")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "the tasks run on" in terminal.screen
    ended = person.start("--", "true")
    waiting = person.begin("wait", ended, id)
    assert waiting.stdout is not None
    assert waiting.stdout.readline().decode().startswith(ended[2:10])
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=LIMIT)
    assert waiting.returncode == 130
    assert person.json("show", id)["state"] == "running"
    open_gate(gate)


@pytest.mark.parametrize("arguments", [["wait"], ["wait", "-b", "no-such-batch"], ["wait", "nobody"]])
def test_nothing_to_wait_for(person: Person, arguments: list[str]):
    done = person(*arguments)
    assert done.code == (2 if len(arguments) == 1 else 3)
    assert len(done.err.splitlines()) == 2


def test_a_conversation_whose_tasks_have_ended_is_said_so(person: Person):
    id = person.start("--thread", "over", "-n", "last one", "-c", "echo oops; exit 3")
    assert person("wait", id).code == 6
    done = person("wait", "--thread", "over")

    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("meantime: Nothing of over is active (1 failed). The last to end: ")
    assert done.err.endswith("last one  exit 3 · oops\n")
    assert person("wait", "--thread", "over", "-q") == (0, "", "")
    assert person("wait", "--thread", "unheard-of") == (0, "", "meantime: unheard-of has no tasks.\n")


def test_cancel_stops_a_task_and_is_harmless_twice(person: Person, gates: Gates):
    id = person.start("-n", "sleeper", "--", "sleep", "600")
    done = person("cancel", "-w", id[2:8], "--reason", "enough")
    assert done == (0, f"{id[2:10]} (sleeper) ⊘ cancelled\n", "")
    assert person("wait", "-q", id).code == 7
    again = person("cancel", id)
    assert again.code == 0
    assert "had ended already" in again.out


def test_cancel_stops_a_whole_batch(person: Person):
    ids = [person.start("-b", "doomed", "--thread", name, "--", "sleep", "600") for name in ("x", "y")]
    found = person.json("cancel", "-b", "doomed", "-w")
    assert {answer["task"]["id"] for answer in found["answers"]} == set(ids)
    assert {answer["task"]["state"] for answer in found["answers"]} == {"cancelled"}
    assert person("cancel", "-b", "doomed").out == "Nothing of it is active.\n"


def test_one_that_is_unknown_stops_none(person: Person, gates: Gates):
    id, gate = gates.start()
    assert person("cancel", id, "nobody").code == 3
    assert person.json("show", id)["state"] == "running"
    assert person("cancel").code == 2
    open_gate(gate)
