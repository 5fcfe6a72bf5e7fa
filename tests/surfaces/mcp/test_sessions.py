"""One server for all sessions of an agent: each call is of the session that it names."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.conftest import Place

from .speaking import HELLO, Raw

HERE, THERE = {"threadId": "here"}, {"threadId": "there"}


def call(raw: Raw, name: str, meta: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    return raw.ask("tools/call", {"name": name, "arguments": arguments, "_meta": meta})


def threads(place: Place) -> list[str]:
    return sorted(thread["id"] for thread in place.ask("GET", "/v1/threads")["threads"])


def wait(place: Place) -> None:
    for task in place.ask("GET", "/v1/tasks")["tasks"]:
        place.ask("GET", f"/v1/tasks/{task['id']}/wait?timeout=30")


def test_a_client_names_its_session(place: Place):
    """As Codex does. What ended is told to its own session alone."""
    with Raw(place) as raw:
        raw.hello()
        call(raw, "start", HERE, command="true")
        call(raw, "start", THERE, command="true")
        assert threads(place) == ["mcp-here", "mcp-there"]
        wait(place)
        told = call(raw, "list", HERE)["_meta"]["meantime/notices"]
        assert told == [f"{id}.1" for id in ids(place, "mcp-here")]
        assert raw.told() == []  # nobody's
        hosts = {host["thread"] for host in place.ask("GET", "/v1/info")["hosts"]}
        assert {"mcp-here", "mcp-there"} < hosts


def ids(place: Place, thread: str) -> list[str]:
    found = place.ask("GET", f"/v1/tasks?thread={thread}")["tasks"]
    return [task["id"] for task in found]


def test_a_plugin_or_a_hook_names_it_among_the_arguments(place: Place):
    with Raw(place, "--by-session") as raw:
        raw.hello()
        schemas = [tool["inputSchema"] for tool in raw.ask("tools/list")["tools"]]
        assert not any("additionalProperties" in schema for schema in schemas)  # Gemini CLI checks it
        raw.call("start", command="true", meantime_session="here")
        raw.call("start", command="true", meantime_session="there")
        assert threads(place) == ["mcp-here", "mcp-there"]
        wait(place)
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
