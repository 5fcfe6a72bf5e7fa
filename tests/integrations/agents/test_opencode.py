"""The OpenCode plugin: subagents, restarts, kills, many sessions, and two OpenCodes in one project."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, pause, until

from cli.person import Person
from gates import Gate

from .installed import (
    MEANTIME,
    OPENCODE,
    OpenCode,
    greet,
    needs,
    opencode_messages,
    opencode_session,
    posted,
)
from .model import IDS, Asked, Model, script

pytestmark = [needs(OPENCODE), pytest.mark.agents]
TOLD = {"text": "I was told."}


@pytest.fixture
def agent(person: Person, model: Model) -> OpenCode:
    one = OpenCode(person, model)
    one.install("opencode")
    return one


def hand_off(at: Gate) -> dict[str, Any]:
    """The model hands off a command that waits at a gate."""
    return bash(f"{MEANTIME} run -q -c '{at.wait}; echo forty-two'")


def bash(command: str) -> dict[str, Any]:
    return {"tool": "bash", "arguments": {"command": command, "description": "does it"}}


def turns(model: Model, count: int) -> None:
    until(
        lambda: len(model.turns) >= count,
        f"the model is asked {count} times",
        lambda: [asked.answer for asked in model.turns],
    )


def notices(person: Person) -> list[str]:
    """The ids of the notices that all tasks have, one each, in the order in which they were started."""
    return [f"{task['id']}.1" for task in reversed(person.json("ps", "-a")["tasks"])]


def ended(person: Person) -> None:
    for notice in notices(person):
        assert person("wait", "-q", notice.partition(".")[0]).code == 0


def settled(person: Person) -> None:
    """Waits until everything is told."""
    with contextlib.closing(person.daemon()) as daemon:
        look = partial(daemon.get, "/v1/threads")
        until(lambda: not any(map(_is_owed, look()["threads"])), "all is told", look)


def _is_owed(thread: Any) -> bool:
    return bool(thread["active"] or thread["unread"] or thread["leased"])


def idle(url: str) -> None:
    """Waits until no session of this OpenCode works. Asking also opens the project in it."""
    status = partial(_get, f"{url}/session/status")
    until(lambda: status() == {}, "no session works", status)


def attended(person: Person, *sessions: str) -> None:
    """Waits until the plugin waits for the work of these sessions."""
    claims = person.home / "opencode"
    until(lambda: all((claims / session).exists() for session in sessions), "the plugin waits")


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=LIMIT) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("way", ["shell", "mcp"])
def test_work_of_a_subagent_is_told_to_the_root_session_when_the_subagent_has_ended(
    agent: OpenCode, person: Person, model: Model, way: str
):
    gate = Gate(person.folder / "gate")
    start = {"tool": "meantime_start", "arguments": {"command": f"{gate.wait}; echo forty-two"}}
    steps = person.folder / "steps.json"
    steps.write_text(
        json.dumps([hand_off(gate) if way == "shell" else start, {"text": "The subagent is done."}])
    )
    given = {"description": "does it", "prompt": f"%%{steps}%%", "subagent_type": "general"}
    with agent.served() as url:
        root, prompt = opencode_session(url)
        before = greet(model, prompt, "meantime_start")
        prompt(script({"tool": "task", "arguments": given}, {"text": "It runs."}, TOLD))
        turns(model, before + 4)
        idle(url)
        attended(person, root)
        gate.open()
        turns(model, before + 5)
        settled(person)
        idle(url)
        (child,) = [one["id"] for one in _get(f"{url}/session/{root}/children")]
        told = [IDS.findall(opencode_messages(url, session)) for session in (root, child)]
    assert told == [notices(person), []]
    assert len(model.turns) == before + 5
    assert "forty-two" in model.turns[-1].text
    assert [one["id"] for one in person.daemon().get("/v1/threads")["threads"]] == [f"mcp-{root}"]


def test_idle_sessions_are_woken_when_opencode_is_started_again(
    agent: OpenCode, person: Person, model: Model
):
    """One whose work ended meanwhile, and one whose work ends later; each once, and nobody prompts them."""
    early, late = Gate(person.folder / "early"), Gate(person.folder / "late")
    with agent.served() as url:  # it is killed at the end of this block
        (first, prompt), (second, other) = opencode_session(url), opencode_session(url)
        prompt(script(hand_off(early), {"text": "It runs."}, TOLD))
        turns(model, 2)
        other(script(hand_off(late), {"text": "It runs."}, TOLD))
        turns(model, 4)
        attended(person, first, second)
    early.open()
    task = notices(person)[0].partition(".")[0]
    assert person("wait", "-q", task).code == 0
    with agent.served() as url:
        idle(url)
        turns(model, 5)
        late.open()
        turns(model, 6)
        settled(person)
        idle(url)
        told = [IDS.findall(opencode_messages(url, session)) for session in (first, second)]
    assert told == [[notice] for notice in notices(person)]
    assert len(model.turns) == 6


@pytest.mark.parametrize("moment", ["the model is asked", "the notice counts as told"])
def test_an_opencode_killed_when_it_tells_loses_nothing_and_tells_nothing_twice(
    agent: OpenCode, person: Person, model: Model, moment: str
):
    gate = Gate(person.folder / "gate")
    killed: list[int] = []

    def kill(asked: Asked | None = None) -> None:
        if not killed and (asked is None or IDS.search(asked.text)):
            killed.append(agent.pid)
            os.killpg(agent.pid, signal.SIGKILL)

    with agent.served() as url:
        session, prompt = opencode_session(url)
        prompt(script(hand_off(gate), {"text": "It runs."}, TOLD))
        turns(model, 2)
        attended(person, session)
        if moment == "the model is asked":
            model.before_answer = kill
        gate.open()
        if moment == "the model is asked":
            until(lambda: killed, "OpenCode is killed")
        else:
            settled(person)
            kill()
    with agent.served() as url:
        idle(url)
        settled(person)
        assert IDS.findall(opencode_messages(url, session)) == notices(person)
        asked = len(model.turns)
        again = {"parts": [{"type": "text", "text": script({"text": "I am back."})}]}
        posted(f"{url}/session/{session}/prompt_async", again)
        turns(model, asked + 1)
        assert IDS.findall(model.turns[-1].text) == notices(person)


def test_a_notice_that_was_stored_before_a_kill_is_put_before_the_model_and_stays_one_message(
    person: Person, model: Model
):
    """OpenCode was killed between storing the message and asking its model."""
    agent = OpenCode(person, model)
    with agent.served() as url:
        session, prompt = opencode_session(url)
        prompt(script({"text": "Hello."}, TOLD))
        turns(model, 1)
        idle(url)
        assert (
            person("run", "-q", "--wait", "--thread", f"mcp-{session}", "--", "echo", "forty-two").code == 0
        )
        (notice,) = person.daemon().get("/v1/notices")["notices"]
        text = notice["message"]["parts"][0]["text"]
        stored = {"noReply": True, "parts": [{"type": "text", "text": text}]}
        posted(f"{url}/session/{session}/message", stored)
    assert len(model.turns) == 1
    agent.install("opencode")
    with agent.served() as url:
        idle(url)
        turns(model, 2)
        settled(person)
        idle(url)
        messages = opencode_messages(url, session)
    assert IDS.findall(messages) == IDS.findall(model.turns[-1].text) == [notice["id"]]
    assert len(model.turns) == 2


def test_five_endings_within_a_second_cost_one_turn(agent: OpenCode, person: Person, model: Model):
    gates = [Gate(person.folder / f"gate-{number}") for number in range(5)]
    with agent.served() as url:
        session, prompt = opencode_session(url)
        prompt(script(*(hand_off(gate) for gate in gates), {"text": "They run."}, TOLD))
        turns(model, 6)
        idle(url)
        attended(person, session)
        for gate in gates:
            gate.open()
            pause(0.1, "they end one after the other, and within a second")
        turns(model, 7)
        settled(person)
        idle(url)
    assert sorted(IDS.findall(model.turns[-1].text)) == sorted(notices(person))
    assert len(model.turns) == 7


def test_a_session_that_works_is_told_in_the_same_turn_with_one_question(
    agent: OpenCode, person: Person, model: Model
):
    """The work ends while the model thinks about what would be its last word."""
    gate, answers = Gate(person.folder / "gate"), person.folder / "answers"
    with agent.served() as url:
        session, prompt = opencode_session(url)
        prompt(script(hand_off(gate), {"text": "Done.", "wait_file": str(answers)}, TOLD))
        turns(model, 2)
        attended(person, session)
        gate.open()
        settled(person)
        answers.touch()
        turns(model, 3)
        idle(url)
        messages = opencode_messages(url, session)
    assert IDS.findall(messages) == IDS.findall(model.turns[-1].text) == notices(person)
    assert len(model.turns) == 3


def test_a_session_is_told_in_the_opencode_where_it_was_last_used(
    agent: OpenCode, person: Person, model: Model
):
    """Another one, which has the same project open, would tell it where nobody looks."""
    gates = Gate(person.folder / "first"), Gate(person.folder / "second")
    answers = [person.folder / "answers-1", person.folder / "answers-2"]
    with agent.served() as here:
        session, prompt = opencode_session(here)
        prompt(script(hand_off(gates[0]), {"text": "It runs."}, {**TOLD, "wait_file": str(answers[0])}))
        turns(model, 2)
        attended(person, session)
        with agent.served() as there:
            idle(there)
            pause(2, "the other one has looked for sessions, as it does at its start")
            gates[0].open()
            turns(model, 3)
            assert session in _get(f"{here}/session/status")
            assert session not in _get(f"{there}/session/status")
            answers[0].touch()
            idle(here)
            steps = [hand_off(gates[1]), {"text": "It runs."}, {**TOLD, "wait_file": str(answers[1])}]
            text = {"parts": [{"type": "text", "text": script(*steps)}]}
            posted(f"{there}/session/{session}/prompt_async", text)
            turns(model, 5)
            idle(there)
            gates[1].open()
            turns(model, 6)
            assert session in _get(f"{there}/session/status")
            assert session not in _get(f"{here}/session/status")
            answers[1].touch()
            settled(person)
            idle(there)
            told = IDS.findall(opencode_messages(there, session))
    assert told == notices(person)
    assert len(model.turns) == 6


def test_forty_sessions_are_told_with_no_process_of_their_own(agent: OpenCode, person: Person, model: Model):
    """And with a bounded number of requests to the daemon."""
    gate = person.folder / "gate"
    with agent.served() as url:
        sessions = [opencode_session(url)[0] for _ in range(40)]
    daemon = person.daemon()
    for session in sessions:
        daemon.post(
            "/v1/tasks",
            {"thread": f"mcp-{session}", "command": f"while ! test -e {gate}; do sleep 0.1; done"},
        )
    with agent.served() as url:
        idle(url)
        attended(person, *sessions[:32])
        assert not list(_children(agent.pid))
        gate.touch()
        settled(person)
        idle(url)
        turns(model, 40)
        idle(url)
    told = [IDS.findall(asked.text) for asked in model.turns]  # what a session says to it is an echo
    assert sorted(told) == sorted([notice] for notice in notices(person))


def _children(pid: int) -> Iterator[str]:
    """Programs of Meantime that it has started, its MCP server aside."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = (path / "stat").read_text().rpartition(") ")[2].split()[1]
            words = (path / "cmdline").read_bytes().decode().split("\0")
            if parent == str(pid) and "meantime" in " ".join(words) and "mcp" not in words:
                yield " ".join(words)


def test_a_run_without_a_terminal_is_told_before_it_ends(agent: OpenCode, person: Person, model: Model):
    """`opencode run` ends with its turn: what is unread is told in this turn, and a task that still runs
    does not keep it."""
    gate, other = Gate(person.folder / "gate"), Gate(person.folder / "other")
    steps = person.folder / "steps.json"

    def run(*words: str, say: list[dict[str, Any]]) -> None:
        steps.write_text(json.dumps(say))
        with agent.started(
            OPENCODE, "run", *words, f"%%{steps}%%", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        ) as one:
            assert one.wait(2 * LIMIT) == 0

    run(say=[hand_off(gate), hand_off(other), {"text": "They run."}])
    (thread,) = person.daemon().get("/v1/threads")["threads"]
    session = thread["id"].removeprefix("mcp-")
    gate.open()
    task = notices(person)[0].partition(".")[0]
    assert person("wait", "-q", task).code == 0
    run("-s", session, say=[bash("sleep 2"), {"text": "I am back."}, TOLD])
    assert IDS.findall(model.turns[-1].text) == [f"{task}.1"]
    assert person.daemon().get(f"/v1/threads/{thread['id']}")["unread"] == 0
    other.open()
    ended(person)
