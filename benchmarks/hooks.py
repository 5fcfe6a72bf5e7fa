"""The cost of a hook, which an agent runs at every tool call, beside a shell and beside a bare Python.

The lines are those that `meantime install` writes, started without any library in between.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from meantime.daemon.home import Home
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.install.hook_lines import line

from .measure import p50, ratio, table, verdict

ROUNDS = 40
SILENT, TELLING, MEGABYTES = 6.0, 3.0, 12.0  # the targets
SHELLS = {"claude-code": "/bin/sh", "codex": "/bin/bash", "gemini": "/bin/bash"}
BASE, BARE = "sh -c :", "python -S -c pass"


async def run() -> None:
    with tempfile.TemporaryDirectory(prefix="meantime-") as folder:
        bench = Bench(Path(folder))
        try:
            times = bench.measured()
            waiting = bench.waiting()
        finally:
            bench.close()
    rows: list[list[str]] = []
    for name, taken in times.items():
        against, target = (BASE, SILENT) if name.startswith(("sh", "nothing")) else (BARE, TELLING)
        beside = p50(taken) / p50(times[against])
        judged = verdict(beside, target) if name.startswith(("nothing", "telling")) else ""
        times_ = f"{ratio(p50(taken), p50(times[against]))} of {against}"
        rows.append([name, f"{p50(taken) * 1e3:,.1f} ms", times_, judged])
    rows.append(["hook wait, idle", f"{waiting:,.1f} MB", "", verdict(waiting, MEGABYTES)])
    table(f"hooks (p50 of {ROUNDS})", ["", "cost", "beside", "target"], rows)


class Bench:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "config.toml").write_text("[http]\nport = 0\n")
        self._home = folder / "home"
        named = {"MEANTIME_HOME": str(self._home), "MEANTIME_CONFIG": str(folder / "config.toml")}
        sessions = {"CLAUDE_CODE_SESSION_ID": "claude-code", "GEMINI_SESSION_ID": "gemini"}
        self._environ = {**os.environ, **named, **sessions}
        self._environ.pop("MEANTIME_THREAD", None)
        self._program = str(Path(sys.executable).with_name("meantime"))
        self._meantime("up")
        self._asking = Daemon(Home(self._home, folder / "config.toml"), start=False)
        self._nothing = os.open(os.devnull, os.O_RDWR)

    def close(self) -> None:
        self._meantime("down", "--stop")
        os.close(self._nothing)

    def measured(self) -> dict[str, list[float]]:
        """Beside each other in every round, so that a busy machine is busy for all."""
        ways: dict[str, Callable[[], float]] = {
            BASE: lambda: self._spawned(["/bin/sh", "-c", ":"]),
            **{f"nothing to tell, {host}": lambda host=host: self._hook(host)[0] for host in SHELLS},
            BARE: lambda: self._spawned([sys.executable, "-S", "-c", "pass"]),
            "python -c pass": lambda: self._spawned([sys.executable, "-c", "pass"]),
            "telling one notice": self._tell,
            "without a quiet file": self._without,
        }
        for host in SHELLS:  # the first one finds nothing, and makes the file
            self._hook(host)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                times[name].append(way())
        return times

    def waiting(self) -> float:
        """The memory of `hook wait`, which stays while an agent is idle, in MB."""
        self._meantime("run", "--thread", "mcp-claude-code", "--", "sleep", "60")
        words = ["/bin/sh", "-c", f"exec {line([self._program], 'wait', 'claude-code')}"]
        with self._said("claude-code").open("rb") as said:
            waits = subprocess.Popen(words, stdin=said, env=self._environ, stderr=subprocess.DEVNULL)
        try:
            time.sleep(2)  # it has asked by now, and blocks
            assert waits.poll() is None, "it does not wait"
            status = Path(f"/proc/{waits.pid}/status").read_text().splitlines()
            return next(int(row.split()[1]) for row in status if row.startswith("VmRSS")) / 1024
        finally:
            waits.kill()
            waits.wait()

    def _tell(self) -> float:
        """And the host writes it down, so that the next hook finds it there."""
        task = self._asking.post("/v1/tasks", {"thread": "mcp-claude-code", "command": "true"})
        self._asking.get(f"/v1/tasks/{task['id']}/wait", timeout=30, patience=60)
        taken, printed = self._hook("claude-code")
        assert task["id"] in printed, printed
        with (self._folder / "claude-code.jsonl").open("a") as transcript:
            transcript.write(printed)
        self._hook("claude-code")
        return taken

    def _without(self) -> float:
        (self._home / "quiet" / "mcp-claude-code").unlink()
        taken, printed = self._hook("claude-code")
        assert not printed, printed
        return taken

    def _hook(self, host: str) -> tuple[float, str]:
        moment = "user-prompt" if host == "gemini" else "post-tool"  # Gemini CLI has no hook after its tools
        words = [SHELLS[host], "-c", line([self._program], moment, host)]
        out = self._folder / "out"
        with self._said(host).open("rb") as said, out.open("wb") as printed:
            taken = self._spawned(words, said.fileno(), printed.fileno())
        return taken, out.read_text()

    def _said(self, host: str) -> Path:
        """The input that the host writes to stdin."""
        path, transcript = self._folder / f"{host}.json", self._folder / f"{host}.jsonl"
        if not path.exists():
            transcript.touch()
            said: dict[str, Any] = {"session_id": host, "transcript_path": str(transcript), "cwd": "/"}
            said |= {"hook_event_name": "PostToolUse", "tool_response": {"stdout": "x" * 2_000}}
            path.write_text(json.dumps(said, separators=(",", ":")))
        return path

    def _spawned(self, words: Sequence[str], given: int | None = None, printed: int | None = None) -> float:
        streams = [
            (os.POSIX_SPAWN_DUP2, self._nothing if place is None else place, number)
            for number, place in enumerate((given, printed))
        ]
        began = time.perf_counter()
        pid = os.posix_spawn(words[0], tuple(words), self._environ, file_actions=streams)
        _, status = os.waitpid(pid, 0)
        taken = time.perf_counter() - began
        assert status == 0, (words, status)
        return taken

    def _meantime(self, *words: str) -> None:
        subprocess.run([self._program, *words], env=self._environ, check=True, capture_output=True)
