"""Hooks of Gemini CLI: it is told only where it keeps what it is told, and its processes find the session."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from meantime.surfaces.caller import agent_sessions
from meantime.surfaces.caller.agent_sessions import AgentSessions
from meantime.surfaces.hooks.gemini_transcript import found
from meantime.system.platform import posix

from .person import MEANTIME, Person
from .test_hooks import Agent

pytestmark = pytest.mark.processes

EVENTS = {"session-start": "SessionStart", "user-prompt": "BeforeAgent", "post-tool": "AfterTool",
          "stop": "AfterAgent"}  # fmt: skip


class Gemini(Agent):
    """A session whose transcript is written as Gemini CLI 0.61 does."""

    def asks(self, moment: str, prompt: str = "Go on.") -> list[str]:
        said = self.says(moment, prompt=prompt, hook_event_name=EVENTS[moment])
        done = self.person.hook(moment, "--host", "gemini", stdin=said)
        assert (done.code, done.err) == (0, ""), done
        answer = json.loads(done.out) if done.out else {}
        text = answer.get("reason") or answer.get("hookSpecificOutput", {}).get("additionalContext", "")
        return re.findall(r'<task-notification id="([^"]+)"', text)

    def append(self, *records: dict[str, Any]) -> None:
        assert self.transcript
        with self.transcript.open("a") as to:
            for record in records:
                print(json.dumps(record, separators=(",", ":")), file=to)


def told(id: str) -> dict[str, str]:
    return {"text": f'<hook_context>&lt;task-notification id="{id}" task="x"&gt;</hook_context>'}


def prompt(name: str, *parts: dict[str, str], begin: str = "Go on.") -> dict[str, Any]:
    return {"id": name, "type": "user", "content": [{"text": begin}, *parts]}


@pytest.fixture(scope="module", autouse=True)
def running(person: Person) -> None:
    assert person("up").code == 0


@pytest.fixture
def gemini(person: Person, request: pytest.FixtureRequest) -> Gemini:
    return Gemini(person, re.sub(r"\W+", "-", request.node.name).strip("-"))


@pytest.mark.parametrize("moment", ["user-prompt", "stop"])
def test_it_is_told_with_a_prompt_or_at_the_end_of_its_turn(gemini: Gemini, moment: str):
    id = gemini.ended()
    assert gemini.asks(moment) == [id]
    gemini.append(prompt("m1", told(id)))
    assert gemini.asks("stop") == []
    assert gemini.numbers == (0, 0)


@pytest.mark.parametrize("moment", ["session-start", "post-tool"])
def test_it_is_not_told_where_it_would_forget_it_or_have_it_twice(gemini: Gemini, moment: str):
    id = gemini.ended()
    assert gemini.asks(moment) == []
    assert gemini.numbers == (1, 0)
    assert gemini.asks("stop") == [id]


@pytest.mark.parametrize("begin", ["? why", "<hook_context>of another hook</hook_context> go"])
def test_a_prompt_that_it_will_forget_tells_nothing(gemini: Gemini, begin: str):
    id = gemini.ended()
    assert gemini.asks("user-prompt", begin) == []
    assert gemini.asks("stop", begin) == [id]


def test_a_prompt_that_was_taken_back_is_told_again_after_a_resume(gemini: Gemini):
    """A turn that fails, or that somebody interrupts, is taken out of the conversation; its line stays."""
    id = gemini.ended()
    assert gemini.asks("user-prompt") == [id]
    gemini.append(prompt("m1", told(id)), {"$set": {"messages": [prompt("m0")]}})
    assert gemini.asks("session-start") == []
    assert gemini.asks("user-prompt") == [id]
    gemini.append(prompt("m2", told(id)))
    assert gemini.asks("stop") == []
    assert gemini.numbers == (0, 0)


KEPT: list[list[dict[str, Any]]] = [
    [prompt("a"), prompt("b", told("x.1"))],
    [prompt("b", told("x.1")), prompt("c"), {"$rewindTo": "c"}],
    [{"$set": {"messages": [prompt("a"), prompt("b", told("x.1"))]}}],
    [{"$set": {"messages": []}}, prompt("b", told("x.1")), {"$set": {"lastUpdated": "messages"}}],
    [{"id": "g", "type": "gemini", "content": "", "toolCalls": [{"result": [told("x.1")]}]}],
    [{"id": "r", "type": "user", "content": [{"functionResponse": {"output": told("x.1")["text"]}}]}],
]
FORGOTTEN: list[list[dict[str, Any]]] = [
    [],
    [prompt("a"), prompt("b", told("y.1"))],
    [prompt("b", told("x.1"), begin="/x")],
    [prompt("b", told("x.1"), begin="<session_context>")],
    [prompt("b", told("x.1")), {"$rewindTo": "b"}],
    [prompt("b", told("x.1")), prompt("c"), {"$rewindTo": "unknown"}],
    [prompt("b", told("x.1")), prompt("b")],
    [prompt("b", told("x.1")), {"$set": {"messages": [prompt("a")]}}],
    [{"$set": {"messages": [prompt("b", told("x.1"), begin="?")]}}],
]


@pytest.mark.parametrize(
    ("records", "has"), [*((one, True) for one in KEPT), *((one, False) for one in FORGOTTEN)]
)
def test_what_the_model_has_of_the_transcript(tmp_path: Path, records: list[dict[str, Any]], has: bool):
    path = tmp_path / "session.jsonl"
    lines = [json.dumps(record, separators=(",", ":")) for record in records]
    path.write_text("".join(f"{line}\n" for line in [*lines, '{"id":"torn']))
    assert found(str(path), {"x.1": 0}) == ({"x.1"} if has else set())


def test_without_a_transcript_nothing_is_known(tmp_path: Path):
    assert found(str(tmp_path / "none.jsonl"), {"x.1": 0}) is None
    (tmp_path / "old.json").write_text(json.dumps({"messages": [prompt("b", told("x.1"))]}))
    assert found(str(tmp_path / "old.json"), {"x.1": 0}) == {"x.1"}


# -- which session a process belongs to


def below(person: Person, line: str) -> str:
    """A command that an agent runs in its shell: a process of the agent, a shell, and the command."""
    environ = {**person.environ, "GEMINI_CLI": "1", "MEANTIME_NO_START": ""}
    agent = "import subprocess, sys; subprocess.run(['bash', '-c', sys.argv[1]])"
    done = subprocess.run(
        [sys.executable, "-c", agent, line],
        env=environ,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    return done.stdout + done.stderr


def starts(session: str) -> str:
    said = json.dumps({"session_id": session, "hook_event_name": "SessionStart"})
    return f"echo '{said}' | {' '.join(MEANTIME)} hook session-start --host gemini; "


def of(person: Person, thread: str) -> list[str]:
    return [task["id"] for task in person.daemon().get("/v1/tasks", thread=thread)["tasks"]]


def test_a_command_in_its_shell_belongs_to_its_session(person: Person):
    run = f"(sh -c '{' '.join(MEANTIME)} run -q -- true; :')"
    task = below(person, starts("in-shell") + run).strip()
    assert of(person, "mcp-in-shell") == [task]


def test_a_command_of_an_agent_without_hooks_is_a_persons(tmp_path: Path):
    whose = "from meantime.surfaces.caller.caller_thread import own_thread; print(own_thread())"
    lonely = Person(tmp_path)
    assert below(lonely, f"{sys.executable} -c '{whose}'").strip() == "cli"
    assert below(lonely, f"{starts('here')} {sys.executable} -c '{whose}'").strip() == "mcp-here"
    assert below(lonely, f"{sys.executable} -c '{whose}'").strip() == "cli"  # another process of the agent


def test_the_latest_session_of_a_process_counts(person: Person):
    """As after `/clear`."""
    run = f"{' '.join(MEANTIME)} run -q -- true"
    task = below(person, starts("before") + starts("after-it") + run).strip()
    assert of(person, "mcp-after-it") == [task]


def test_the_home_is_made_for_the_first_session(tmp_path: Path):
    """Its first command finds the daemon, and must find the session, too."""
    lonely = Person(tmp_path)
    assert below(lonely, starts("first")) == ""
    assert (lonely.home / "sessions").is_dir()
    assert lonely.home.stat().st_mode & 0o077 == 0


@pytest.fixture
def sessions(tmp_path: Path) -> AgentSessions:
    return AgentSessions({"MEANTIME_HOME": str(tmp_path / "home")})


def test_a_call_belongs_to_the_session_that_announced_it(sessions: AgentSessions):
    assert sessions.take_call("start", {"command": "make"}) == ""
    sessions.write("process")
    sessions.write_call("start", {"b": 1, "a": [1.5, "ä", None]}, "one")
    sessions.write_call("start", {"command": "make"}, "two")
    assert sessions.take_call("start", {"command": "make"}) == "two"
    assert sessions.take_call("start", {"command": "make"}) == "process"
    assert sessions.take_call("list", {"a": [1.5, "ä", None], "b": 1}) == "process"
    assert sessions.take_call("start", {"a": [1.5, "ä", None], "b": 1}) == "one"
    assert sessions.session() == "process"


def test_what_nobody_looked_for_is_removed_one_day(sessions: AgentSessions, tmp_path: Path):
    sessions.write_call("start", {}, "one")
    (left,) = (tmp_path / "home/sessions").iterdir()
    os.utime(left, (1, 1))
    sessions.write_call("list", {}, "one")
    assert not left.exists()
    assert len(list((tmp_path / "home/sessions").iterdir())) == 1


def test_without_proc_the_same_processes_are_found(monkeypatch: pytest.MonkeyPatch):
    seen = list(agent_sessions.above())
    monkeypatch.setattr(agent_sessions, "stat", posix.stat)
    assert [(one.pid, one.name) for one in agent_sessions.above()] == [(one.pid, one.name) for one in seen]
    assert all(one.started for one in agent_sessions.above())
