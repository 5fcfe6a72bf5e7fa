"""A subject of the matrix: a program that talks with a model and has background work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .judge import TASKS

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
PEERS = ROOT / ".peers"
NOTICE = r'<task-notification id="[^"]+"/>\s*"[^"\n]*?(?P<task>alpha|beta)[^"\n]*"[^\n]*'


class Subject:
    """name: of its row; mode: how it is run, in words; program: one of ours that drives it.

    telling: a pattern that finds an ending in what the model is sent, with the group `task`.
    tool: what the model calls to start work, and with which arguments; TASK stands for the task.
    """

    telling = NOTICE
    tells = True  # otherwise a conversation asks, and is never told
    answers_first = True  # otherwise its prompt is answered only when the work has ended
    tool: tuple[str, dict[str, Any]] = ("TASK", {})

    def __init__(
        self, name: str, program: str, python: Path, mode: str, packages: tuple[str, ...], *words: str
    ) -> None:
        self.name = name
        self.mode = mode
        self.packages = packages
        self.python = python
        self.command = [str(python), str(PROGRAMS / program), *words]

    @property
    def missing(self) -> str:
        """Why it cannot be run here; empty if it can."""
        return "" if self.python.exists() else f"{self.python.relative_to(ROOT)} is not installed"

    @property
    def versions(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for package in self.packages:
            name = package.replace("-", "_").lower()
            folders = self.python.parent.parent.glob(f"lib/python*/site-packages/{name}-*.dist-info")
            for folder in folders:
                found[package] = folder.name.removesuffix(".dist-info").rpartition("-")[2]
        return found

    def starts(self) -> list[dict[str, Any]]:
        """The model's calls that start both tasks."""
        return [self.start(task) for task in TASKS]

    def start(self, task: str) -> dict[str, Any]:
        tool, arguments = self.tool
        given = {name: str(value).replace("TASK", task) for name, value in arguments.items()}
        return {"tool": tool.replace("TASK", task), "arguments": given}

    def environ(self, folder: Path) -> dict[str, str]:
        """More variables of its program. Meantime is the one of this tree, in whichever environment."""
        return {"PYTHONPATH": str(ROOT / "src")} if "meantime" in self.packages else {}

    def child(self, task: str) -> list[dict[str, Any]]:
        """The steps of a subagent's model, where subagents do the work: its prompt is %%child-TASK%%."""
        return [{"tool": task, "arguments": {}}, {"text": f"the work {task} is finished"}]

    def tellings(self, text: str) -> Iterator[re.Match[str]]:
        return re.finditer(self.telling, text)

    def apart(self, folder: Path) -> list[int]:
        """Processes of the subject outside of its session, which are killed too."""
        return []

    def clean(self, folder: Path) -> None:
        """Ends what is left."""
