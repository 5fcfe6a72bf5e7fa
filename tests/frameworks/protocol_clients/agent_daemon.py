"""A real daemon with one agent: a stand-in for `claude -p`, which goes on while no daemon runs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.free_port import free_port
from tests.waiting import LIMIT, until

from meantime.daemon.daemon_autostart import ensure
from meantime.daemon.home import Home
from meantime.daemon.owner_process import owner, terminate

PROGRAM = Path(__file__).resolve().parents[2] / "integrations" / "cli_agents" / "program.py"
SLOW = '@@[{"say": "one"}, {"gate": "go"}, {"say": "two"}]@@'


class AgentDaemon:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = Home(folder / "home", folder / "config.toml")
        self.port = free_port()
        command = [sys.executable, str(PROGRAM), str(folder)]
        agent = f'[agents.explore]\nrunner = "cli"\nprofile = "claude"\ncommand = {command}\n'
        self.home.config.write_text(f"[http]\nport = {self.port}\n{agent}")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.home.folder / "token").read_text().strip()

    def up(self) -> None:
        ensure(self.home, wait=LIMIT)

    def end(self, number: signal.Signals) -> None:
        leader = owner(self.home)
        assert leader is not None
        assert terminate(self.home, leader.pid, number, LIMIT)

    def open_gate(self) -> None:
        (self.folder / "go").touch()

    def waiting(self) -> bool:
        """Whether the agent is at its gate."""
        return (self.folder / "waiting").exists()

    def starts(self) -> int:
        """How often the agent's program was started."""
        given = self.folder / "given"
        return len(given.read_text().splitlines()) if given.exists() else 0


@contextmanager
def agent_daemon(folder: Path) -> Iterator[AgentDaemon]:
    made = AgentDaemon(folder)
    made.up()
    try:
        yield made
        made.open_gate()
        leader = owner(made.home)
        if leader is not None:
            terminate(made.home, leader.pid, signal.SIGUSR1, LIMIT)
        until(lambda: not _left(folder), "nothing is left behind", lambda: _left(folder))
    finally:
        for pid in _left(folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _left(folder: Path) -> list[int]:
    mark = os.fsencode(folder)
    others = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]
    return [pid for pid in others if mark in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""  # it is gone
