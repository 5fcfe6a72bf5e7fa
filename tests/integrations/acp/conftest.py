"""A Meantime whose agents are the scripted one, and a real clock: processes know no other."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, Handle, Meantime, Settings, Task, Thread
from meantime.kernel.model import Progress
from meantime.ports.session import AgentSettings

SCRIPTED = Path(__file__).with_name("scripted.py")
PATIENT = Settings(stop_grace=LIMIT, stop_deadline=LIMIT)  # a second stop ends an agent that is about to obey


class Peer:
    """The scripted agent from outside: its folder, and what it has written there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.ledger = folder.parent / "work.db"

    def settings(self, *habits: str, **more: Any) -> AgentSettings:
        options = {"grace": LIMIT, "idle": LIMIT, "start": LIMIT, **more.pop("options", {})}
        command = (sys.executable, str(SCRIPTED), str(self.folder), *habits)
        return AgentSettings(runner="acp", command=command, options=options, **more)

    @contextlib.asynccontextmanager
    async def employed(self, *habits: str, **more: Any) -> AsyncIterator[Thread]:
        agents = {"one": self.settings(*habits, **more)}
        async with Meantime.open(self.ledger, settings=PATIENT, agents=agents) as mt:
            yield mt.thread("conv-1")

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    async def until(self, name: str, count: int = 1) -> list[str]:
        return await until_async(
            lambda: found if len(found := self.lines(name)) >= count else [],
            f"the agent has written {count} of {name}",
            lambda: self.lines("requests"),
        )

    def touch(self, name: str) -> None:
        (self.folder / name).touch()


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    return Peer(tmp_path / "peer")


def steps(*given: dict[str, Any]) -> Agent:
    return Agent("one", json.dumps(given))


async def ended(thread: Thread, handle: Handle) -> Task:
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert task.ended, task
    return task


async def asked(handle: Handle) -> Task:
    """As soon as it waits for an answer."""

    async def question() -> object:
        return (await handle.get()).question

    await until_async(question, "it asks", handle.get)
    return await handle.get()


async def in_phase(handle: Handle, phase: str) -> None:
    """As soon as it says so: progress is recorded now and then, not at once."""

    async def says_so() -> bool:
        return phase in ((await handle.get()).progress or Progress()).phase

    await until_async(says_so, f"its phase is {phase}", handle.get)


def runs(pid: int) -> bool:
    """A zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def below_us() -> list[str]:
    """All that works for us now."""
    return [path.parent.name for path in Path("/proc").glob("[0-9]*/status") if _ours(path)]


def _ours(path: Path) -> bool:
    try:
        return f"\nPPid:\t{os.getpid()}\n" in path.read_text()
    except OSError:
        return False
