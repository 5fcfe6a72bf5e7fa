"""Somebody with a daemon that knows the scripted agents, and with a page in a browser."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

from tests.cli.person import Person
from tests.waiting import until

ROOT = Path(__file__).parents[3]
AGENTS = ("paint", "christen", "push", "look", "listen", "repeat")
AGENT = '[agents.{name}]\nrunner = "python"\nagent = "tests.surfaces.dashboard.scripted_agents:{name}"\n'


class Desk(Person):
    def __init__(self, folder: Path, settings: str = "", port: int = 0) -> None:
        super().__init__(folder)
        agents = "".join(AGENT.format(name=name) for name in AGENTS)
        (folder / "config.toml").write_text(f"[http]\nport = {port}\n{settings}{agents}")
        paths = [os.environ.get("PYTHONPATH", ""), str(ROOT)]
        self.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

    def get(self, path: str, **query: Any) -> Any:
        with contextlib.closing(self.daemon()) as asking:
            return asking.get(path, **query)

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        with contextlib.closing(self.daemon()) as asking:
            return asking.post(path, body or {})

    def hand_off(self, command: str, title: str = "", **order: Any) -> str:
        """A command for a shell, by the id of its task. Its conversation is told."""
        order = {"thread": "conv-1", "command": command, "description": title or command, **order}
        return self.post("/v1/tasks", order)["id"]

    def ask_agent(self, agent: str, prompt: str = "Begin.", title: str = "", **order: Any) -> str:
        order = {"thread": "conv-1", "agent": agent, "prompt": prompt, "description": title or agent, **order}
        return self.post("/v1/tasks", order)["id"]

    def task(self, ref: str) -> Any:
        return self.get(f"/v1/tasks/{ref}")

    def until(self, ref: str, *states: str) -> Any:
        """The task, once it is in one of these states."""
        return until(
            lambda: (task := self.task(ref))["state"] in states and task,
            f"its state is one of {states}",
            there=lambda: self.task(ref)["state"],
        )

    def link(self, go: str = "", **wish: Any) -> str:
        """A link that works once, as `meantime open --print` has it."""
        url = self.post("/v1/codes", {"access": "write", **wish})["url"]
        return f"{url}&go={go}" if go else url

    def tell(self, thread: str) -> Any:
        """Takes a turn of a conversation and acknowledges it: its notices are told."""
        turn = self.post(f"/v1/threads/{thread}/turns")
        self.post(f"/v1/turns/{turn['turn']}/ack", {"notices": [notice["id"] for notice in turn["notices"]]})
        return turn

    def kill(self) -> None:
        """The daemon, as `kill -9` does it."""
        os.kill(self.info()["pid"], signal.SIGKILL)
