"""Real daemons in homes of their own. Nothing of them is left when a test ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.waiting import LIMIT, until

from meantime.daemon.daemon_autostart import ensure
from meantime.daemon.home import Home
from meantime.daemon.owner_process import owner, terminate


class Place:
    """A home, and whatever runs for it."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "home", folder / "config.toml")
        self.configure("[http]\nport = 0\n")

    @property
    def environ(self) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if "MEANTIME" not in name}
        return {**plain, "MEANTIME_HOME": str(self.home.folder), "MEANTIME_CONFIG": str(self.home.config)}

    def configure(self, text: str) -> None:
        self.home.config.write_text(text)

    def up(self) -> int:
        ensure(self.home, wait=LIMIT)
        leader = owner(self.home)
        assert leader is not None
        assert leader.is_daemon
        return leader.pid

    def down(self, number: signal.Signals = signal.SIGTERM) -> None:
        leader = owner(self.home)
        assert leader is not None
        assert terminate(self.home, leader.pid, number, LIMIT)

    def kill(self) -> int:
        leader = owner(self.home)
        assert leader is not None
        assert terminate(self.home, leader.pid, signal.SIGKILL, LIMIT)
        return leader.pid

    def daemon(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        program = [sys.executable, "-P", "-m", "meantime.app.daemon", *arguments]
        given = {"stderr": subprocess.PIPE, "text": True, "env": self.environ, **options}
        return subprocess.Popen(program, **given)

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "meantime", *arguments],
            env=self.environ, text=True, capture_output=True, timeout=2 * LIMIT, check=False,
        )  # fmt: skip

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        line = Line(self.home)
        try:
            given = {"Content-Type": "application/json"} if method == "POST" else {}
            data = msgspec.json.encode({} if body is None else body) if method == "POST" else None
            line.request(method, path, data, given)
            answer = line.getresponse()
            text = answer.read()
            assert answer.status < 300, text
            return msgspec.json.decode(text) if text else None
        finally:
            line.close()

    def wait(self, task: str) -> Any:
        """The task, once it has ended."""
        return self.ask("GET", f"/v1/tasks/{task}/wait?timeout={LIMIT:g}")

    def processes(self) -> list[int]:
        """Whatever has our home in its command line or environment: daemons, zygotes, shims, commands."""
        mark = os.fsencode(self.home.folder)
        others = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
        return [pid for pid in others if pid != os.getpid() and mark in _said(pid)]

    def log(self) -> str:
        return self.home.log.read_text() if self.home.log.exists() else ""


class Line(HTTPConnection):
    def __init__(self, home: Home) -> None:
        super().__init__("meantime", timeout=2 * LIMIT)
        self._path = str(home.http_socket)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _said(pid: int) -> bytes:
    try:
        return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    except OSError:
        return b""  # it is gone


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_in(tmp_path) as made:
        yield made


@contextmanager
def place_in(folder: Path) -> Iterator[Place]:
    made = Place(folder)
    try:
        yield made
        leader = owner(made.home)
        if leader is not None and leader.pid != os.getpid():
            terminate(made.home, leader.pid, signal.SIGUSR1, LIMIT)
        until(lambda: not made.processes(), "nothing is left behind", there=made.processes)
    finally:
        for pid in made.processes():
            os.kill(pid, signal.SIGKILL)
