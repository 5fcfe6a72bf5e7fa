"""The cost of `meantime mcp --wrap` in front of a server of the SDK, beside the server itself: a quick call,
a hundred calls at once, a result of 10 MB, and the time to the first answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from meantime.daemon.daemon_autostart import ensure
from meantime.daemon.home import Home
from meantime.daemon.owner_process import owner, terminate

from .mcp_front import HELLO
from .measure import folder, p50, ratio, table, verdict

SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("bench")


@server.tool()
def noop() -> str:
    return "done"


@server.tool()
def big(size: int) -> str:
    return "x" * size


server.run("stdio")
"""
# Starts as fast as Python: the start of a server of the SDK varies by more than the wrap adds.
BARE_SERVER = """
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        info = {"name": "bare", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
CALLS, ROUNDS, STARTS, AT_ONCE, BIG = 200, 7, 15, 100, 10 << 20
MOST_CALL = 2.0  # times a direct call
MOST_START = 8.0  # times `python -c pass`, on top of the server's own start
MOST_MEMORY = 6.0  # times the size of a big result, in the daemon and the wrap together


async def run() -> None:
    with folder() as path:
        home = Home(path / "home", path / "config.toml")
        home.config.write_text("[http]\nport = 0\n")
        os.environ.update({"MEANTIME_HOME": str(home.folder), "MEANTIME_CONFIG": str(home.config)})
        script, bare = path / "server.py", path / "bare.py"
        script.write_text(SERVER)
        bare.write_text(BARE_SERVER)
        await asyncio.to_thread(ensure, home)
        leader = owner(home)
        assert leader is not None
        os.environ["CLAUDE_CODE_SESSION_ID"] = "bench"  # as a host with hooks, whose notes are looked for
        (home.folder / "sessions").mkdir()
        try:
            late = _measure_start([sys.executable, str(bare)])
            _measure([sys.executable, str(script)], leader.pid)
            said = verdict(round(late, 2), MOST_START)
            print(f"  a later first answer, in `python -c pass`: {late:.1f}, {said}")
        finally:
            await asyncio.to_thread(terminate, home, leader.pid, signal.SIGUSR1, 30.0)


def _ways(server: list[str]) -> dict[str, list[str]]:
    meantime = str(Path(sys.executable).with_name("meantime"))
    return {"direct": server, "wrapped": [meantime, "mcp", "--wrap", "--", *server]}


def _measure_start(server: list[str]) -> float:
    """By how much the first answer is later, in starts of Python; all in turn in every round."""
    python: list[float] = []
    starts: dict[str, list[float]] = {name: [] for name in _ways(server)}
    for _ in range(STARTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        python.append(time.perf_counter() - began)
        for name, program in _ways(server).items():
            host = Host(program)
            starts[name].append(host.start)
            host.close()
    return (p50(starts["wrapped"]) - p50(starts["direct"])) / p50(python)


def _measure(server: list[str], daemon: int) -> None:
    """Both in turn in every round, so that a busy machine is busy for both."""
    ways = _ways(server)
    hosts: dict[str, list[Host]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        pair = {name: Host(program) for name, program in ways.items()}
        for _ in range(CALLS // ROUNDS):
            for host in pair.values():
                host.time_call()
        for name, host in pair.items():
            host.time_many()
            host.read_big(daemon)
            host.close()
            hosts[name].append(host)
    _show(hosts)


def _show(hosts: dict[str, list[Host]]) -> None:
    starts = {name: p50([host.start for host in held]) for name, held in hosts.items()}
    calls = {name: p50([taken for host in held for taken in host.calls]) for name, held in hosts.items()}
    many = {name: p50([host.many for host in held]) for name, held in hosts.items()}
    rows = [
        [name, f"{starts[name] * 1e3:,.0f} ms", f"{calls[name] * 1e6:,.0f} µs", f"{many[name] * 1e3:,.0f} ms"]
        for name in hosts
    ]
    rows.append(
        ["wrapped / direct", *(ratio(one["wrapped"], one["direct"]) for one in (starts, calls, many))]
    )
    table("a server of the SDK", ["", "first answer", "a call (p50)", f"{AT_ONCE} calls at once"], rows)
    memory = max(host.memory for host in hosts["wrapped"]) / BIG
    call = calls["wrapped"] / calls["direct"]
    print(f"  a quick call, in direct calls: {call:.2f}, {verdict(round(call, 2), MOST_CALL)}")
    print(f"  memory for {BIG >> 20} MB, in results: {memory:.1f}, {verdict(round(memory, 2), MOST_MEMORY)}")


class Host:
    """A client that speaks line by line."""

    def __init__(self, program: list[str]) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._count = 0
        self.calls: list[float] = []
        self.many = 0.0
        self.memory = 0
        self._read(self._send("initialize", HELLO))
        self.start = time.perf_counter() - began
        self._say({"method": "notifications/initialized"})
        self._read(self._send("tools/call", {"name": "noop", "arguments": {}}))

    def time_call(self) -> None:
        began = time.perf_counter()
        self._read(self._send("tools/call", {"name": "noop", "arguments": {}}))
        self.calls.append(time.perf_counter() - began)

    def time_many(self) -> None:
        began = time.perf_counter()
        for _ in range(AT_ONCE):
            self._send("tools/call", {"name": "noop", "arguments": {}})
        assert self._process.stdout is not None
        for _ in range(AT_ONCE):
            assert b'"result"' in self._process.stdout.readline()
        self.many = time.perf_counter() - began

    def read_big(self, daemon: int) -> None:
        """How much the daemon and the wrap grow at most."""
        pids = (daemon, self._process.pid)
        for pid in pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        before = sum(_memory(pid, "VmRSS") for pid in pids)
        self._read(self._send("tools/call", {"name": "big", "arguments": {"size": BIG}}))
        self.memory = sum(_memory(pid, "VmHWM") for pid in pids) - before

    def close(self) -> None:
        self._process.communicate(timeout=30)

    def _send(self, method: str, params: dict[str, Any]) -> int:
        self._count += 1
        self._say({"id": self._count, "method": method, "params": params})
        return self._count

    def _read(self, id: int) -> None:
        assert self._process.stdout is not None
        while b'"id":%d' % id not in self._process.stdout.readline().replace(b" ", b"")[:200]:
            pass

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def _memory(pid: int, what: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))
