"""Hosts and servers that lie, flood, break off and vanish: nothing hangs, nothing grows without bound, and
what is refused says what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from tests.waiting import LIMIT, until, until_async

from daemon.conftest import Place
from meantime.kernel.errors import InvalidInput
from meantime.surfaces.wrap import held_server
from meantime.surfaces.wrap.background_calls import BackgroundCalls
from meantime.surfaces.wrap.learned_durations import LearnedDurations
from meantime.surfaces.wrap.open_requests import OpenToolCall
from meantime.surfaces.wrap.raw_messages import RawMessage
from meantime.surfaces.wrap.repeated_requests import RepeatedRequests
from meantime.surfaces.wrap.wrap_hello import WrapParts

from .conftest import NEVER_SOON, Host, Peer, Wrapped, lives, task_of, texts
from .hostile_server import LIES

pytestmark = pytest.mark.breadth
SERVER = Path(__file__).with_name("hostile_server.py")
MEGABYTE = 1 << 20
LONGEST = 64 * MEGABYTE  # of one message
Hostile = Callable[..., Host]


@pytest.fixture
def hostile(wrapped: Wrapped, tmp_path: Path) -> Hostile:
    """A host of the lying server, whose calls stay in the foreground. With threshold=None, the configured
    ones hold."""

    def made(*more: str, threshold: float | None = NEVER_SOON) -> Host:
        return wrapped(sys.executable, str(SERVER), str(tmp_path), *more, threshold=threshold)

    return made


def peak(pid: int) -> int:
    """The most memory that a process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def ask(host: Host, id: Any, tool: str, **arguments: Any) -> None:
    host.say({"id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})


# -- ids


def test_an_id_that_is_used_twice_at_once_gets_both_answers(hostile: Hostile):
    host = hostile()
    for n in range(3):
        ask(host, 77, "reversed", n=n, of=3)
    assert [(said["id"], texts(said)) for said in (host.read() for _ in range(3))] == [
        (77, [f"answer {n}"]) for n in (2, 1, 0)
    ]


def test_ids_come_back_as_they_were_sent(hostile: Hostile):
    host = hostile()
    for id in ("", "a b\nc", "\\", "ä" * 10_000, 0, -1, 2**53, 2**70):
        ask(host, id, "echo", n=1)
        said = host.read()
        assert said["id"] == id
        assert texts(said) == ["echo 1"]


def test_ids_that_are_none_are_refused_in_words(hostile: Hostile):
    host = hostile()
    for id in (True, 1.5, [1], {"id": 1}):
        ask(host, id, "echo", n=1)
        assert host.answer(None)["error"]["message"] == "An id is a number or a text."
    assert texts(host.call("echo", n=2)) == ["echo 2"]


def test_a_hundred_calls_whose_answers_come_in_reverse_each_get_their_own(hostile: Hostile):
    host = hostile()
    for n in range(100):
        ask(host, f"call-{n}", "reversed", n=n, of=100)
    said = [host.read() for _ in range(100)]
    assert [(one["id"], texts(one)) for one in said] == [
        (f"call-{n}", [f"answer {n}"]) for n in range(99, -1, -1)
    ]


def test_calls_in_the_background_whose_answers_come_in_reverse_each_get_their_own(
    hostile: Hostile, served: Place
):
    host = hostile(threshold=None)
    for n in range(20):
        ask(host, n + 1_000, "reversed", n=n, of=21)
    tasks = {said["id"] - 1_000: task_of(said) for said in (host.read() for _ in range(20))}
    assert texts(host.call("release"))[0] == "released"
    ends = {n: served.wait(task) for n, task in tasks.items()}
    assert {n: end["result"] for n, end in ends.items()} == {n: f"answer {n}" for n in range(20)}


# -- answers that make no sense


def test_an_answer_without_a_result_is_an_empty_one(hostile: Hostile):
    host = hostile()
    assert host.call("neither")["result"] == {}
    assert host.call("both")["error"] == {"code": 1, "message": "an error"}
    assert host.call("words")["result"] == "words"
    assert texts(host.call("echo", n=1)) == ["echo 1"]


def test_bytes_that_are_not_utf_8_reach_the_host_as_the_server_wrote_them(hostile: Hostile):
    host = hostile()
    host.send("tools/call", {"name": "bytes", "arguments": {}})
    assert b'"text":"\xff\xfe"' in host.read_line()


def test_a_background_answer_that_cannot_be_read_is_a_failure_that_says_so(hostile: Hostile, served: Place):
    host = hostile(threshold=None)
    tasks = [task_of(host.call(f"late-{what}")) for what in ("bytes", "words", "null")]
    assert texts(host.call("release"))[0] == "released"
    for task in tasks:
        found = served.wait(task)
        assert found["state"] == "failed"
        assert "not a result that can be read" in found["error"]


def test_deep_nesting_is_an_error_of_its_own_call(wrapped: Wrapped):
    host = wrapped(threshold=NEVER_SOON)
    error = host.call("deep", depth=200_000)["error"]["message"]
    assert "cannot be read" in error
    assert texts(host.call("echo", text="after")) == ["after"]
    deep = b"[" * 200_000 + b"]" * 200_000
    host.write(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"a":' + deep + b"}}\n")
    assert host.answer(None)["error"]["code"] == -32700
    assert texts(host.call("echo", text="after")) == ["after"]


def test_a_list_of_tools_that_lies_is_passed_on_as_it_is(hostile: Hostile):
    """And one that changes without a word."""
    host = hostile(threshold=-1)
    assert host.ask("tools/list")["tools"] == LIES[:1]
    assert host.ask("tools/list")["tools"] == LIES
    answer = host.call("wrong-structure")["result"]
    assert answer["structuredContent"] == {"n": "not a number"}


def test_tools_of_a_lying_list_that_may_go_to_the_background_are_still_all_there(hostile: Hostile):
    host = hostile()
    host.ask("tools/list")
    seen = host.ask("tools/list")["tools"]
    assert [tool["name"] for tool in seen] == [tool["name"] for tool in LIES]
    assert not any("outputSchema" in tool for tool in seen)


# -- half a line, silence, and servers that do not start


def test_half_a_line_and_silence_keep_nobody_from_other_work(hostile: Hostile, served: Place):
    """The call is a task that can be cancelled; the rest of the line belongs to it, and to nobody else."""
    host = hostile(threshold=None)
    task = task_of(host.call("half"))
    ask(host, 1_000, "rest")
    assert texts(host.answer(1_000))[0] == "whole again"
    assert served.wait(task)["state"] == "completed"


def test_half_a_line_of_a_server_that_dies_is_nobodys_answer(hostile: Hostile, served: Place):
    host = hostile(threshold=None)
    task = task_of(host.call("half"))
    ask(host, 1_000, "crash")
    assert "ended with exit code 9" in host.answer(1_000)["error"]["message"]
    assert served.wait(task)["state"] == "lost"


def test_a_host_that_leaves_in_the_middle_of_a_line_leaves_nothing(hostile: Hostile, tmp_path: Path):
    host = hostile()
    host.write(b'{"jsonrpc":"2.0","id":5,"method":"tools/ca')
    host.leave()
    assert host.process.wait(LIMIT) == 0
    pids = [int(line) for line in (tmp_path / "starts").read_text().splitlines()]
    until(lambda: not any(map(lives, pids)), "the server is stopped")


def test_a_server_that_exits_at_once_is_named_with_its_last_words(served: Place, peer: Peer):
    with Host(served, "--wrap", "--", *peer.command("dies")) as host:
        error = host.answer(host.send("initialize", {}))["error"]["message"]
        assert "ended with exit code 3" in error
        assert "KeyError: 'TOKEN'" in error
        asked = count(1)

        def is_refused() -> bool:
            next(asked)
            return "It is started again in" in host.answer(host.send("initialize", {}))["error"]["message"]

        until(is_refused, "it is not started again at once")
    assert len(peer.pids) < next(asked)


def test_text_before_the_handshake_is_passed_over(served: Place, peer: Peer):
    with Host(served, "--wrap", "--", *peer.command("noisy")) as host:
        host.hello()
        assert texts(host.call("echo", text="mine")) == ["mine"]


def test_a_server_that_never_answers_the_handshake_ends_with_its_host(served: Place, peer: Peer):
    with Host(served, "--wrap", "--", *peer.command("silent")) as host:
        host.send("initialize", {})
        until(lambda: peer.pids, "the server runs")
        host.leave()
        assert host.process.wait(LIMIT) == 0
        until(lambda: not lives(peer.pids[0]), "the server is stopped")


# -- too much


def test_a_message_just_below_the_limit_passes_and_one_above_is_an_error(served: Place, wrapped: Wrapped):
    """The daemon holds a few copies of it at most, and the wrap none."""
    host = wrapped(threshold=NEVER_SOON)
    daemon = served.up()
    room = 200  # bytes around the text
    assert texts(host.call("big", bytes=LONGEST - room)) == ["x" * (LONGEST - room)]
    assert peak(daemon) < 500 * MEGABYTE
    error = host.call("big", bytes=LONGEST + 1)["error"]["message"]
    assert "It has more than 64 MB." in error
    assert peak(daemon) < 500 * MEGABYTE
    assert peak(host.process.pid) < 100 * MEGABYTE
    assert texts(host.call("echo", text="after")) == ["after"]


def test_a_host_line_above_the_limit_is_refused_and_not_kept(hostile: Hostile):
    host = hostile()
    host.write(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"a":"')
    for _ in range(200):
        host.write(b"x" * MEGABYTE)
    host.write(b'"}}\n')
    assert host.answer(None)["error"]["message"] == "This line has more than 64 MB."
    assert peak(host.process.pid) < 250 * MEGABYTE
    assert texts(host.call("echo", n=1)) == ["echo 1"]


def test_a_flood_to_a_host_that_does_not_read_is_held_back_and_loses_nothing(
    served: Place, hostile: Hostile, wrapped: Wrapped
):
    """100,000 notifications: the server is not read any more, and others are served meanwhile."""
    host, other = hostile(), wrapped(threshold=NEVER_SOON)
    daemon = served.up()
    before = peak(daemon)
    id = host.send("tools/call", {"name": "flood", "arguments": {"count": 100_000}})
    until(lambda: host.waiting() > 60_000, "the host's pipe is full")
    for n in range(50):
        assert texts(other.call("echo", text=str(n))) == [str(n)]
    assert peak(daemon) - before < 30 * MEGABYTE
    seen = [int(json.loads(host.read_line())["params"]["data"].split()[0]) for _ in range(100_000)]
    assert seen == list(range(100_000))
    assert texts(host.answer(id)) == ["dry again"]


def test_a_host_that_vanishes_in_a_flood_leaves_a_task_and_no_server(
    served: Place, hostile: Hostile, tmp_path: Path, thread: str
):
    host = hostile()
    host.send("tools/call", {"name": "flood", "arguments": {"count": 100_000}})
    until(lambda: host.waiting() > 60_000, "the host's pipe is full")
    host.process.kill()
    (task,) = until(lambda: served.ask("GET", f"/v1/tasks?thread={thread}")["tasks"], "it is a task")
    assert served.wait(task["id"])["result"] == "dry again"
    pids = [int(line) for line in (tmp_path / "starts").read_text().splitlines()]
    until(lambda: not any(map(lives, pids)), "the server is stopped")


def test_more_open_requests_than_the_limit_are_refused(hostile: Hostile):
    host = hostile()
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "never"}})
        for n in range(10_001)
    ]
    host.write("\n".join(lines).encode() + b"\n")
    assert host.answer(10_000)["error"]["message"].startswith("10000 requests are open.")


class Silent:
    """A server that was started and says nothing."""

    name, is_open, is_closed = "silent", True, False

    def start(self, order: Any, end: Any) -> Silent:
        return self

    def authorize(self, authorization: str) -> None:
        pass

    def send(self, line: bytes) -> None:
        pass

    async def close(self) -> None:
        self.is_closed = True


class End:
    def __init__(self) -> None:
        self.gone: list[str] = []

    def on_gone(self, why: str) -> None:
        self.gone.append(why)


@pytest.mark.anyio
async def test_a_restarted_server_that_never_answers_our_handshake_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
):
    """Otherwise every request of the host would wait for it for ever."""
    monkeypatch.setattr(held_server, "HANDSHAKE", 0.05)
    silent, end = Silent(), End()
    repeats = RepeatedRequests()
    given: Any = (silent, None, end, Raw(b"{}"), repeats, lambda _: 1)
    held = held_server.HeldServer(*given)
    assert held.send(b"{}", "tools/list")
    await until_async(lambda: end.gone, "it is given up")
    assert end.gone == ["It was started again, and did not answer the handshake within 0.05 s."]
    held.ended(end.gone[0])
    await held.close()
    assert silent.is_closed


class FullLedger:
    """The tasks of an owner that records nothing."""

    tries = 0

    def has_empty_inbox(self, thread: str) -> bool:
        return True

    async def adopt(self, *given: Any) -> None:
        self.tries += 1
        raise InvalidInput("The ledger is full.")


class GoneHost:
    host_left, server_name = True, "hostile"

    @property
    def server_requests(self) -> GoneHost:
        return self

    def reply(self, *given: Any) -> bool:
        return False

    def cancel_at_server(self, call: Any) -> None:
        pass

    def look_around(self) -> None:
        pass


@pytest.mark.anyio
async def test_an_answer_that_nobody_reads_and_nobody_records_is_tried_once():
    ledger, host = FullLedger(), GoneHost()
    durations = LearnedDurations(lambda _: None)
    shared: Any = WrapParts(ledger, None, lambda _: 0, lambda _: False, durations)  # type: ignore[arg-type]
    calls = BackgroundCalls(host, shared, {})  # type: ignore[arg-type]
    call = OpenToolCall(1, Raw(b"1"), "conv")
    calls.begin(call, None)
    calls.replied(call, RawMessage(id=Raw(b"1"), result=Raw(b"{}")))
    await calls.close()
    assert ledger.tries == 1
