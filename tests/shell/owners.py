"""An owner in a process of its own, to be killed, and a command that waits to be let go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until_async

from gates import open_gate
from meantime import Settings, Thread

ROOT = Path(__file__).parents[2]
QUICK = Settings(stop_grace=0.5, stop_deadline=LIMIT)


class Owner:
    """A process that owns the ledger, until it is killed."""

    def __init__(self, ledger: Path) -> None:
        command = [sys.executable, "-m", "tests.shell.owner", str(ledger), "0.5"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **wanted: Any) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def start(self, command: str, *, options: dict[str, Any] | None = None, **shell: Any) -> str:
        return self.ask(shell={"command": command, **shell}, options=options or {})

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._end()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("close\n")
        self._process.stdin.flush()
        self._end()

    def _end(self) -> None:
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def released(tmp_path: Path, then: str = "") -> str:
    """A command that says that it is up, and goes on when it is let go."""
    if not (tmp_path / "gate").exists():
        os.mkfifo(tmp_path / "gate")
    return f"echo $$ >> {tmp_path}/started; echo before; cat {tmp_path}/gate; echo after; {then}"


def let_go(tmp_path: Path) -> None:
    open_gate(tmp_path / "gate", "")


async def wait_for(path: Path, text: str) -> None:
    await until_async(
        lambda: path.exists() and text in path.read_text(),
        f"{path.name} has {text!r}",
        lambda: path.read_text() if path.exists() else "no such file",
    )


async def told(thread: Thread) -> list[tuple[str, str]]:
    async with thread.turn() as turn:
        found = [(notice.task_id, str(notice.task.status)) for notice in turn.notices]
        await turn.ack()
    return found


def state_of(path: Path) -> Path:
    [state] = Path(f"{path}.commands").glob("*.state")
    return state
