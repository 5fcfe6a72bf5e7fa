"""What a host gets from a wrapped server: quick calls as they always were, slow ones as tasks."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from daemon.conftest import Place

from .conftest import NEVER_SOON, SENTENCE, SLOW, SOON, Host, Peer, Wrapped, task_of, texts


def direct(peer: Peer, method: str, params: dict[str, Any]) -> bytes:
    """The answer of the server itself, as it wrote it."""
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"
    with subprocess.Popen(peer.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(asked)
        server.stdin.flush()
        said = server.stdout.readline()
        server.stdin.close()
    return said


@pytest.mark.breadth
def test_tools_are_listed_unchanged_with_one_sentence_more(wrapped: Wrapped, peer: Peer):
    host = wrapped()
    own = json.loads(direct(peer, "tools/list", {}))["result"]["tools"]
    seen = host.answer(host.send("tools/list"))["result"]["tools"]
    for tool in own:
        seconds = SOON if tool["name"] in SLOW else NEVER_SOON
        tool["description"] += f"\n\n{SENTENCE.format(seconds)}"
    assert seen == own


@pytest.mark.breadth
def test_a_server_whose_calls_stay_in_the_foreground_is_listed_unchanged(wrapped: Wrapped, peer: Peer):
    host = wrapped(threshold=-1)
    own = json.loads(direct(peer, "tools/list", {}))["result"]
    assert host.answer(host.send("tools/list"))["result"] == own


@pytest.mark.breadth
def test_a_quick_answer_is_passed_on_byte_for_byte(wrapped: Wrapped, peer: Peer):
    """Text, structured content, pictures and links: whatever is in the result."""
    host = wrapped(threshold=NEVER_SOON)
    for tool, arguments in (
        ("echo", {"text": 'ä "quoted" \u2028 \U0001f600'}),
        ("add", {"a": 1, "b": 2.50}),
        ("picture", {}),
        ("fails", {}),
        ("wrong", {}),
    ):
        params = {"name": tool, "arguments": arguments}
        own = direct(peer, "tools/call", params)
        host.send("tools/call", params)
        assert _inside(host.read_line()) == _inside(own), tool


def _inside(line: bytes) -> bytes:
    """Its result or error: both sides have ids of their own, and one of them writes blanks between."""
    for name in (b'"result":', b'"error":'):
        _, found, rest = line.partition(name)
        if found:
            return rest.strip()
    raise AssertionError(line)


@pytest.mark.core("the one wrapped server")
def test_a_slow_call_becomes_a_task_and_is_told_once(
    wrapped: Wrapped, peer: Peer, served: Place, thread: str
):
    host = wrapped()
    answer = host.call("gate", mark="m")
    task = task_of(answer)
    assert f"continues in the background as task {task}" in texts(answer)[0]
    found = until(
        lambda: (seen := served.ask("GET", f"/v1/tasks/{task}"))["progress"] and seen, "its progress is ours"
    )
    assert (found["state"], found["description"], found["kind"]) == ("running", "scripted/gate", "tool")
    assert found["progress"]["percent"] == 25.0
    assert found["progress"]["message"] == "at the gate"
    peer.open_gate()
    assert served.wait(task)["state"] == "completed"
    assert served.ask("GET", f"/v1/tasks/{task}")["result"] == "through m"
    told = texts(host.call("echo", text="next"))
    assert told[0] == "next"
    assert len(told) == 2
    assert task in told[1]
    assert "through m" in told[1]
    assert texts(host.call("echo", text="after")) == ["after"]
    assert peer.lines("calls").count("gate m") == 1, "it was sent once"
    until(
        lambda: served.ask("GET", f"/v1/notices?thread={thread}&state=told")["notices"], "it counts as told"
    )


@pytest.mark.breadth
def test_a_cancel_reaches_the_server(wrapped: Wrapped, peer: Peer, served: Place, thread: str):
    host = wrapped()
    task = task_of(host.call("hang", mark="m"))
    served.ask("POST", f"/v1/tasks/{task}/cancel")
    assert served.wait(task)["state"] == "cancelled"
    until(lambda: peer.lines("cancels"), "the server is told")
    assert texts(host.call("echo", text="next"))[0] == "next"


@pytest.mark.breadth
def test_a_host_that_cancels_in_time_has_no_task(wrapped: Wrapped, peer: Peer, served: Place, thread: str):
    host = wrapped(threshold=NEVER_SOON)
    id = host.send("tools/call", {"name": "hang", "arguments": {"mark": "m"}})
    peer.until("waiting", "m")
    host.say({"method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}})
    until(lambda: peer.lines("cancels"), "the server is told")
    assert texts(host.call("echo", text="next")) == ["next"]
    assert served.ask("GET", f"/v1/tasks?thread={thread}")["tasks"] == []


@pytest.mark.breadth
def test_a_failure_in_the_background_is_told_as_one(wrapped: Wrapped, peer: Peer, served: Place, thread: str):
    host = wrapped()
    task = task_of(host.call("gate", mark="m"))
    host.call("crash")
    found = served.wait(task)
    assert found["state"] == "lost"
    told = until(
        lambda: texts(answer) if "result" in (answer := host.call("echo", text="next")) else None,
        "it is started again",
    )
    assert "Whether the tool did its work is not known" in told[1]


def test_progress_reaches_the_host_under_its_own_token(wrapped: Wrapped, peer: Peer):
    host = wrapped(threshold=NEVER_SOON)
    params = {"name": "gate", "arguments": {"mark": "m"}, "_meta": {"progressToken": "mine"}}
    id = host.send("tools/call", params)
    said = host.read()
    assert said["method"] == "notifications/progress"
    assert said["params"] == {"progressToken": "mine", "progress": 1, "total": 4, "message": "at the gate"}
    peer.open_gate()
    assert texts(host.answer(id)) == ["through m"]


def test_no_reply_reaches_another_call(wrapped: Wrapped):
    """Answers to ids that nobody has, to ids that will come, twice, and without JSON."""
    host = wrapped(threshold=NEVER_SOON)
    assert texts(host.call("strangers", next=True)) == ["yours"]
    assert texts(host.call("echo", text="mine")) == ["mine"]
    assert texts(host.call("twice")) == ["first"]
    assert texts(host.call("echo", text="mine")) == ["mine"]
    assert texts(host.call("garbage")) == ["after the noise"]
    assert "not valid JSON-RPC" in host.call("broken")["error"]["message"]
    assert texts(host.call("echo", text="mine")) == ["mine"]


@pytest.mark.breadth
def test_two_sessions_and_their_ids_are_apart(wrapped: Wrapped, peer: Peer):
    one, other = wrapped(threshold=NEVER_SOON), wrapped(threshold=NEVER_SOON)
    ids = [one.send("tools/call", {"name": "gate", "arguments": {"mark": "one"}})]
    ids += [other.send("tools/call", {"name": "gate", "arguments": {"mark": "other"}})]
    assert ids[0] == ids[1]
    peer.until("waiting", "one")
    peer.until("waiting", "other")
    peer.open_gate()
    assert texts(one.answer(ids[0])) == ["through one"]
    assert texts(other.answer(ids[1])) == ["through other"]
    assert len(set(peer.pids)) == 2, "each session has a server of its own"


def test_a_request_of_the_server_reaches_the_host_and_its_answer_the_server(wrapped: Wrapped):
    host = wrapped(threshold=NEVER_SOON)
    id = host.send("tools/call", {"name": "samples", "arguments": {}})
    asked = host.read()
    assert asked["method"] == "sampling/createMessage"
    assert asked["params"] == {"messages": [], "maxTokens": 1}
    host.say({"id": asked["id"], "result": {"role": "assistant", "content": {"type": "text", "text": "x"}}})
    assert texts(host.answer(id)) == ["served"]


def test_bad_lines_of_a_host_are_refused_and_change_nothing(wrapped: Wrapped):
    host = wrapped(threshold=NEVER_SOON)
    for line in (b"{not json", b"[1]", b'"text"', b'{"jsonrpc":"2.0","id":{},"method":"ping"}', b"\xff\xfe"):
        host.write(line + b"\n")
        assert host.answer(None)["error"]["code"] in (-32700, -32600), line
    assert texts(host.call("echo", text="mine")) == ["mine"]


@pytest.mark.breadth
def test_a_batch_of_the_protocol_of_2025_03_26(wrapped: Wrapped):
    host = wrapped(threshold=NEVER_SOON)
    call = {"jsonrpc": "2.0", "method": "tools/call"}
    many = [
        {**call, "id": f"b{n}", "params": {"name": "echo", "arguments": {"text": str(n)}}} for n in range(3)
    ]
    host.write(json.dumps(many).encode() + b"\n")
    assert {(said := host.read())["id"]: texts(said) for _ in many} == {f"b{n}": [str(n)] for n in range(3)}


@pytest.mark.breadth
def test_ten_megabytes_and_a_flood_pass_through(wrapped: Wrapped):
    host = wrapped(threshold=NEVER_SOON)
    assert texts(host.call("big", bytes=10 << 20)) == ["x" * (10 << 20)]
    assert texts(host.call("flood", count=20_000)) == ["dry again"]


def test_a_hundred_calls_at_once(wrapped: Wrapped):
    host = wrapped(threshold=NEVER_SOON)
    ids = {
        host.send("tools/call", {"name": "echo", "arguments": {"text": str(n)}}): str(n) for n in range(100)
    }
    answers = [host.read() for _ in ids]
    assert {answer["id"]: texts(answer)[0] for answer in answers} == ids


@pytest.mark.breadth
def test_a_server_that_cannot_be_started_is_named_in_the_error(served: Place):
    with Host(served, "--wrap", "--", "no-such-program") as host:
        error = host.answer(host.send("initialize", {}))["error"]["message"]
    assert "no-such-program" in error
    with Host(served, "--wrap") as host:
        assert host.process.wait(LIMIT) == 2
