"""A Meantime whose agents are the scripted one, and a real clock: processes know no other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from meantime import Agent, Handle, Meantime, Task, Thread
from meantime.kernel.model import Progress
from meantime.ports.session import AgentSettings

SCRIPTED = Path(__file__).with_name("scripted.py")
PATIENCE = 120.0  # seconds; nothing here takes so long, unless the machine is very busy


class Peer:
    """The scripted agent from outside: its folder, and what it has written there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.ledger = folder.parent / "work.db"

    def settings(self, *habits: str, **more: Any) -> AgentSettings:
        options = {"grace": 0.5, **more.pop("options", {})}
        command = (sys.executable, str(SCRIPTED), str(self.folder), *habits)
        return AgentSettings(runner="acp", command=command, options=options, **more)

    @contextlib.asynccontextmanager
    async def employed(self, *habits: str, **more: Any) -> AsyncIterator[Thread]:
        async with Meantime.open(self.ledger, agents={"one": self.settings(*habits, **more)}) as mt:
            yield mt.thread("conv-1")

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    async def until(self, name: str, count: int = 1) -> list[str]:
        await until(lambda: len(self.lines(name)) >= count)
        return self.lines(name)

    def touch(self, name: str) -> None:
        (self.folder / name).touch()


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    return Peer(tmp_path / "peer")


def steps(*given: dict[str, Any]) -> Agent:
    return Agent("one", json.dumps(given))


async def ended(thread: Thread, handle: Handle) -> Task:
    (task,) = await thread.wait(handle, timeout=PATIENCE)
    assert task.ended, task
    return task


async def asked(handle: Handle) -> Task:
    """As soon as it waits for an answer."""
    async with asyncio.timeout(PATIENCE):
        while (task := await handle.get()).question is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return task


async def in_phase(handle: Handle, phase: str) -> None:
    """As soon as it says so: progress is recorded now and then, not at once."""
    async with asyncio.timeout(PATIENCE):
        while phase not in ((await handle.get()).progress or Progress()).phase:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


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
