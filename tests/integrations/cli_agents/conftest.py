"""The scripted program, seen from outside, and a Meantime that knows it as the agent `one`."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, Handle, Meantime, Settings, Thread
from meantime.ports.session import AgentSettings

PROGRAM = Path(__file__).with_name("program.py")
QUICK = Settings(stop_grace=0.5, stop_deadline=LIMIT)


class Program:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def settings(self, **more: Any) -> AgentSettings:
        command = (sys.executable, str(PROGRAM), str(self.folder))
        given = {"runner": "cli", "command": command, "profile": "claude", "last_turn": 0.0, **more}
        return AgentSettings(**given)

    def noted(self, name: str) -> list[Any]:
        file = self.folder / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def given(self) -> list[dict[str, Any]]:
        return self.noted("given")

    def open_gate(self, name: str = "gate") -> None:
        (self.folder / name).touch()

    async def waits(self, gate: str = "gate", count: int = 1) -> None:
        await until_async(
            lambda: self.noted("waiting").count(gate) >= count,
            f"the program waits at {gate}",
            lambda: self.noted("given"),
        )


def script(*steps: Mapping[str, Any]) -> str:
    return f"@@{json.dumps(steps)}@@"


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def shown(lines: Any) -> list[str]:
    """What was said, without what only machines need."""
    return [f"{line.role} {line.kind}: {line.tool or line.text}" for line in lines]


async def ended(handle: Handle, thread: Thread) -> Any:
    (task,) = await thread.wait(handle.id, timeout=LIMIT)
    assert task.ended, task
    return task


async def told(thread: Thread) -> list[tuple[str, str]]:
    async with thread.turn() as turn:
        found = [(notice.task_id, str(notice.task.status)) for notice in turn.notices]
        await turn.ack()
    return found


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "program")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
async def mt(ledger: Path, program: Program) -> AsyncIterator[Meantime]:
    async with Meantime.open(ledger, settings=QUICK, agents={"one": program.settings()}) as opened:
        yield opened


@pytest.fixture
async def thread(mt: Meantime) -> Thread:
    return mt.thread("a")


def one(*steps: Mapping[str, Any]) -> Agent:
    return Agent("one", script(*steps))
