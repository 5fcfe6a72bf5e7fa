"""Traced runs of one start, `Shell("true")`, until its notice is acknowledged: embedded, over the link, over
HTTP and over MCP. In each of them a command was started before, so that what happens only once (a process
that forks shims, modules that load late) is not counted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from call_trace import Call, Recorder, read
from traced_process import FOLDER

TOOLS = Path(__file__).resolve().parent
THREAD = "conversation-1"
QUIET = 0.3  # seconds
PATIENCE = 60.0  # seconds: the machine may be busy
OWNER, CALLER, SERVER = "owner", "caller", "meantime mcp"  # processes


class Step(NamedTuple):
    process: str
    call: Call


class Mark(NamedTuple):
    """Something that the caller asks for, or has got."""

    at: int  # on the clock of the calls
    text: str
    is_answer: bool


class Walk(NamedTuple):
    way: str
    steps: list[Step]  # of all processes, in the order of time
    marks: list[Mark]

    @property
    def started(self) -> int:
        """When the caller had its task."""
        return next(mark.at for mark in self.marks if mark.is_answer)

    @property
    def calls(self) -> list[Call]:
        return [step.call for step in self.steps]

    @property
    def until_started(self) -> list[Call]:
        return [call for call in self.calls if call.at <= self.started]


# -- in the process that owns the ledger


def embedded() -> Walk:
    recorder = Recorder()
    recorder.install()  # before the threads of the store begin
    try:
        with tempfile.TemporaryDirectory() as folder:
            marks = asyncio.run(_embedded(recorder, Path(folder)))
    finally:
        recorder.remove()
    return _walk("embedded", {OWNER: recorder.calls}, marks)


async def _embedded(recorder: Recorder, folder: Path) -> list[Mark]:
    from meantime import Meantime

    async with asyncio.timeout(PATIENCE), Meantime.open(folder / "work.db") as mt:
        await _start_and_ack(mt)
        recorder.is_recording = True
        await _settled(recorder)
        found = await _start_and_ack(mt)
        recorder.is_recording = False
        return found


async def _settled(recorder: Recorder) -> None:
    """Waits until nothing was called for a while: the start before has left nothing to do."""
    size = -1
    while size != len(recorder.calls):
        size = len(recorder.calls)
        await asyncio.sleep(QUIET)


async def _start_and_ack(mt: Any) -> list[Mark]:
    from meantime import Shell

    thread = mt.thread(THREAD)
    marks = [_asks('thread.start(Shell("true"))')]
    await thread.start(Shell("true"))
    marks += [_has("a Handle"), _asks("thread.wakeups()")]
    async for _ in thread.wakeups():
        break
    marks += [_has("woken"), _asks("thread.turn()")]
    async with thread.turn() as turn:
        assert len(turn.notices) == 1
        marks += [_has("the notice"), _asks("turn.ack()")]
        await turn.ack()
    return [*marks, _has("told")]


def _asks(text: str) -> Mark:
    return Mark(time.monotonic_ns(), text, False)


def _has(text: str) -> Mark:
    return Mark(time.monotonic_ns(), text, True)


# -- through a daemon


class Daemon:
    """A traced daemon with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.traces = folder / "traces"
        self.traces.mkdir()
        config = folder / "config.toml"
        config.write_text('tools = ["traced_process"]\n[http]\nport = 0\n', "utf-8")
        plain = {name: value for name, value in os.environ.items() if "MEANTIME" not in name}
        self.environ = {
            **plain, "MEANTIME_HOME": str(self.home), "MEANTIME_CONFIG": str(config),
            "PYTHONPATH": str(TOOLS), FOLDER: str(self.traces),
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def link_socket(self) -> Path:
        return self.home / "link.sock"

    @property
    def http_socket(self) -> Path:
        return self.home / "http.sock"

    def up(self) -> None:
        command = [sys.executable, "-m", "meantime", "up", "--foreground"]
        self.process = subprocess.Popen(command, env=self.environ, stderr=subprocess.DEVNULL)
        until(lambda: self.link_socket.exists() and self.http_socket.exists())

    def down(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGUSR1)  # and what it runs
            try:
                self.process.wait(PATIENCE)
            finally:
                self.process.kill()

    def settle(self) -> None:
        """Until nothing was called for a while: what an earlier request left to do is done."""
        size, since = -1, time.monotonic()
        while time.monotonic() - since < QUIET:
            now = sum(path.stat().st_size for path in self.traces.iterdir())
            if now != size:
                size, since = now, time.monotonic()
            time.sleep(QUIET / 10)

    def calls(self, pid: int | None = None) -> list[Call]:
        assert self.process is not None
        with (self.traces / f"{pid or self.process.pid}.jsonl").open(encoding="utf-8") as lines:
            return read(lines)


@contextmanager
def daemon() -> Generator[Daemon]:
    with tempfile.TemporaryDirectory() as folder:
        made = Daemon(Path(folder))
        try:
            made.up()
            yield made
        finally:
            made.down()


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError(f"{condition} did not come true within {PATIENCE:g} s.")
        time.sleep(0.02)


def over_link() -> Walk:
    recorder = Recorder()
    with daemon() as served:
        recorder.install()
        try:
            marks = asyncio.run(_linked(recorder, served.link_socket))
        finally:
            recorder.remove()
        calls = {CALLER: recorder.calls, OWNER: served.calls()}
    return _walk("over the link", calls, marks)


async def _linked(recorder: Recorder, link: Path) -> list[Mark]:
    from meantime import Meantime

    async with asyncio.timeout(PATIENCE), Meantime.connect(link) as mt:
        await _start_and_ack(mt)
        recorder.is_recording = True
        found = await _start_and_ack(mt)
        recorder.is_recording = False
        return found


def over_http() -> Walk:
    import httpx

    with daemon() as served:
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(served.http_socket)), base_url="http://meantime",
            timeout=PATIENCE,
        ) as client:  # fmt: skip
            _asked(client)
            served.settle()
            marks = _asked(client)
        calls = {OWNER: served.calls()}
    return _walk("over HTTP", calls, marks)


def _asked(client: Any) -> list[Mark]:
    marks: list[Mark] = []

    def answer(route: str, body: Any = None, **ids: str) -> Any:
        marks.append(_asks(route))
        method, path = route.split()
        for name, id in ids.items():
            path = path.replace(f":{name}", id)
        said = client.request(method, path, json=body)
        said.raise_for_status()
        marks.append(_has(str(said.status_code)))
        return said.json() if said.content else None

    answer("POST /v1/tasks", {"thread": THREAD, "command": "true"})
    answer("GET /v1/threads/:id/wake", id=THREAD)
    turn = answer("POST /v1/threads/:id/turns", {}, id=THREAD)
    ids = [notice["id"] for notice in turn["notices"]]
    assert len(ids) == 1
    answer("POST /v1/turns/:turn/ack", {"notices": ids}, turn=turn["turn"])
    walked = list(marks)
    answer("POST /v1/turns/:turn/release", {}, turn=turn["turn"])
    return walked


# -- through an MCP server that is connected to a daemon


class McpClient:
    """Speaks to `meantime mcp` on its stdin and stdout, as an agent does."""

    def __init__(self, served: Daemon) -> None:
        command = [sys.executable, str(TOOLS / "traced_process.py"), "mcp", "--thread", THREAD]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=served.environ, stdin=pipe, stdout=pipe)
        self._count = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        self._ask("initialize", {**hello, "clientInfo": {"name": "traced", "version": "1"}})
        self._say({"method": "notifications/initialized"})

    def _say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdout is not None
        self._count += 1
        self._say({"id": self._count, "method": method, "params": params})
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._count:
                return message["result"]
        raise ConnectionError("meantime mcp has left.")

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()


@contextmanager
def mcp_client(served: Daemon) -> Generator[McpClient]:
    made = McpClient(served)
    try:
        yield made
    finally:
        made.close()


def over_mcp() -> Walk:
    with daemon() as served, mcp_client(served) as client:
        _told(client)
        served.settle()
        marks = _told(client)
        calls = {SERVER: served.calls(client.process.pid), OWNER: served.calls()}
    return _walk("over MCP", calls, marks)


def _told(client: McpClient) -> list[Mark]:
    """The result of `wait` takes the notice along; the next call says that the client has it."""
    marks = [_asks("start")]
    client.call("start", command="true")
    marks += [_has("the id"), _asks("wait")]
    client.call("wait")
    marks += [_has("the notice"), _asks("list")]
    client.call("list")
    return [*marks, _has("the list")]


def _walk(way: str, calls: dict[str, list[Call]], marks: list[Mark]) -> Walk:
    steps: list[Step] = []
    for process, found in calls.items():
        named = (call._replace(path=f"{process}: {call.path}") for call in found)
        steps += [Step(process, call) for call in named if marks[0].at <= call.at <= marks[-1].at]
    return Walk(way, sorted(steps, key=lambda step: step.call.at), marks)


WAYS: dict[str, Callable[[], Walk]] = {
    "embedded": embedded,
    "link": over_link,
    "http": over_http,
    "mcp": over_mcp,
}
