"""A daemon that goes away in the middle: it is told, waited for, and nothing is shown twice."""

from __future__ import annotations

import json
import os
import signal

import pytest
from tests.waiting import LIMIT, until

from gates import open_gate

from .person import Person

pytestmark = pytest.mark.processes
LONG = ("--reconnect", f"{LIMIT:g}s")


def kill(person: Person) -> None:
    os.kill(person.info()["pid"], signal.SIGKILL)
    until(lambda: person("ps", "--no-start").code == 5, "the daemon is gone")


@pytest.mark.parametrize("how", ["down", "kill -9"])
def test_following_goes_on_where_it_was(loner: Person, how: str):
    gate = loner.folder / "gate"
    os.mkfifo(gate)
    id = loner.start("-c", f"echo before; read line < {gate}; echo after")
    following = loner.begin("logs", "-f", id, *LONG)
    ended = loner.start("--", "true")
    assert loner("wait", ended, "-q").code == 0
    waiting = loner.begin("wait", ended, id, *LONG)
    watching = loner.begin("events", id, "--json", *LONG)
    assert following.stdout is not None
    assert following.stderr is not None
    assert waiting.stderr is not None
    assert watching.stderr is not None
    assert following.stdout.readline() == b"before\n"
    assert waiting.stdout is not None
    assert waiting.stdout.readline()  # it has spoken to the daemon
    until(lambda: loner.info()["clients"] >= 1, "it watches")
    if how == "down":
        assert loner("down").code == 0
    else:
        kill(loner)
    for each in (following.stderr, waiting.stderr, watching.stderr):
        assert b"Waiting for it to come back." in each.readline()
    open_gate(gate, "go\n")
    loner.up()
    out, err = following.communicate(timeout=LIMIT)
    assert (following.returncode, out) == (0, b"after\n")
    assert b"Waiting" not in err  # that was said once
    waiting.communicate(timeout=LIMIT)
    assert waiting.returncode == 0
    assert watching.stdout is not None
    seen: list[str] = []
    while "task.completed" not in seen:
        seen.append(json.loads(watching.stdout.readline())["event"])
    watching.terminate()
    watching.communicate(timeout=LIMIT)


def test_a_daemon_that_stays_away_is_5(loner: Person):
    ended, id = loner.start("--", "true"), loner.start("-c", "echo first; sleep 600")
    assert loner("wait", ended, "-q").code == 0
    ways = [["logs", "-f", id], ["wait", ended, id], ["events", id]]
    running = [loner.begin(*way, "--reconnect", "300ms") for way in ways]
    for each in running[:2]:
        assert each.stdout is not None
        assert each.stdout.readline()  # it has spoken to the daemon
    until(lambda: loner.info()["clients"] >= 1, "it watches")
    kill(loner)
    for way, each in zip(ways, running, strict=True):
        out, err = each.communicate(timeout=LIMIT)
        assert (each.returncode, out) == (5, b""), way
        assert err.decode().splitlines()[-2:] == [
            "meantime: The daemon did not come back.",
            "  The work keeps running. `meantime up` starts a daemon.",
        ]


def test_run_that_waits_outlives_a_restart(loner: Person):
    gate = loner.folder / "gate"
    os.mkfifo(gate)
    running = loner.begin("run", "--wait", "-c", f"echo one; read line < {gate}; echo two; exit 7")
    assert running.stdout is not None
    assert running.stdout.readline() == b"one\n"
    assert loner("down").code == 0
    open_gate(gate, "go\n")
    loner.up()
    out, _ = running.communicate(timeout=LIMIT)
    assert (running.returncode, out) == (7, b"two\n")


def test_the_first_verb_starts_the_daemon_for_all(loner: Person):
    both = [loner.begin("run", "-q", "--", "true") for _ in range(4)]
    ids = [each.communicate(timeout=LIMIT)[0].decode().strip() for each in both]
    assert [each.returncode for each in both] == [0] * 4
    assert {task["id"] for task in loner.json("ps", "-a")["tasks"]} == set(ids)
