"""Tasks of MCP: for clients that take them in place of a text, and those that a wrapped server makes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.waiting import until

from daemon.conftest import Place

from .conftest import CONFIG, NEVER_SOON, SOON, Host, Peer, Wrapped, task_of, texts

pytestmark = pytest.mark.breadth

EXTENSION = "io.modelcontextprotocol/tasks"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}},
}
DONE = {"content": [{"type": "text", "text": "through m"}], "resultType": "complete"}


class ModernHost(Host):
    """A client of the protocol without a handshake, which takes tasks."""

    def hello(self) -> ModernHost:
        return self

    def modern(self, method: str, **params: Any) -> dict[str, Any]:
        return self.answer(self.send(method, {**params, "_meta": META}))["result"]


Modern = Callable[..., ModernHost]


@pytest.fixture
def modern(served: Place, peer: Peer, thread: str) -> Iterator[Modern]:
    made: list[ModernHost] = []

    def host(start: str = "taskless", threshold: float = SOON) -> ModernHost:
        options = ("--wrap", "--threshold", str(threshold), "--thread", thread)
        made.append(ModernHost(served, *options, "--", *peer.command(start, modern=True)))
        return made[-1]

    yield host
    for one in made:
        one.__exit__()


def test_a_client_that_takes_tasks_gets_one_and_follows_it_itself(modern: Modern, peer: Peer):
    host = modern()
    assert host.modern("server/discover")["capabilities"]["extensions"] == {EXTENSION: {}}
    made = host.modern("tools/call", name="gate", arguments={"mark": "m"})
    assert (made["resultType"], made["status"]) == ("task", "working")
    found = until(
        lambda: (seen := host.modern("tasks/get", taskId=made["taskId"])).get("statusMessage") and seen,
        "it has progress",
    )
    assert (found["status"], found["statusMessage"]) == ("working", "25 %, at the gate")
    peer.open_gate()
    ended = until(
        lambda: (seen := host.modern("tasks/get", taskId=made["taskId"]))["status"] != "working" and seen,
        "it has ended",
    )
    assert (ended["status"], ended["result"]) == ("completed", DONE)
    told = host.modern("tools/call", name="echo", arguments={"text": "next"})["content"]
    assert [one["text"] for one in told] == ["next"], "it is told once, and it has asked itself"
    assert peer.lines("calls").count("gate m") == 1


def test_a_client_that_takes_tasks_cancels_one(modern: Modern, peer: Peer, served: Place):
    host = modern()
    made = host.modern("tools/call", name="hang", arguments={"mark": "m"})
    assert host.modern("tasks/cancel", taskId=made["taskId"]) == {"resultType": "complete"}
    until(lambda: peer.lines("cancels"), "the server is told")
    until(lambda: host.modern("tasks/get", taskId=made["taskId"])["status"] == "cancelled", "it is cancelled")


def test_a_client_answers_the_question_of_its_task(modern: Modern, peer: Peer):
    host = modern()
    made = host.modern("tools/call", name="elicits", arguments={})
    peer.open_gate()
    asked = until(lambda: host.modern("tasks/get", taskId=made["taskId"]).get("inputRequests"), "it asks")
    (question,) = asked
    said = {question: {"action": "accept", "content": {"answer": "blue"}}}
    host.modern("tasks/update", taskId=made["taskId"], inputResponses=said)
    ended = until(
        lambda: (seen := host.modern("tasks/get", taskId=made["taskId"]))["status"] == "completed" and seen,
        "it has ended",
    )
    assert ended["result"]["content"][0]["text"] == "accept {'colour': 'blue'}"


def test_a_conversation_with_hooks_is_told_by_them_alone(
    modern: Modern, peer: Peer, served: Place, thread: str
):
    (served.home.folder / "hooks").mkdir(exist_ok=True)
    (served.home.folder / "hooks" / thread).touch()
    host = modern()
    assert "extensions" not in host.modern("server/discover")["capabilities"]
    answer = host.modern("tools/call", name="gate", arguments={"mark": "m"})
    assert answer["resultType"] == "complete"
    assert "You are told its result automatically" in answer["content"][0]["text"]


def test_a_task_by_2025_11_25(wrapped: Wrapped, peer: Peer, served: Place):
    host = wrapped(*peer.command("taskless"), threshold=NEVER_SOON)
    tools = host.ask("tools/list")["tools"]
    assert {tool["execution"]["taskSupport"] for tool in tools} == {"optional"}
    params = {"name": "gate", "arguments": {"mark": "m"}, "task": {"ttl": 60_000}}
    made = host.ask("tools/call", params)["task"]
    assert made["status"] == "working"
    assert host.ask("tasks/list")["tasks"][0]["taskId"] == made["taskId"]
    assert served.ask("GET", f"/v1/tasks/{made['taskId']}")["description"] == "scripted/gate"
    waits = host.send("tasks/result", {"taskId": made["taskId"]})
    peer.open_gate()
    result = host.answer(waits)["result"]
    assert result["content"] == DONE["content"]
    assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": made["taskId"]}
    assert host.ask("tasks/get", {"taskId": made["taskId"]})["status"] == "completed"
    assert texts(host.call("echo", text="next")) == ["next"]
    late = host.answer(host.send("tasks/cancel", {"taskId": made["taskId"]}))
    assert late["error"]["code"] == -32602


def test_a_task_is_its_own_conversations(wrapped: Wrapped, peer: Peer, served: Place):
    host = wrapped(*peer.command("taskless"), threshold=NEVER_SOON)
    params = {"name": "gate", "arguments": {"mark": "m"}, "task": {}}
    made = host.ask("tools/call", params)["task"]
    with Host(served, "--wrap", "--thread", "another", "--", *peer.command("taskless")) as other:
        other.hello()
        for id in (made["taskId"], made["taskId"][:12], "t_" + "0" * 26):
            assert "not found" in other.answer(other.send("tasks/get", {"taskId": id}))["error"]["message"]
        assert other.ask("tasks/list")["tasks"] == []


# -- tasks that the server makes itself


def test_a_task_of_the_server_is_a_task_here_and_told_once(
    wrapped: Wrapped, peer: Peer, served: Place, thread: str
):
    host = wrapped(threshold=NEVER_SOON)
    task = task_of(host.call("task_of_2025", mark="m"))
    found = served.ask("GET", f"/v1/tasks/{task}")
    assert (found["state"], found["description"]) == ("running", "scripted/task_of_2025")
    progress = lambda: served.ask("GET", f"/v1/tasks/{task}")["progress"] or {}  # noqa: E731  none at first
    until(lambda: progress().get("message") == "half way", "its progress is ours")
    peer.open_gate()
    assert served.wait(task)["result"] == "done m"
    told = texts(host.call("echo", text="next"))
    assert told[0] == "next"
    assert task in told[1]
    assert texts(host.call("echo", text="after")) == ["after"]


def test_a_client_follows_a_task_of_the_server_through_ours(wrapped: Wrapped, peer: Peer, served: Place):
    host = wrapped(threshold=NEVER_SOON)
    params = {"name": "task_of_2025", "arguments": {"mark": "m", "id": "its-own"}, "task": {}}
    made = host.ask("tools/call", params)["task"]
    assert made["taskId"] != "its-own"
    waits = host.send("tasks/result", {"taskId": made["taskId"]})
    peer.open_gate()
    assert texts(host.answer(waits)) == ["done m"]
    theirs = host.ask("tasks/get", {"taskId": "its-own"})
    assert theirs["status"] == "completed", "the server is asked about what is its own"


def test_a_cancel_reaches_a_task_of_the_server(modern: Modern, peer: Peer):
    host = modern("well", NEVER_SOON)
    made = host.modern("tools/call", name="task", arguments={"id": "its-own"})
    peer.until("asked", "tasks/get its-own")
    host.modern("tasks/cancel", taskId=made["taskId"])
    peer.until("asked", "tasks/cancel its-own")


def test_a_task_that_the_server_makes_of_a_cancelled_call_is_cancelled(wrapped: Wrapped, peer: Peer):
    """It has not read the cancellation in time."""
    host = wrapped(threshold=NEVER_SOON)
    id = host.send("tools/call", {"name": "late_task", "arguments": {"id": "its-own"}})
    peer.until("waiting", "late task")
    host.say({"method": "notifications/cancelled", "params": {"requestId": id}})
    peer.until("asked", "tasks/cancel its-own")


def test_without_a_threshold_tasks_of_the_server_are_passed_on(wrapped: Wrapped, peer: Peer, served: Place):
    host = wrapped(threshold=-1)
    params = {"name": "task_of_2025", "arguments": {"mark": "m", "id": "its-own"}, "task": {}}
    assert host.ask("tools/call", params)["task"]["taskId"] == "its-own"
    assert host.ask("tasks/get", {"taskId": "its-own"})["status"] == "working"


@pytest.mark.parametrize("configured", [True, False], ids=["configured", "by_its_command"])
def test_a_task_of_the_server_is_followed_over_a_new_daemon(place: Place, peer: Peer, configured: bool):
    """A server that is configured can be asked by the next daemon. Another cannot, and that is said."""
    command = json.dumps(peer.command())
    place.configure(f"{CONFIG}\n[mcp.servers.own]\ncommand = {command}\n")
    place.up()
    words = ["own"] if configured else ["--", *peer.command()]
    with Host(place, "--wrap", "--threshold", str(NEVER_SOON), "--thread", "conv-1", *words) as host:
        host.hello()
        task = task_of(host.call("task_of_2025", mark="m"))
        name = "own" if configured else "scripted"
        assert place.ask("GET", f"/v1/tasks/{task}")["description"] == f"{name}/task_of_2025"
        place.kill()
        place.up()
        if configured:
            assert place.ask("GET", f"/v1/tasks/{task}")["state"] == "running"
        peer.open_gate()
        ended = place.wait(task)
        assert ended["state"] == ("completed" if configured else "lost")
        told = texts(host.call("echo", text="next"))
        assert len([text for text in told if task in text]) == 1
        assert ("done m" in told[1]) == configured
        assert texts(host.call("echo", text="after")) == ["after"]
        assert peer.lines("calls").count("task_of_2025 m") == 1
