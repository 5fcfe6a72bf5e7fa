"""Servers that do as they are told, and a Meantime that knows them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Handle, Meantime, Settings, StdioServer, Task, Thread, Tool
from meantime.integrations import guarded_process
from meantime.integrations.mcp import remote_task_poll
from meantime.integrations.mcp.runner import McpRunner
from meantime.integrations.mcp.wire import disconnect_reason, server_connection
from runtimes import runtime_of

PEER = Path(__file__).parent / "peers" / "scripted.py"
PATIENT = Settings(stop_grace=LIMIT, stop_deadline=LIMIT)


class Peer:
    """The scripted server, seen from outside: its folder, and what it has written there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def server(self, start: str = "well", *, modern: bool = False, **options: float) -> StdioServer:
        era = ["modern"] if modern else []
        command = [sys.executable, str(PEER), start, str(self.folder), *era]
        return StdioServer(command=command, **{"start_timeout": LIMIT, **options})  # type: ignore[arg-type]

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def open_gate(self, name: str = "gate") -> None:
        (self.folder / name).touch()

    async def until(self, name: str, line: str, count: int = 1) -> None:
        await until_async(
            lambda: self.lines(name).count(line) >= count,
            f"the server has written {line!r} to {name} {count} times",
            lambda: self.lines(name),
        )

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.lines("pids")]


@contextmanager
def http_server(command: list[str]) -> Iterator[str]:
    """The address of a server that prints its port. It listens: a client waits until it is answered."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


async def seen(handle: Handle, look: Callable[[Task], Any]) -> Any:
    """What `look` finds in the task, as soon as it finds something."""

    async def found() -> Any:
        return look(await handle.get())

    return await until_async(found, "the task shows it", handle.get)


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


async def ended(thread: Thread, name: str, **arguments: object) -> Task:
    """A call of the tool, to its end."""
    handle = await thread.start(Tool(name, arguments))
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert task.ended, f"{name} is still {task.status}"
    return task


def runner_of(mt: Meantime) -> McpRunner:
    runner = runtime_of(mt).engine.runner("tool")
    assert isinstance(runner, McpRunner)
    return runner


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine does not change what is said of a server that has ended, and what a close waits for."""
    monkeypatch.setattr(guarded_process, "GOES", LIMIT)
    monkeypatch.setattr(remote_task_poll, "CANCEL", LIMIT)
    for module in (disconnect_reason, server_connection):
        monkeypatch.setattr(module, "HOW_IT_ENDED", LIMIT)


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    return Peer(tmp_path / "peer")


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def era(request: pytest.FixtureRequest) -> bool:
    """Whether the server speaks the newer protocol."""
    return request.param == "2026-07-28"


@pytest.fixture
def settings() -> Settings:
    return PATIENT


@pytest.fixture
async def mt(peer: Peer, era: bool, settings: Settings) -> AsyncIterator[Meantime]:
    async with Meantime.open(":memory:", settings=settings, servers={"s": peer.server(modern=era)}) as mt:
        yield mt
        peer.open_gate()  # whatever still waits goes on


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")
