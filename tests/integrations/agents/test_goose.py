"""goose: each `goose run` is another process, and the session by its name is one conversation.

goose puts nothing but the word of a `Stop` hook before its model: it is told at the end of a turn, and goes
on with it. So a turn that is told asks the model once more, and no turn is added.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.waiting import until

from cli.person import Person

from .installed import GOOSE, MEANTIME, Goose, needs
from .model import IDS, Model, script

pytestmark = [needs(GOOSE), pytest.mark.agents]
BACK, TOLD = {"text": "I am back."}, {"text": "I was told."}


@pytest.fixture
def goose(person: Person, model: Model) -> Goose:
    one = Goose(person, model)
    one.install("goose")
    return one


def shell(command: str) -> dict[str, Any]:
    return {"tool": "shell", "arguments": {"command": command}}


def held(person: Person, name: str = "gate") -> str:
    """A command that waits for a file."""
    return f"while ! test -e {person.folder / name}; do sleep 0.02; done; echo forty-two"


def handed_off(person: Person, name: str = "gate") -> dict[str, Any]:
    return shell(f"{MEANTIME} run -q -c '{held(person, name)}'")


def let_go(person: Person, *names: str) -> None:
    """And waits for the end of all tasks."""
    for name in names or ("gate",):
        (person.folder / name).touch()
    for task in person.json("ps", "-a")["tasks"]:
        assert person("wait", "-q", task["id"]).code == 0


def notices(person: Person) -> list[str]:
    return [f"{task['id']}.1" for task in reversed(person.json("ps", "-a")["tasks"])]


def told(model: Model) -> list[str]:
    """The ids of the notices in the last question, as often as they are there."""
    return IDS.findall(model.turns[-1].text)


def threads(person: Person) -> list[tuple[int, int]]:
    """Of each: what is unread, and what is leased."""
    return [(one["unread"], one["leased"]) for one in person.daemon().get("/v1/threads")["threads"]]


@pytest.mark.parametrize("way", ["shell", "mcp"])
def test_a_session_is_told_once_when_it_is_resumed(goose: Goose, person: Person, model: Model, way: str):
    start = {"tool": "meantime_tasks__start", "arguments": {"command": held(person)}}
    goose.turn(script(handed_off(person) if way == "shell" else start, {"text": "It runs."}), "alpha")
    assert len(model.turns) == 2
    let_go(person)
    goose.turn(script(BACK, TOLD), "alpha", again=True)
    assert len(model.turns) == 4  # the answer, and what it says to the notice
    assert told(model) == notices(person)
    assert "forty-two" in model.turns[-1].text
    assert threads(person) == [(0, 0)]
    goose.turn(script({"text": "Nothing more."}), "alpha", again=True)
    assert len(model.turns) == 5
    assert told(model) == notices(person)


def test_work_that_ends_while_goose_works_is_told_at_the_end_of_the_turn(
    goose: Goose, person: Person, model: Model
):
    both = shell(f"{MEANTIME} wait -q $({MEANTIME} run -q -c 'echo forty-two')")
    goose.turn(script(both, {"text": "Done."}, TOLD), "alpha")
    assert len(model.turns) == 3
    assert told(model) == notices(person)
    assert threads(person) == [(0, 0)]


def test_two_sessions_are_told_of_their_own_work(goose: Goose, person: Person, model: Model):
    for name in ("alpha", "beta"):
        goose.turn(script(handed_off(person, name), {"text": "It runs."}), name)
    let_go(person, "alpha", "beta")
    first, second = notices(person)
    goose.turn(script(BACK, TOLD), "beta", again=True)
    assert told(model) == [second]
    goose.turn(script(BACK, TOLD), "alpha", again=True)
    assert told(model) == [first]
    assert threads(person) == [(0, 0)] * 2


def test_work_of_a_subagent_is_told_to_the_session_at_its_root(goose: Goose, person: Person, model: Model):
    steps = person.folder / "steps.json"
    steps.write_text(json.dumps([handed_off(person), {"text": "The subagent is done."}]))
    delegate = {"tool": "delegate", "arguments": {"instructions": f"%%{steps}%%"}}
    goose.turn(script(delegate, {"text": "It runs."}), "alpha")
    assert len(model.turns) == 4
    let_go(person)
    goose.turn(script(BACK, TOLD), "alpha", again=True)
    assert len(model.turns) == 6
    assert told(model) == notices(person)
    assert threads(person) == [(0, 0)]


def test_a_goose_that_is_killed_when_it_is_told_is_not_told_twice(goose: Goose, person: Person, model: Model):
    goose.turn(script(handed_off(person), {"text": "It runs."}), "alpha")
    let_go(person)
    with goose.begun(script(BACK, {**TOLD, "hang": True}), "alpha", again=True):
        until(lambda: told(model), "the model is told")
    asked = len(model.turns)
    goose.turn(script({"text": "Back again."}), "alpha", again=True)
    assert len(model.turns) == asked + 1
    assert told(model) == notices(person)
    assert threads(person) == [(0, 0)]


def test_a_goose_that_was_killed_before_it_was_told_is_told_in_its_next_turn(
    goose: Goose, person: Person, model: Model
):
    """Its hook has printed the notice, and goose has not written it down."""
    goose.turn(script(handed_off(person), {"text": "It runs."}), "alpha")
    let_go(person)
    session = person.daemon().get("/v1/threads")["threads"][0]["id"].removeprefix("mcp-")
    said = json.dumps({"event": "Stop", "session_id": session})
    done = person("hook", "stop", "--host", "goose", stdin=said, environ=goose.environ)
    assert IDS.findall(json.loads(done.out)["reason"]) == notices(person)
    goose.turn(script(BACK, TOLD), "alpha", again=True)
    assert told(model) == notices(person)
    assert threads(person) == [(0, 0)]
