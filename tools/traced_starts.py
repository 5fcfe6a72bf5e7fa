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
PATIENCE = 60.0  # seconds: the machine may be busy
OWNER, CALLER, SERVER = "owner", "caller", "meantime mcp"  # processes


class Step(NamedTuple):
    process: str
    call: Call


class Walk(NamedTuple):
    way: str
    steps: list[Step]  # of all processes, in the order of time
    started: int  # when the caller had its task, on the clock of the calls

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
            began, started, ended = asyncio.run(_embedded(recorder, Path(folder)))
    finally:
        recorder.remove()
    return _walk("embedded", {OWNER: recorder.calls}, began, started, ended)


async def _embedded(recorder: Recorder, folder: Path) -> tuple[int, int, int]:
    from meantime import Meantime

    async with asyncio.timeout(PATIENCE), Meantime.open(folder / "work.db") as mt:
        await _start_and_ack(mt)
        recorder.is_recording = True
        found = await _start_and_ack(mt)
        recorder.is_recording = False
        return found


async def _start_and_ack(mt: Any) -> tuple[int, int, int]:
    from meantime import Shell

    thread = mt.thread(THREAD)
    began = time.monotonic_ns()
    await thread.start(Shell("true"))
    started = time.monotonic_ns()
    async for _ in thread.wakeups():
        break
    async with thread.turn() as turn:
        assert len(turn.notices) == 1
        await turn.ack()
    return began, started, time.monotonic_ns()


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
            began, started, ended = asyncio.run(_linked(recorder, served.link_socket))
        finally:
            recorder.remove()
        calls = {CALLER: recorder.calls, OWNER: served.calls()}
    return _walk("over the link", calls, began, started, ended)


async def _linked(recorder: Recorder, link: Path) -> tuple[int, int, int]:
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
            began, started, ended = _asked(client)
        calls = {OWNER: served.calls()}
    return _walk("over HTTP", calls, began, started, ended)


def _asked(client: Any) -> tuple[int, int, int]:
    def answer(method: str, path: str, body: Any = None) -> Any:
        said = client.request(method, path, json=body)
        said.raise_for_status()
        return said.json() if said.content else None

    began = time.monotonic_ns()
    answer("POST", "/v1/tasks", {"thread": THREAD, "command": "true"})
    started = time.monotonic_ns()
    answer("GET", f"/v1/threads/{THREAD}/wake")
    turn = answer("POST", f"/v1/threads/{THREAD}/turns", {})
    ids = [notice["id"] for notice in turn["notices"]]
    assert len(ids) == 1
    answer("POST", f"/v1/turns/{turn['turn']}/ack", {"notices": ids})
    answer("POST", f"/v1/turns/{turn['turn']}/release", {})
    return began, started, time.monotonic_ns()


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
        began, started, ended = _told(client)
        calls = {SERVER: served.calls(client.process.pid), OWNER: served.calls()}
    return _walk("over MCP", calls, began, started, ended)


def _told(client: McpClient) -> tuple[int, int, int]:
    """The result of `wait` takes the notice along; the next call says that the client has it."""
    began = time.monotonic_ns()
    client.call("start", command="true")
    started = time.monotonic_ns()
    client.call("wait")
    client.call("list")
    return began, started, time.monotonic_ns()


def _walk(way: str, calls: dict[str, list[Call]], began: int, started: int, ended: int) -> Walk:
    steps: list[Step] = []
    for process, found in calls.items():
        named = (call._replace(path=f"{process}: {call.path}") for call in found)
        steps += [Step(process, call) for call in named if began <= call.at <= ended]
    return Walk(way, sorted(steps, key=lambda step: step.call.at), started)


WAYS: dict[str, Callable[[], Walk]] = {
    "embedded": embedded,
    "link": over_link,
    "http": over_http,
    "mcp": over_mcp,
}
