"""Hooks of Cursor, in the form that third parties describe: the program itself was never tried."""

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
from meantime.surfaces.caller.agent_sessions import Above
from meantime.surfaces.hooks import hook_delivery

from .person import Person
from .test_hooks import Agent, _older

pytestmark = pytest.mark.processes


class Cursor(Agent):
    def payload(self, event: str, **more: Any) -> str:
        common = {
            "conversation_id": self.session, "generation_id": "g-1", "hook_event_name": event,
            "cursor_version": "3.7.21", "workspace_roots": ["/project"], "user_email": None,
            "transcript_path": str(self.transcript) if self.transcript else None,
        }  # fmt: skip
        return json.dumps({**common, **more})

    def stops(self, status: str = "completed") -> list[str]:
        said = self.payload("stop", status=status, loop_count=0)
        done = self.person.hook("stop", "--host", "cursor", stdin=said)
        assert (done.code, done.err) == (0, ""), done
        answer = json.loads(done.out or "{}")
        assert set(answer) <= {"followup_message"}
        return re.findall(r'<task-notification id="([^"]+)"', answer.get("followup_message", ""))


@pytest.fixture(scope="module", autouse=True)
def running(person: Person) -> None:
    assert person("up").code == 0


@pytest.fixture
def cursor(person: Person, request: pytest.FixtureRequest) -> Cursor:
    return Cursor(person, re.sub(r"\W+", "-", request.node.name).strip("-"))


def test_it_goes_on_with_what_it_is_told_at_the_end_of_its_turn(cursor: Cursor):
    """Its next hook is its word: nobody knows what its transcript holds."""
    id = cursor.ended()
    assert cursor.stops() == [id]
    assert cursor.stops() == []
    _older(cursor, hook_delivery.SPOKEN + 1)
    assert cursor.stops() == []
    assert cursor.numbers == (0, 0)


@pytest.mark.parametrize("status", ["aborted", "error"])
def test_a_turn_that_somebody_stopped_does_not_go_on(cursor: Cursor, status: str):
    id = cursor.ended()
    assert cursor.stops(status) == []
    assert cursor.numbers == (1, 0)
    assert cursor.stops() == [id]


def test_its_shell_names_the_conversation(person: Person, cursor: Cursor):
    environ = {"CURSOR_CONVERSATION_ID": cursor.session}
    task = person("run", "-q", "--", "true", environ=environ).out.strip()
    found = person.daemon().get("/v1/tasks", thread=f"mcp-{cursor.session}")["tasks"]
    assert [one["id"] for one in found] == [task]


CALL = ("start", {"command": "make"})
CALLS = [
    ({"mcp_server_name": "meantime"}, "s-1"),
    ({"command": "/usr/bin/meantime mcp --by-session"}, "s-1"),
    ({"mcp_server_name": "github", "command": "meantime mcp --wrap -- github-server"}, "s-1"),
    ({}, "s-1"),
    ({"mcp_server_name": "github"}, ""),
]


@pytest.mark.parametrize(("more", "session"), CALLS)
def test_a_call_of_our_server_is_noted(tmp_path: Path, more: dict[str, str], session: str):
    """The arguments come as a text."""
    person = Person(tmp_path)
    call = {"tool_name": "start", "tool_input": '{"command": "make"}', **more}
    said = json.dumps({"conversation_id": "s-1", "hook_event_name": "beforeMCPExecution", **call})
    done = person("hook", "pre-tool", "--host", "cursor", stdin=said)
    assert done == (0, "", "")
    look = f"from {agent_sessions.__name__} import AgentSessions as A; print(A().take_call(*{CALL!r}))"
    words = [sys.executable, "-c", look]  # started by the same process as the hook
    server = subprocess.run(
        words, env=person.environ, capture_output=True, text=True, timeout=LIMIT, check=True
    )
    assert server.stdout.strip() == session


def test_its_hooks_and_servers_may_be_started_by_different_processes_of_it(monkeypatch: pytest.MonkeyPatch):
    """In its editor, extensions have processes of their own. A terminal in it has a shell in between."""
    editor, bash = Above(10, "1", "cursor"), Above(30, "3", "bash")
    one, other, agent = Above(20, "2", "cursor"), Above(21, "2", "Cursor Helper"), Above(40, "4", "node")

    def nearest(*chain: Above) -> Above:
        monkeypatch.setattr(agent_sessions, "above", lambda: iter(chain))
        return agent_sessions._agent()

    assert nearest(bash, one, editor) == nearest(other, editor) == editor
    assert nearest(agent, bash, one, editor) == agent
    assert nearest() == Above(os.getppid(), "", "")
