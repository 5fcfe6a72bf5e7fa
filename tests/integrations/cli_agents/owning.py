"""The owner to be killed, from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec

from meantime.ports.session import AgentSettings

ROOT = Path(__file__).parents[3]


class Owner:
    def __init__(self, ledger: Path, settings: AgentSettings) -> None:
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

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
