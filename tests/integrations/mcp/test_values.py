"""The pure parts: what is configured, what is stored, what is read out of bytes and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime import HttpServer, InvalidInput, Meantime, StdioServer, Tool
from meantime.integrations.mcp import remote_task
from meantime.integrations.mcp.id_scan import IdScan
from meantime.integrations.mcp.remote_task import (
    EXTENSION,
    OLDER,
    RemoteTask,
    interval_of,
    remembered,
    remote_of,
)
from meantime.integrations.mcp.runner import near
from meantime.integrations.mcp.servers import checked
from meantime.integrations.mcp.tool_results import report_of, report_of_error
from meantime.kernel.ids import check_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Run, Task, Work
from meantime.system import platform
from meantime.testing import FakeClock

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


# -- servers


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a/b": StdioServer(command=["x"])}, "cannot name a server"),
        ({"": StdioServer(command=["x"])}, "cannot name a server"),
        ({"a": "npx server"}, "is a str"),
        ({"a": {"command": "npx server"}}, "not configured right"),
        ({"a": {"command": ["x"], "comand": 1}}, "not configured right"),
        ({"a": {}}, "not configured right"),
        ({"a": {"url": "ftp://x"}}, "not an address"),
        ({"a": {"command": []}}, "does not start a server"),
        ({"a": {"command": ["x"], "idle": 0}}, "seconds"),
        ({"a": {"command": ["x"], "env": {"A": "\0"}}}, "env is a dict"),
        ({"a": {"url": "http://h", "headers": {"A": 1}}}, "not configured right"),
    ],
)
def test_what_is_not_a_server_says_so(given: Any, words: str):
    with pytest.raises(InvalidInput, match=words):
        checked(given)


def test_a_config_file_can_fill_them():
    found = checked({"files": {"command": ["x"], "env": {"A": "b"}}, "web": {"url": "https://h/mcp"}})
    assert found == {
        "files": StdioServer(command=["x"], env={"A": "b"}),
        "web": HttpServer(url="https://h/mcp"),
    }


def test_secrets_do_not_show():
    shown = repr(
        [StdioServer(command=["x"], env={"A": "secret"}), HttpServer(url="http://h", headers={"B": "secret"})]
    )
    assert "secret" not in shown
    assert "'A'" in shown
    assert "'B'" in shown


@pytest.mark.parametrize("name", ["echo", "/echo", "s/", "", "\ud800/x", None, 3])
def test_a_name_that_names_no_tool(name: Any):
    with pytest.raises(InvalidInput):
        Tool(name)


@pytest.mark.parametrize("arguments", [[], "x", {"a": float("nan")}, {"a": "\ud800"}, {1: 2}])
def test_arguments_that_are_not_json(arguments: Any):
    with pytest.raises(InvalidInput):
        Tool("s/echo", arguments)


# -- whose answer it was


@pytest.mark.breadth
@given(JSON, st.integers() | st.text(max_size=30), st.data())
def test_the_id_of_an_answer_is_found_in_any_pieces(result: Any, id: int | str, data: Any):
    order = data.draw(st.permutations(["jsonrpc", "id", "result"]))
    whole = {"jsonrpc": "2.0", "id": id, "result": {"id": 7, "deep": [{"id": 8}], "more": result}}
    text = json.dumps({name: whole[name] for name in order}, ensure_ascii=data.draw(st.booleans())).encode(
        "utf-8", "surrogatepass"
    )
    size = data.draw(st.integers(1, len(text)))
    scan = IdScan()
    for at in range(0, len(text), size):
        scan.feed(text[at : at + size])
    assert scan.answers == (id if isinstance(id, str) or -(2**63) <= id < 2**64 else scan.answers)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_scanned(data: bytes):
    IdScan().feed(data)


def test_a_request_of_the_servers_is_no_answer():
    scan = IdScan()
    scan.feed(b'{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage"}')
    assert scan.answers is None


def test_a_bomb_is_given_up():
    scan = IdScan()
    scan.feed(b'{"a":' + b"[" * 300_000)
    scan.feed(b"]" * 300_000 + b',"id":3}')
    assert scan.answers is None


# -- the server's own tasks


@given(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
    | st.sampled_from(["at", "b", ":at:", "t:at:1"]),
    st.sampled_from([EXTENSION, OLDER]),
    st.sampled_from(["", "0f3a5511b2c9.17.250"]),
)
def test_an_id_is_found_again(id: str, kind: str, began: str):
    """With when it began, where that fits in."""
    session = RemoteTask(id, kind, began).session
    assert session is None or remembered(session) in (RemoteTask(id, kind, began), RemoteTask(id, kind))
    if session is not None:
        check_id(session, "session")


def test_an_age_is_by_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch):
    clock = FakeClock()
    work = Work(kind="tool", name="s/t")
    task = Task(id="t_1", thread="a", work=work, status=Status.RUNNING, run=Run(started_at=clock.now() - 40))
    began = remote_task.beginning(clock)
    clock.jump(3600)
    assert remote_task.age_of(began, task, clock) == 0.0
    clock.jump(-3600)
    for nothing in ("", "nonsense", f"{platform.short_boot(12)}.x"):
        assert remote_task.age_of(nothing, task, clock) == 40.0  # only the wall clock is left
    monkeypatch.setattr(platform, "boot", lambda: "another")
    assert remote_task.age_of(began, task, clock) == 40.0


@pytest.mark.parametrize("session", ["", "tasks:", "chat:1", "tasks:b:!!", "tasks:b:w"])
def test_another_session_is_no_task(session: str):
    assert remembered(session) is None


def test_both_shapes_are_known():
    assert remote_of({"resultType": "task", "taskId": "a", "status": "working"}) == RemoteTask("a", EXTENSION)
    assert remote_of({"task": {"taskId": "b", "status": "working"}}) == RemoteTask("b", OLDER)
    assert remote_of({"content": [], "task": {"taskId": "b"}}) is None
    assert remote_of({"resultType": "task"}) is None


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [(0, 0.1), (500, 0.5), (10**9, 30.0), (None, 1.0), ("x", 1.0), (-1, 1.0), (True, 1.0)],
)
def test_the_interval_is_bounded(asked: Any, seconds: float):
    assert interval_of({"pollIntervalMs": asked}) == seconds
    assert interval_of({"pollInterval": asked}) == seconds


# -- results


@pytest.mark.breadth
@given(JSON)
def test_any_answer_gives_a_report(answer: Any):
    report_of({"content": answer, "structuredContent": None})
    report_of({"content": [answer], "isError": True})
    report_of_error(answer, "s/t")
    report_of_error({"code": answer, "message": answer, "data": answer}, "s/t")


def test_a_long_error_is_reported_whole_and_once():
    """The runtime bounds it, as every text, and puts the whole into a file."""
    report = report_of({"content": [{"type": "text", "text": "x" * 5_000}], "isError": True})
    assert report.error is not None
    assert report.error.message == "x" * 5_000
    assert report.error.partial is None


def test_an_unknown_name_is_answered_with_near_ones():
    assert near("serch", ["search", "read"]) == "Did you mean search?"
    assert near("zzz", ["b", "a"]) == "There are: a, b."
    assert near("zzz", []) == "There are none."
    assert near("zzz", [str(n) for n in range(30)]).endswith("and 10 more.")


# -- without the SDK


@pytest.mark.anyio
async def test_without_the_sdk_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    servers = {"s": StdioServer(command=["x"])}
    async with Meantime.open(":memory:", servers=servers) as mt:
        with pytest.raises(InvalidInput, match=r"pip install 'meantime\[mcp\]'") as refused:
            await mt.thread("a").start(Tool("s/echo"))
        assert refused.value.code == "extra_missing"


@pytest.mark.anyio
async def test_without_servers_the_error_says_where_they_go():
    async with Meantime.open(":memory:") as mt:
        with pytest.raises(InvalidInput, match="servers="):
            await mt.thread("a").start(Tool("s/echo"))
        with pytest.raises(InvalidInput, match="servers="):
            await mt.tools("s")
