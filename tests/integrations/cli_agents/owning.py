"""The owner to be killed, from outside."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec

from meantime.ports.session import AgentSettings

ROOT = Path(__file__).parents[3]


class Owner:
    def __init__(self, ledger: Path, settings: AgentSettings) -> None:
        self._ledger = ledger
        words = [str(ledger), msgspec.json.encode(settings).decode()]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.integrations.cli_agents.owner", *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, prompt: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(prompt) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def recorded_calls(self, id: str) -> int:
        """The tool calls in the progress that is stored, which a kill cannot take away."""
        with closing(sqlite3.connect(f"file:{self._ledger}?mode=ro", uri=True)) as db:
            ((body,),) = db.execute("SELECT body FROM tasks WHERE id = ?", (id,))
        progress = json.loads(body).get("progress") or {}
        return sum(progress.get("tool_calls", {}).values())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
