"""`meantime mcp` against a real daemon: what is written where, what outlives whom, and what is told after
a process of ours, the client, or the daemon has died."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters
from tests.waiting import LIMIT, until, until_async

from daemon.conftest import Place
from meantime import Meantime, StdioServer, Tool
from meantime.dialects.meantime.meantime_arguments import LONGEST_WAIT
from outcomes import completed

from .conftest import QUICK, notices, texts
from .speaking import COMMAND, HELLO, Raw
from .tasking import EXTENSION, call_as_task, result

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@asynccontextmanager
async def connected(place: Place, era: str, **given: Any) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--thread", "conv-1"], env=place.environ
    )
    async with Client(parameters, mode=era, **given) as client:
        yield client


def ended(place: Place, id: str, thread: str = "conv-1") -> str:
    place.ask("POST", "/v1/tasks", {"thread": thread, "command": "true", "id": id})
    place.wait(id)
    return f"{id}.1"


def unread(place: Place, thread: str = "conv-1", state: str = "unread,leased,parked") -> list[str]:
    found = place.ask("GET", f"/v1/notices?thread={thread}&state={state}")["notices"]
    return [notice["id"] for notice in found]


@pytest.mark.core("the one MCP client of another make")
async def test_the_sdks_client_and_our_daemon(place: Place, era: str, monkeypatch: pytest.MonkeyPatch):
    """The daemon is started on demand; a command gets the agent's own environment and folder."""
    place.configure("[http]\nport = 0\n")
    monkeypatch.setattr(place.__class__, "environ", _with(place, COLOUR="blue"))
    async with connected(place, era, extensions=[advertise(EXTENSION)] if era != "legacy" else []) as client:
        task = await call_as_task(client, era, "start", {"command": "echo $COLOUR; pwd"})
        said = (await result(client, era, task["taskId"]))["content"][0]["text"]
        assert said == f"blue\n{os.getcwd()}\n"
        assert notices(await client.call_tool("list", {})) == []
        assert texts(await client.call_tool("list", {})) == ["Nothing runs."]


def _with(place: Place, **more: str) -> Any:
    environ = {**place.environ, **more}
    return property(lambda self: environ)


def test_a_registered_tool_of_the_daemon(place: Place, tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "chores.py").write_text(
        "from meantime import background\n\n@background\ndef add(a: int, b: int) -> int:\n    return a + b\n"
    )
    place.configure('tools = ["chores"]\n[http]\nport = 0\n')
    environ = {**place.environ, "PYTHONPATH": str(tmp_path)}
    monkeypatch.setattr(place.__class__, "environ", property(lambda self: environ))
    with Raw(place, "--thread", "conv-1") as raw:
        raw.hello()
        tools = {tool["name"]: tool for tool in raw.ask("tools/list")["tools"]}
        assert tools["start_tool"]["inputSchema"]["properties"]["name"]["enum"] == ["add"]
        started = raw.call("start_tool", name="add", arguments={"a": 1, "b": 41})["content"][0]["text"]
        id = started.split()[1].rstrip(":")
        assert "\n42\n" in raw.call("wait", ids=[id], seconds=LONGEST_WAIT)["content"][0]["text"]
        refused = raw.call("start_tool", name="add", arguments={"c": 1})
        assert refused["_meta"]["meantime/code"] == "invalid_input"


@pytest.mark.core("the one killed MCP server")
def test_a_process_that_dies_between_telling_and_knowing(place: Place):
    """Its client may not have read the answer: it is told again, with the same id."""
    place.up()
    notice = ended(place, "one")
    with Raw(place, "--thread", "conv-1") as raw:
        assert raw.hello().told() == [notice]
        raw.process.send_signal(signal.SIGKILL)
        raw.process.wait()
    until(lambda: unread(place, state="unread") == [notice], "it is given back")
    with Raw(place, "--thread", "conv-1") as raw:
        raw.hello()
        answer = raw.call("list")
        assert answer["_meta"]["meantime/notices"] == [notice]
        assert "You may have been told this before" in answer["content"][1]["text"]
        assert raw.told() == []
        assert unread(place) == []


def test_a_client_that_leaves_in_mid_call(place: Place):
    place.up()
    place.ask("POST", "/v1/tasks", {"thread": "conv-1", "command": ["cat"], "openStdin": True, "id": "slow"})
    with Raw(place, "--thread", "conv-1") as raw:
        raw.hello().send("tools/call", {"name": "wait", "arguments": {"seconds": LONGEST_WAIT}})
        raw.leave()
        assert raw.process.wait(LIMIT) == 0
    place.ask("POST", "/v1/tasks/slow/send", {"eof": True})
    place.wait("slow")
    assert unread(place, state="unread") == ["slow.1"]


def test_a_call_that_is_cancelled(place: Place):
    """It is not answered, and the connection goes on; the work does, too."""
    place.up()
    place.ask("POST", "/v1/tasks", {"thread": "conv-1", "command": "sleep 600", "id": "slow"})
    with Raw(place, "--thread", "conv-1") as raw:
        waiting = raw.hello().send("tools/call", {"name": "wait", "arguments": {"seconds": LONGEST_WAIT}})
        raw.say({"method": "notifications/cancelled", "params": {"requestId": waiting}})
        assert "slow" in raw.call("list")["content"][0]["text"]
        assert place.ask("GET", "/v1/tasks/slow")["status"] == "running"


def test_a_daemon_that_is_restarted(place: Place):
    """The same client is not told twice of what it was told before."""
    place.up()
    notice = ended(place, "one")
    with Raw(place, "--thread", "conv-1") as raw:
        assert raw.hello().told() == [notice]
        place.kill()
        place.up()
        assert raw.told() == []
        until(lambda: unread(place) == [], "its call says that it had it")
        assert raw.call("start", command="true")["isError"] is False


def test_lines_that_are_no_messages(place: Place):
    place.up()
    with Raw(place) as raw:
        raw.hello()
        for line in (
            b"what?\n",
            b"[]\n",
            b"{}\n",
            b"\xff\xfe\n",
            b"[" * 50_000 + b"\n",
            b"x" * (5 << 20) + b"\n",
        ):
            raw.write(line)
            assert raw.answer(None)["error"]["code"] == -32700
        raw.write(b"\n")
        assert raw.call("list")["content"][0]["text"] == "Nothing runs."
        answer = raw.answer(raw.send("tools/call", {"name": 7}))
        assert answer["error"]["code"] == -32602
        answer = raw.answer(raw.send("no/such"))
        assert answer["error"]["code"] == -32601


def test_a_client_that_does_not_shake_hands(place: Place):
    place.up()
    with Raw(place) as raw:
        given = {"name": "start", "arguments": {"command": "true"}, "task": {}}
        assert raw.answer(raw.send("tools/call", given))["error"]["code"] == -32602
        raw.ask("initialize", HELLO)
        assert raw.call("list")["isError"] is False


def test_a_client_that_does_not_read(place: Place):
    """Whatever it asks, nothing is settled that still lies in the pipe."""
    place.up()
    notice = ended(place, "one")
    with Raw(place, "--thread", "conv-1") as raw:
        raw.hello()
        first = raw.send("tools/call", {"name": "list", "arguments": {}})
        before = until(raw.waiting, "it is on its way")
        second = raw.send("tools/call", {"name": "list", "arguments": {}})
        until(lambda: raw.waiting() > before, "both answers lie in the pipe")
        assert unread(place) == [notice]
        answers = {raw.read()["id"] for _ in range(2)}
        assert answers == {first, second}
        raw.call("list")
        until(lambda: unread(place) == [], "now it has it")


def test_nothing_but_the_protocol_is_on_stdout(place: Place):
    """And what is wrong before there is a protocol is two lines on stderr."""
    place.up()
    with Raw(place, "--thread", "not an id") as raw:
        assert raw.process.wait(LIMIT) == 2
        out, err = raw.process.communicate()
        assert out == b""
        assert b"not a valid id" in err
        assert b"Traceback" not in err
    place.down()
    with Raw(place, MEANTIME_NO_START="1") as raw:
        assert raw.process.wait(LIMIT) == 5
        assert raw.process.communicate()[0] == b""


def test_from_a_file_to_a_file(place: Place, tmp_path: Any):
    place.up()
    asked = tmp_path / "asked"
    asked.write_text('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    with asked.open() as stdin, (tmp_path / "said").open("w") as stdout:
        program = [sys.executable, "-m", "meantime", "mcp", "--home", str(place.home.folder)]
        environ = {name: value for name, value in place.environ.items() if name != "MEANTIME_HOME"}
        code = subprocess.run(program, stdin=stdin, stdout=stdout, env=environ, timeout=LIMIT, check=False)
    assert code.returncode == 0
    assert (tmp_path / "said").read_text() == '{"jsonrpc":"2.0","id":1,"result":{}}\n'


async def test_our_own_client_follows_it_over_everybodys_restart(place: Place, tmp_path: Any):
    """Near and far are both started anew while the work goes on; it is done once."""
    place.up()
    command = ["env", *(f"{k}={v}" for k, v in place.environ.items() if "MEANTIME" in k), *COMMAND]
    servers = {"far": StdioServer(command=[*command, "--thread", "far"])}
    log = tmp_path / "log"
    line = f"echo once >> {log}; until test -e {tmp_path}/go; do sleep 0.05; done; echo through"
    async with Meantime.open(tmp_path / "near.db", settings=QUICK, servers=servers) as near:
        handle = await near.thread("a").start(Tool("far/start", {"command": line}))

        async def has_begun() -> bool:
            return bool((await handle.get()).session) and log.exists()

        await until_async(has_begun, "it runs at the other one")
    await asyncio.to_thread(place.kill)
    await asyncio.to_thread(place.up)
    (tmp_path / "go").touch()
    async with Meantime.open(tmp_path / "near.db", settings=QUICK, servers=servers) as near:
        (task,) = await near.thread("a").wait(handle.id, timeout=LIMIT)
        assert completed(task).result == "through\n"
    assert log.read_text() == "once\n"
