"""One server for all sessions of an agent: each call is of the session that it names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from daemon.conftest import Place
from gates import Gate
from meantime import Meantime, Shell
from meantime.app.ledger_owner import LedgerOwner
from meantime.surfaces.mcp import client_sessions
from meantime.surfaces.mcp.client_conversation import ClientConversation
from meantime.surfaces.mcp.client_sessions import ClientSessions, ClientThread
from meantime.toolset.owner_catalog import OwnerCatalog

from .speaking import HELLO, Raw

pytestmark = pytest.mark.processes

HERE, THERE = {"threadId": "here"}, {"threadId": "there"}


def call(raw: Raw, name: str, meta: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    return raw.ask("tools/call", {"name": name, "arguments": arguments, "_meta": meta})


def threads(place: Place) -> list[str]:
    return sorted(thread["id"] for thread in place.ask("GET", "/v1/threads")["threads"])


@pytest.fixture
def gates(tmp_path: Path) -> tuple[Gate, Gate]:
    """For two commands: one that ended before its start is answered would be told with that answer."""
    return Gate(tmp_path / "here.gate"), Gate(tmp_path / "there.gate")


def end(place: Place, gates: tuple[Gate, Gate]) -> None:
    for gate in gates:
        gate.open()
    wait(place)


def wait(place: Place) -> None:
    for task in place.ask("GET", "/v1/tasks")["tasks"]:
        place.wait(task["id"])


def test_a_client_names_its_session(place: Place, gates: tuple[Gate, Gate]):
    """As Codex does. What ended is told to its own session alone."""
    with Raw(place) as raw:
        raw.hello()
        call(raw, "start", HERE, command=gates[0].wait)
        call(raw, "start", THERE, command=gates[1].wait)
        assert threads(place) == ["mcp-here", "mcp-there"]
        end(place, gates)
        told = call(raw, "list", HERE)["_meta"]["meantime/notices"]
        assert told == [f"{id}.1" for id in ids(place, "mcp-here")]
        assert raw.told() == []  # nobody's
        hosts = {host["thread"] for host in place.ask("GET", "/v1/info")["hosts"]}
        assert {"mcp-here", "mcp-there"} < hosts


def test_a_subagents_call_is_of_the_session_at_its_root(place: Place):
    """As Codex names both. A `sessionId` alone may be anything, such as a client's connection."""
    with Raw(place) as raw:
        raw.hello()
        call(raw, "start", {"threadId": "subagent", "sessionId": "here"}, command="true")
        call(raw, "start", {"threadId": "here", "sessionId": "here"}, command="true")
        assert threads(place) == ["mcp-here"]
        call(raw, "start", {"sessionId": "there"}, command="true")
        assert "mcp-there" not in threads(place)


def ids(place: Place, thread: str) -> list[str]:
    found = place.ask("GET", f"/v1/tasks?thread={thread}")["tasks"]
    return [task["id"] for task in found]


def test_a_plugin_or_a_hook_names_it_among_the_arguments(place: Place, gates: tuple[Gate, Gate]):
    with Raw(place, "--by-session") as raw:
        raw.hello()
        schemas = [tool["inputSchema"] for tool in raw.ask("tools/list")["tools"]]
        assert not any("additionalProperties" in schema for schema in schemas)  # Gemini CLI checks it
        raw.call("start", command=gates[0].wait, meantime_session="here")
        raw.call("start", command=gates[1].wait, meantime_session="there")
        assert threads(place) == ["mcp-here", "mcp-there"]
        end(place, gates)
        (told,) = raw.call("list", meantime_session="there")["_meta"]["meantime/notices"]
        assert told == f"{ids(place, 'mcp-there')[0]}.1"


def test_a_model_does_not_name_it(place: Place):
    """Where nothing of ours writes it, an argument is what the model wrote."""
    with Raw(place) as raw:
        raw.hello()
        refused = raw.call("start", command="true", meantime_session="there")
        assert refused["_meta"]["meantime/code"] == "invalid_input"
        assert threads(place) == []


@pytest.mark.parametrize("given", ["argument", "environment"])
def test_who_says_the_thread_means_all_calls(place: Place, given: str):
    words = ("--thread", "mine") if given == "argument" else ()
    environ = {"MEANTIME_THREAD": "mine"} if given == "environment" else {}
    with Raw(place, *words, **environ) as raw:
        raw.hello()
        call(raw, "start", THERE, command="true")
        assert threads(place) == ["mine"]


@pytest.mark.parametrize("given", ["argument", "environment"])
def test_who_says_the_thread_means_calls_with_the_argument_too(place: Place, given: str):
    """The plugin and the hook write it into every call, whatever the environment says."""
    words = ("--thread", "mine") if given == "argument" else ()
    environ = {"MEANTIME_THREAD": "mine"} if given == "environment" else {}
    with Raw(place, "--by-session", *words, **environ) as raw:
        assert "the thread mine of Meantime" in raw.ask("initialize", HELLO)["instructions"]
        raw.say({"method": "notifications/initialized"})
        schemas = [tool["inputSchema"] for tool in raw.ask("tools/list")["tools"]]
        assert not any("additionalProperties" in schema for schema in schemas)
        started = raw.call("start", command="true", meantime_session="there")
        assert not started.get("isError"), started
        assert threads(place) == ["mine"]


def test_a_name_that_is_none(place: Place):
    with Raw(place, "--by-session") as raw:
        raw.hello()
        for session in ("", 5, None, {"a": 1}):
            started = raw.call("start", command="true", meantime_session=session)
            assert not started.get("isError"), started
        (thread,) = threads(place)
        assert thread.startswith("mcp-")


@pytest.mark.parametrize("words", [(), ("--by-session",)])
def test_a_meta_that_is_no_object_is_refused_and_the_server_goes_on(place: Place, words: tuple[str, ...]):
    named = {"meantime_session": "here"} if words else {}
    with Raw(place, *words) as raw:
        raw.hello()
        for meta in ([1], "text", 5, []):
            asked = raw.send("tools/call", {"name": "list", "arguments": {**named}, "_meta": meta})
            assert raw.answer(asked)["error"]["code"] == -32602, meta
        assert not raw.call("list", **named).get("isError")
        assert not call(raw, "list", {}, **named).get("isError")


class Opened:
    """Sessions without a wire, and what they say of themselves."""

    def __init__(self, mt: Meantime, own: str = "own") -> None:
        self._mt = mt
        self.serving: list[list[str]] = []
        self.made: list[ClientConversation] = []
        self.sessions = ClientSessions(self._converse, ClientThread(own, False, False, self._serves))

    def _serves(self, threads: Sequence[str]) -> None:
        self.serving.append(list(threads))

    def _converse(self, thread: str) -> ClientConversation:
        tasks = self._mt._runtime
        self.made.append(
            ClientConversation(tasks, OwnerCatalog(tasks, LedgerOwner(self._mt._owner.about)), thread)
        )
        return self.made[-1]

    def of(self, session: str) -> ClientConversation:
        return self.sessions.of({"_meta": {"threadId": session}})


@pytest.mark.behaviour("P10")
@pytest.mark.anyio
async def test_the_session_that_has_not_called_for_longest_is_forgotten(
    mt: Meantime, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client_sessions, "MOST", 3)
    opened = Opened(mt)
    one, two = opened.of("one"), opened.of("two")
    assert opened.of("one") is one
    await (await mt.thread("mcp-two").start(Shell("true"), id="its")).wait()
    async with two.call() as inbox:
        assert await inbox.ride(()) is not None
    assert [notice.id for notice in await mt.notices("leased")] == ["its.1"]
    opened.of("three")
    assert opened.serving[-1] == ["own", "mcp-one", "mcp-three"]
    await until_async(lambda: mt.notices("unread"), "it is given back, for it may not have been read")
    assert opened.of("one") is one
    assert opened.sessions.of(None) is opened.sessions.own  # which is never forgotten
    again = opened.of("two")
    assert again is not two
    assert opened.serving[-1] == ["own", "mcp-one", "mcp-two"]
    async with again.call() as inbox:
        told = await inbox.ride(())
    assert told is not None
    assert told.told == ["its.1"]
    await opened.sessions.close()


@pytest.mark.anyio
async def test_a_session_that_is_our_own_is_one_conversation(mt: Meantime):
    opened = Opened(mt, "mcp-here")
    assert opened.of("here") is opened.sessions.own
    assert opened.serving == [["mcp-here"]]
    await opened.sessions.close()


@pytest.mark.anyio
async def test_all_are_closed_at_once(mt: Meantime, monkeypatch: pytest.MonkeyPatch):
    """Also one that was forgotten a moment ago. Each of them waits here for all the others."""
    monkeypatch.setattr(client_sessions, "MOST", 3)
    together = asyncio.Barrier(4)
    opened = Opened(mt)
    monkeypatch.setattr(opened.sessions.own, "close", together.wait)
    for session in ("one", "two", "three"):
        monkeypatch.setattr(opened.of(session), "close", together.wait)
    async with asyncio.timeout(LIMIT):
        await opened.sessions.close()
