"""The time that `meantime mcp` takes to answer at its start, beside Python itself, a bare server of the SDK,
and `meantime mcp` without its front (the SDK is loaded first, as it was before)."""

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

from .mcp_tools import SERVER
from .measure import folder, p50, ratio, table, verdict

ROUNDS = 15
TARGET = 8.0  # times `python -c pass`
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
WITHOUT = (
    "import sys, meantime.app.verbs.mcp as verb; verb.begin = lambda *given: None;"
    "from meantime.app.main import main; main()"
)
STEPS = ("initialize", "tools/list", "tools/call")


async def run() -> None:
    with folder() as path:
        home = Home(path / "home", path / "config.toml")
        home.config.write_text("[http]\nport = 0\n")
        os.environ.update({"MEANTIME_HOME": str(home.folder), "MEANTIME_CONFIG": str(home.config)})
        server = path / "server.py"
        server.write_text(SERVER)
        await asyncio.to_thread(ensure, home)
        try:
            _measure(server)
        finally:
            leader = owner(home)
            if leader is not None:
                await asyncio.to_thread(terminate, home, leader.pid, signal.SIGUSR1, 30.0)


def _measure(server: Path) -> None:
    """Beside each other in every round, so that a busy machine is busy for all."""
    script = str(Path(sys.executable).with_name("meantime"))
    ways = {
        "a bare server of the SDK": ([sys.executable, str(server)], "noop"),
        "meantime mcp, without its front": (
            [sys.executable, "-c", WITHOUT, "mcp", "--thread", "bench"],
            "list",
        ),
        "meantime mcp": ([script, "mcp", "--thread", "bench"], "list"),
    }
    alone: list[float] = []
    talks: dict[str, list[Talk]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        alone.append(time.perf_counter() - began)
        for name, (program, tool) in ways.items():
            talks[name].append(Talk(program, tool))
    least = p50(alone)
    rows = [["python -c pass", f"{least * 1e3:,.0f} ms", *[""] * 4]]
    for name, held in talks.items():
        times = [p50([talk.times[step] for talk in held]) for step in STEPS]
        memory = (f"{p50([talk.memory[step] for talk in held]):,.0f} MB" for step in STEPS[1:])
        rows.append([name, *(f"{taken * 1e3:,.0f} ms, {ratio(taken, least)}" for taken in times), *memory])
    head = ["", *STEPS, "memory then", "and in the end"]
    table(f"from the start of the process to the answer (p50 of {ROUNDS})", head, rows)
    ours = talks["meantime mcp"]
    slower = max(p50([talk.times[step] for talk in ours]) for step in STEPS[:2])
    print(f"  the first answers: {verdict(round(slower / least, 2), TARGET)}")


class Talk:
    """A client that begins, lists the tools and calls one, as fast as it can."""

    def __init__(self, program: list[str], tool: str) -> None:
        self.times: dict[str, float] = {}  # seconds since the start
        self.memory: dict[str, float] = {}  # MB after each answer
        self._began = time.perf_counter()
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._ask("initialize", HELLO)
        self._say({"method": "notifications/initialized"})
        self._ask("tools/list", {})
        self._ask("tools/call", {"name": tool, "arguments": {}})
        self._process.communicate(timeout=30)

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        self._say({"id": method, "method": method, "params": params})
        assert self._process.stdout is not None
        while json.loads(self._process.stdout.readline()).get("id") != method:
            pass
        self.times[method] = time.perf_counter() - self._began
        status = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        resident = next(line.split()[1] for line in status if line.startswith("VmRSS"))
        self.memory[method] = int(resident) / 1024

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()
