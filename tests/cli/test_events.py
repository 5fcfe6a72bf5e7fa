"""`meantime events` and `meantime prune`."""

from __future__ import annotations

import json

import pytest
from tests.waiting import LIMIT, until

from .person import Person

pytestmark = pytest.mark.processes


def test_events_of_one_batch(person: Person):
    person("up")
    watching = person.begin("events", "-b", "seen", "--json", "-n", "2")
    until(lambda: person.info()["clients"] >= 1, "it watches")
    person.start("-b", "unseen", "--", "true")
    id = person.start("-b", "seen", "--", "true")
    out, err = watching.communicate(timeout=LIMIT)
    assert (watching.returncode, err) == (0, b"")
    events = [json.loads(line) for line in out.splitlines()]
    assert events[0]["event"] == "task.created"
    assert {event["data"]["id"] for event in events} == {id}
    assert all(event["id"].isdigit() for event in events)


def test_events_in_words(person: Person):
    person("up")
    watching = person.begin("events", "--thread", "loud")
    until(lambda: person.info()["clients"] >= 1, "it watches")
    id = person.start("--thread", "loud", "-n", "bang \x1b[2J", "-c", "exit 3")
    assert watching.stdout is not None
    lines = [watching.stdout.readline().decode()]
    while "failed" not in lines[-1]:
        lines.append(watching.stdout.readline().decode())
    watching.terminate()
    watching.communicate(timeout=LIMIT)
    assert lines[0].split("  ")[1:] == [id[2:10], "created", "bang\n"]
    assert "It ended with exit code 3." in lines[-1]


def test_prune_deletes_old_endings_and_asks_first(person: Person):
    for line in ("true", "exit 3"):
        person("wait", "-q", person.start("--thread", "old", "-c", line))
    running = person.start("--thread", "old", "--", "sleep", "600")
    done = person("prune", "--older-than", "0")
    assert done.code == 2
    assert "--yes" in done.err
    assert person("prune", "--yes", "--older-than", "1d").out == "deleted 0 tasks\n"
    assert person.json("prune", "--yes", "--older-than", "0", "--status", "failed")["purged"] >= 1
    left = person.json("ps", "-a", "--thread", "old")["tasks"]
    assert sorted(task["state"] for task in left) == ["completed", "running"]
    assert person("prune", "-y", "--older-than", "0").code == 0
    assert [task["id"] for task in person.json("ps", "-a", "--thread", "old")["tasks"]] == [running]
    assert person("prune", "-y", "--status", "running").code == 2
    assert person.terminal("prune", "--older-than", "0").end() == 0  # nothing to ask about
    terminal = person.terminal("prune", "--older-than", "0", "--json")
    terminal.until('{"purged": 0}')  # to a terminal, too
    assert terminal.end() == 0
    person("wait", "-q", person.start("--thread", "old", "--", "true"))
    terminal = person.terminal("prune", "--older-than", "0")
    terminal.until("Delete 1 task that ended more than 0.0s ago, for good?")
    terminal.type("n\n")
    assert terminal.end() == 1
