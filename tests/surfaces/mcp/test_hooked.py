"""A conversation that hooks or a plugin of ours tell gets no task of MCP: it would be told twice."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT

from daemon.conftest import Place

from .speaking import Raw

pytestmark = pytest.mark.processes

VERSION, TASKS = "2026-07-28", "io.modelcontextprotocol/tasks"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2.1.325"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
}


def hook(place: Place, session: str, moment: str = "session-start", **environ: str) -> None:
    said = json.dumps({"session_id": session, "transcript_path": None, "hook_event_name": "SessionStart"})
    words = [sys.executable, "-m", "meantime", "hook", moment]
    subprocess.run(words, input=said, env={**place.environ, **environ}, text=True, check=True, timeout=LIMIT)


def start(**arguments: Any) -> dict[str, Any]:
    """A call of a client that knows the extension, as Claude Code makes it."""
    return {"name": "start", "arguments": {"command": "true", **arguments}, "_meta": META}


def test_a_client_without_hooks_gets_a_task(place: Place):
    with Raw(place, CLAUDE_CODE_SESSION_ID="s-1") as raw:
        assert raw.ask("tools/call", start())["resultType"] == "task"


def test_a_session_that_began_with_a_hook_gets_none(place: Place):
    """Even where the hook ran before there was a daemon, or a home."""
    assert not place.home.folder.exists()
    hook(place, "s-1")
    with Raw(place, CLAUDE_CODE_SESSION_ID="s-1") as raw:
        answer = raw.ask("tools/call", start())
        assert answer["resultType"] == "complete"
        assert "content" in answer
    with Raw(place, CLAUDE_CODE_SESSION_ID="s-2") as another:
        assert another.ask("tools/call", start())["resultType"] == "task"


def test_any_hook_marks_its_conversation_while_its_server_runs(place: Place):
    with Raw(place, CLAUDE_CODE_SESSION_ID="s-1") as raw:
        assert raw.ask("tools/call", start())["resultType"] == "task"
        hook(place, "s-1", "user-prompt")
        assert raw.ask("tools/call", start())["resultType"] == "complete"


def test_a_thread_with_a_name_of_its_own_is_marked_by_it(place: Place):
    hook(place, "s-1", MEANTIME_THREAD="conv-1")
    with Raw(place, MEANTIME_THREAD="conv-1") as raw:
        assert raw.ask("tools/call", start())["resultType"] == "complete"


def test_a_plugin_that_names_the_session_marks_it(place: Place):
    """As in OpenCode, which has no hooks that could leave a mark."""
    with Raw(place, "--by-session") as raw:
        assert raw.ask("tools/call", start(meantime_session="s-1"))["resultType"] == "complete"
        assert raw.ask("tools/call", start())["resultType"] == "task"


def test_by_the_older_protocol_nothing_is_started_as_a_task(place: Place):
    hook(place, "s-1")
    with Raw(place, CLAUDE_CODE_SESSION_ID="s-1") as raw:
        raw.hello()
        given = {"name": "start", "arguments": {"command": "true"}, "task": {}}
        refused = raw.answer(raw.send("tools/call", given))
        assert refused["error"]["code"] == -32601
        assert place.ask("GET", "/v1/tasks")["tasks"] == []


def test_the_daemons_own_door_knows_it_too(place: Place):
    place.up()
    hook(place, "s-1")
    transport = httpx.HTTPTransport(uds=str(place.home.http_socket))
    with httpx.Client(transport=transport, base_url="http://meantime", timeout=LIMIT) as client:
        for thread, kind in (("mcp-s-1", "complete"), ("mcp-s-2", "task")):
            headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION}
            headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "start"}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": start()}
            answer = client.post(f"/mcp?thread={thread}", json=asked, headers=headers)
            lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
            found = json.loads(lines[-1] if lines else answer.text)
            assert found["result"]["resultType"] == kind, found
