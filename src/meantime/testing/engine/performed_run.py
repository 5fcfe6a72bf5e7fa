"""One run on an engine, as a runtime would perform it, and the work that the checks hand over."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from meantime.execution.context import WorkContext
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Run, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.work import Orderable
from meantime.ports.engine import Engine
from meantime.ports.runner import CURRENT, Assignment, current

from ..suite.patience import PATIENCE, until, until_in_thread


class Performance:
    """It begins at once; `report()` waits for its end."""

    def __init__(self, engine: Engine, work: Orderable[Any], id: str = "t_1", run: int = 1) -> None:
        self._engine = engine
        order = work.order()
        self.task = Task(id=id, thread="a", work=order.work, status=Status.RUNNING, run=Run(number=run))
        self._assignment = Assignment(self.task, order.target, order.args, order.kwargs)
        loop = asyncio.get_running_loop()
        self.context = WorkContext(self.task, loop, lambda: 0.0, lambda _, __: None)
        self.reports: list[Report] = []
        self._performing = loop.create_task(self._perform())

    async def _perform(self) -> None:
        CURRENT.set(self.context)
        self.reports.append(await self._engine.perform(self._assignment, self.context))
        await asyncio.sleep(0)  # a stop that leaks out of the run would strike here

    def stop(self) -> None:
        self.context.request_stop()
        self._engine.stop(self.task)

    async def report(self) -> Report:
        """The one report; an engine that raises, hangs or leaks its stop fails here."""
        await until(self._performing.done, "the report of the run")
        assert not self._performing.cancelled(), "the stop of the run reached its caller"
        await self._performing
        assert len(self.reports) == 1, f"{len(self.reports)} reports"
        return self.reports[0]

    def cancel_from_outside(self) -> None:
        self._performing.cancel()


async def give(value: Any) -> Any:
    return value


async def throw(problem: BaseException) -> None:
    raise problem


def throw_in_thread(problem: BaseException) -> None:
    raise problem


async def own_id() -> str:
    await asyncio.sleep(0)
    return current().task_id


async def sleep(started: asyncio.Event) -> None:
    started.set()
    await asyncio.Event().wait()


async def hold(started: asyncio.Event, let_go: asyncio.Event) -> None:
    started.set()
    await let_go.wait()


async def swallow(started: asyncio.Event) -> str:
    try:
        await sleep(started)
    except asyncio.CancelledError:
        await asyncio.sleep(0)
    return "finished"


async def clean_up(started: asyncio.Event, cleaned: asyncio.Event) -> None:
    try:
        await sleep(started)
    finally:
        await asyncio.sleep(0)
        cleaned.set()


async def fail_when_stopped(started: asyncio.Event) -> None:
    try:
        await sleep(started)
    except asyncio.CancelledError:
        raise OSError("the connection was open") from None


def wait_in_thread(started: threading.Event, go: threading.Event) -> bool:
    started.set()
    return go.wait(PATIENCE)


def look_in_thread(started: threading.Event) -> str:
    started.set()
    until_in_thread(lambda: current().cancelled, "a stop")
    return "half"


def check_in_thread(started: threading.Event) -> None:
    started.set()
    until_in_thread(current().check, "a stop")
