"""How long a call of `meantime` takes, beside a script of 12 lines that asks the daemon's socket and prints:
agents and people make many of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from meantime.daemon.home import Home
from meantime.surfaces.daemon_client.daemon_client import Daemon

from .measure import p50, ratio, table, verdict

ROUNDS = 30
TARGET = 1.5  # times the script that asks the same
SCRIPT = r"""
import json
import socket
import sys

address, method, path, body = sys.argv[1:]
head = f"{method} {path} HTTP/1.1\r\nHost: meantime\r\nContent-Type: application/json\r\n"
with socket.socket(socket.AF_UNIX) as talk:
    talk.connect(address)
    talk.sendall(f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    answer = b"".join(iter(lambda: talk.recv(65536), b""))
for name, value in json.loads(answer.partition(b"\r\n\r\n")[2]).items():
    print(name, value)
"""
START = json.dumps({"thread": "bench", "command": ["true"], "notify": False})
# Verb: its arguments, and how the script asks the same.
VERBS = {
    "ps": (["ps"], ["GET", "/v1/tasks?status=running,resumed&limit=200", ""]),
    "run -q": (["run", "-q", "--", "true"], ["POST", "/v1/tasks", START]),
    "logs": (["logs", "{id}"], ["GET", "/v1/tasks/{id}/output?encoding=base64", ""]),
    "wait": (["wait", "{id}"], ["GET", "/v1/tasks/{id}/wait?timeout=30", ""]),
    "show": (["show", "{id}"], ["GET", "/v1/tasks/{id}", ""]),
}
BARE = "python -c pass"
# A program as it is installed: its bytecode is there, and its output is not a terminal's.
UNWANTED = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


async def run() -> None:
    times = _measured()
    bare = p50(times.pop(BARE))
    rows = [[BARE, "", f"{bare * 1e3:,.1f} ms", "", ""]]
    for verb in VERBS:
        theirs, ours = p50(times[f"script {verb}"]), p50(times[f"meantime {verb}"])
        shown = [f"{theirs * 1e3:,.1f} ms", f"{ours * 1e3:,.1f} ms", ratio(ours, theirs)]
        rows.append([f"meantime {verb}", *shown, verdict(ours / theirs, TARGET)])
    table(f"calls (p50 of {ROUNDS})", ["", "script", "time", "ratio", "target"], rows)


def _measured() -> dict[str, list[float]]:
    """Beside each other in every round, so that a busy machine is busy for all. The first round does not
    count."""
    with _daemon() as (home, environ), tempfile.TemporaryDirectory() as folder:
        ways = _ways(home, environ, Path(folder, "asking.py"))
        settle = _settled(home)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, way in ways.items():
                settle()
                began = time.perf_counter()
                subprocess.run(way, env=environ, check=True, capture_output=True)
                if number:
                    times[name].append(time.perf_counter() - began)
    return times


def _ways(home: Home, environ: dict[str, str], script: Path) -> dict[str, list[str]]:
    script.write_text(SCRIPT)
    id = _meantime(environ, "run", "-q", "--", "echo", "hello")
    _meantime(environ, "wait", id)
    ways = {BARE: [sys.executable, "-c", "pass"]}
    for verb, (arguments, asked) in VERBS.items():
        question = [word.format(id=id) if "{id}" in word else word for word in asked]
        ways[f"script {verb}"] = [sys.executable, str(script), home.http_address, *question]
        ways[f"meantime {verb}"] = [_executable(), *(word.format(id=id) for word in arguments)]
    return ways


def _settled(home: Home) -> Callable[[], None]:
    """Waits until what was started has ended: it would be measured with the next call."""
    daemon = Daemon(home, start=False)

    def settle() -> None:
        while daemon.get("/v1/tasks", status="running,resumed", limit=1, thread="bench")["total"]:
            time.sleep(0.01)

    return settle


@contextmanager
def _daemon() -> Iterator[tuple[Home, dict[str, str]]]:
    with tempfile.TemporaryDirectory(prefix="meantime-") as folder:
        config = Path(folder, "config.toml")
        config.write_text("[http]\nport = 0\n")
        home = Home(Path(folder, "home"), config)
        plain = {name: value for name, value in os.environ.items() if name not in UNWANTED}
        environ = {
            **plain,
            "MEANTIME_HOME": str(home.folder),
            "MEANTIME_CONFIG": str(config),
            "MEANTIME_THREAD": "bench",
        }
        _meantime(environ, "run", "-q", "--thread", "other", "--", "sleep", "3600")
        try:
            yield home, environ
        finally:
            _meantime(environ, "down", "--stop")


def _executable() -> str:
    return str(Path(sys.executable).with_name("meantime"))


def _meantime(environ: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [_executable(), *arguments], env=environ, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
