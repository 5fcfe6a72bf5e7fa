"""`meantime wait --tell`: blocks until a conversation is to be told something, tells it, and ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from gates import open_gate

from .person import Person, until_connected, wait

pytestmark = pytest.mark.processes


class Talk:
    """A thread, with commands that end when they are told to."""

    def __init__(self, person: Person, name: str) -> None:
        self.person = person
        self.name = name
        self.gate = person.folder / f"gate-{name}"
        os.mkfifo(self.gate)
        self.asking = person.daemon()

    def start(self, line: str = "true") -> str:
        return self.asking.post("/v1/tasks", {"thread": self.name, "command": line})["id"]

    def held(self) -> str:
        return self.start(f"read line < {self.gate}; echo forty-two")

    def ended(self) -> str:
        id = self.start("echo forty-two")
        wait(self.asking, id)
        return id

    @property
    def numbers(self) -> tuple[int, int]:
        found: Any = self.asking.get(f"/v1/threads/{self.name}")
        return found["unread"], found["leased"]


@pytest.fixture
def talk(person: Person, request: pytest.FixtureRequest) -> Talk:
    return Talk(person, re.sub(r"\W+", "-", request.node.name).strip("-"))


def test_it_blocks_tells_and_ends(person: Person, talk: Talk):
    id = talk.held()
    waiting = person.begin("wait", "--tell", "--thread", talk.name)
    assert waiting.poll() is None
    open_gate(talk.gate)
    out, err = waiting.communicate(timeout=LIMIT)
    assert (waiting.returncode, err) == (0, b"")
    assert f'<task-notification id="{id}.1"' in out.decode()
    assert "forty-two" in out.decode()
    assert talk.numbers == (0, 0)


def test_what_is_unread_already_is_told_at_once(person: Person, talk: Talk):
    ids = [talk.ended(), talk.ended()]
    found = json.loads(person("wait", "--tell", "--json", "--thread", talk.name).out)
    assert [notice["taskId"] for notice in found["notices"]] == ids
    assert talk.numbers == (0, 0)


def test_endings_that_come_close_together_are_told_together(person: Person, talk: Talk):
    gates = [person.folder / f"{talk.name}-{number}" for number in range(5)]
    ids = [talk.start(f"while ! test -e {gate}; do sleep 0.02; done") for gate in gates]
    waiting = person.begin("wait", "--tell", "--json", "--settle", "60s", "--thread", talk.name)
    for count, gate in enumerate(gates, 1):
        gate.touch()
        until(
            lambda count=count: sum(talk.numbers) >= count or waiting.poll() is not None,
            f"{count} have ended",
            there=lambda: talk.numbers,
        )
    began = time.monotonic()
    out, _ = waiting.communicate(timeout=LIMIT)
    assert time.monotonic() - began < 50  # it takes a moment: nothing is left to wait for in these 60 seconds
    assert {notice["taskId"] for notice in json.loads(out)["notices"]} == set(ids)


def test_what_has_ended_does_not_wait_for_ever_for_what_has_not(person: Person, talk: Talk):
    talk.held()
    id = talk.ended()
    found = json.loads(person("wait", "--tell", "--json", "--settle", "100ms", "--thread", talk.name).out)
    assert [notice["taskId"] for notice in found["notices"]] == [id]
    talk.gate.write_text("\n")


def test_the_conversation_comes_from_the_environment(person: Person, talk: Talk):
    talk.ended()
    done = person("wait", "--tell", environ={"MEANTIME_THREAD": talk.name})
    assert done.code == 0
    assert "forty-two" in done.out


def test_the_time_is_over(person: Person, talk: Talk):
    talk.held()
    assert person("wait", "--tell", "-t", "200ms", "--thread", talk.name) == (124, "", "")
    open_gate(talk.gate)


def test_nothing_runs_and_nothing_is_unread(person: Person, talk: Talk):
    done = person("wait", "--tell", "--thread", talk.name)
    assert (done.code, done.out) == (3, "")
    assert f"Nothing runs in {talk.name}" in done.err


def test_it_ends_when_somebody_else_was_told(person: Person, talk: Talk):
    id = talk.held()
    turn = talk.asking.post(f"/v1/threads/{talk.name}/turns", {"lease": 600})["turn"]
    waiting = person.begin("wait", "--tell", "--thread", talk.name)
    open_gate(talk.gate)
    wait(talk.asking, id)
    assert talk.asking.post(f"/v1/turns/{turn}/boundary", {})["notices"]
    talk.asking.post(f"/v1/turns/{turn}/ack", {"notices": [f"{id}.1"]})
    talk.asking.post(f"/v1/turns/{turn}/release", {})
    out, _ = waiting.communicate(timeout=LIMIT)
    # It may have begun after all was told: then there was nothing to wait for.
    assert (waiting.returncode in (0, 3), out) == (True, b"")


def test_what_nobody_reads_is_unread_again(person: Person, talk: Talk):
    talk.ended()
    ours, theirs = os.pipe()
    os.close(ours)
    waiting = person.begin("wait", "--tell", "--thread", talk.name, stdout=theirs)
    os.close(theirs)
    waiting.communicate(timeout=LIMIT)
    assert waiting.returncode == 141
    assert talk.numbers == (1, 0)


def test_a_full_disk_settles_nothing(person: Person, talk: Talk):
    talk.ended()
    with Path("/dev/full").open("wb") as full:
        waiting = person.begin("wait", "--tell", "--thread", talk.name, stdout=full)
        _, err = waiting.communicate(timeout=LIMIT)
    assert waiting.returncode == 1
    assert b"No space left" in err
    assert talk.numbers == (1, 0)


@pytest.mark.parametrize("confirmed", [True, False])
def test_whoever_confirms_is_asked(person: Person, talk: Talk, confirmed: bool):
    id = talk.ended()
    waiting = person.begin(
        "wait", "--tell", "--confirm", "--json", "--thread", talk.name, stdin=subprocess.PIPE
    )
    assert waiting.stdout
    assert json.loads(waiting.stdout.readline())["notices"][0]["id"] == f"{id}.1"
    assert talk.numbers == (0, 1)
    waiting.communicate(b"told\n" if confirmed else b"", timeout=LIMIT)
    assert waiting.returncode == (0 if confirmed else 1)
    assert talk.numbers == ((0, 0) if confirmed else (1, 0))


def test_what_is_refused_five_times_is_parked(person: Person, talk: Talk):
    talk.ended()
    words = ["wait", "--tell", "--confirm", "-q", "--thread", talk.name]
    assert [person(*words).code for _ in range(5)] == [1] * 5
    assert talk.asking.get(f"/v1/threads/{talk.name}")["parked"] == 1
    assert person(*words).code == 3


@pytest.mark.core("the one daemon that comes back")
def test_a_daemon_that_comes_back_goes_on_telling(loner: Person):
    loner.up()
    talk = Talk(loner, "restart")
    talk.held()
    waiting = loner.begin("wait", "--tell", "--thread", "restart", "--reconnect", f"{LIMIT:g}s")
    until_connected(waiting)
    assert loner("down").code == 0
    loner.up()
    open_gate(talk.gate)
    out, _ = waiting.communicate(timeout=LIMIT)
    assert waiting.returncode == 0
    assert b"forty-two" in out


@pytest.mark.parametrize("more", [["t_1"], ["-b", "x"], ["--any"]])
def test_it_is_about_a_conversation(person: Person, more: list[str]):
    assert person("wait", "--tell", *more).code == 2
