"""Whose call it is, where one wrap serves several conversations of a host."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from daemon.conftest import Place

from .conftest import SOON, Host, Peer, task_of, texts

pytestmark = pytest.mark.breadth

BY_HOOKS = "You are told its result automatically when it ends."
# Its tools answer with the params that they were called with.
MIRROR = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        said = {"content": [{"type": "text", "text": json.dumps(asked["params"])}]}
        if asked["method"] == "initialize":
            said = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "mirror", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""
GIVEN = {"text": "ä", "meantime_session": "s-1", "n": 1.50}


@pytest.fixture
def gate(served: Place, peer: Peer) -> Iterator[Host]:
    """A host whose process has several sessions; a plugin names each of them."""
    with Host(served, "--wrap", "--threshold", str(SOON), "--by-session", "--", *peer.command()) as host:
        yield host.hello()  # type: ignore[misc]


def threads_of(place: Place, *answers: dict[str, Any]) -> list[str]:
    return [place.ask("GET", f"/v1/tasks/{task_of(one)}")["parentSessionID"] for one in answers]


def seen_by_server(place: Place, *options: str) -> dict[str, Any]:
    with Host(place, "--wrap", *options, "--", sys.executable, "-c", MIRROR) as host:
        host.hello()
        return json.loads(texts(host.call("any", **GIVEN))[0])["arguments"]


def test_each_call_belongs_to_the_session_that_a_plugin_names(gate: Host, served: Place):
    one, other = (gate.call("gate", mark=name, meantime_session=f"ses_{name}") for name in ("a", "b"))
    assert threads_of(served, one, other) == ["mcp-ses_a", "mcp-ses_b"]
    assert BY_HOOKS in texts(one)[0]


def test_what_a_plugin_tells_does_not_ride_on_results(gate: Host, served: Place, peer: Peer):
    began = gate.call("gate", meantime_session="ses_c")
    peer.open_gate()
    until(lambda: served.ask("GET", f"/v1/tasks/{task_of(began)}")["completedAt"], "it ended")
    assert texts(gate.call("echo", text="x", meantime_session="ses_c")) == ["x"]
    assert served.ask("GET", "/v1/threads/mcp-ses_c")["unread"] == 1


def test_the_server_never_sees_the_name(served: Place):
    rest = {name: value for name, value in GIVEN.items() if name != "meantime_session"}
    assert seen_by_server(served, "--by-session") == rest
    assert seen_by_server(served, "--by-session", "--thread", "mine") == rest


def test_without_the_option_an_argument_of_that_name_is_the_servers(served: Place):
    """A model may have written it."""
    assert seen_by_server(served) == GIVEN


def test_a_conversation_that_somebody_has_said_is_that_of_every_call(served: Place, peer: Peer):
    words = ("--threshold", str(SOON), "--by-session", "--thread", "mine")
    with Host(served, "--wrap", *words, "--", *peer.command()) as host:
        host.hello()
        assert threads_of(served, host.call("gate", meantime_session="s-9")) == ["mine"]


def test_a_call_that_a_hook_has_noted_belongs_to_its_session(gate: Host, served: Place):
    """As in Cursor, which runs it before each call."""
    for session in ("s-1", "s-2"):
        arguments = {"mark": session}
        call = {"tool_name": "gate", "tool_input": json.dumps(arguments), "command": "meantime mcp --wrap"}
        subprocess.run(
            [sys.executable, "-m", "meantime", "hook", "pre-tool", "--host", "cursor"],
            input=json.dumps({"conversation_id": session, **call}), env=served.environ, text=True,
            capture_output=True, timeout=LIMIT, check=True,
        )  # fmt: skip
        answer = gate.call("gate", **arguments)
        assert threads_of(served, answer) == [f"mcp-{session}"]
        assert BY_HOOKS in texts(answer)[0]
