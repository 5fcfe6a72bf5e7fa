"""Bugs of the link, planted from outside: a daemon imports this file as one of its tools, clients as it is.
Each breaks a promise that the judge of the link's families must see."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from tests.waiting import pause_async


def heard_before_recorded() -> None:
    """The owner says that it has an ending before it has one: who said it forgets it."""
    from meantime.link.frames import Ended, EndingAcknowledged
    from meantime.surfaces.socket.executor_reports import ExecutorReports
    from meantime.surfaces.socket.executor_table import ConnectedExecutor

    ended = ExecutorReports.ended

    def at_once(self: ExecutorReports, executor: ConnectedExecutor, frame: Ended) -> None:
        if executor.wire is not None:
            executor.wire.send(EndingAcknowledged(frame.task, frame.fence))
        asyncio.get_running_loop().call_later(0.3, ended, self, executor, frame)

    ExecutorReports.ended = at_once  # type: ignore[method-assign]


def gone_unnoticed() -> None:
    """A process that has ended is waited for, for ever."""
    from meantime.surfaces.socket.executor_table import ExecutorTable

    ExecutorTable.gone = lambda self, executor: None  # type: ignore[method-assign]


def turns_stranded() -> None:
    """A turn that was opened while its client was cut off is nobody's, and is not given back."""
    from meantime.runtime.runtime import Runtime

    open_turn = Runtime.open_turn

    async def opened(self: Runtime, thread: str, **options: Any) -> Any:
        turn = await asyncio.shield(asyncio.ensure_future(open_turn(self, thread, **options)))
        await pause_async(0.05, "its client may be cut off")
        return turn

    Runtime.open_turn = opened  # type: ignore[method-assign]


def run_again() -> None:
    """Told to run something after a reconnect, a client begins it again."""
    from meantime.client.executor import Executor
    from meantime.link.frames import RunFrame

    run = Executor.run

    def again(self: Executor, frame: RunFrame) -> None:
        held = self._held.get(frame.task.id)
        if held is not None and held.ending is None:
            held.performing = None
        run(self, frame)

    Executor.run = again  # type: ignore[method-assign]


def ended_kept() -> None:
    """Of every ending the daemon keeps a descriptor and memory: so much that a busy machine, on which fewer
    tasks end, does not hide it."""
    from meantime.runtime.record import Record

    move, kept = Record.move, []

    async def moved(self: Record, *given: Any, **more: Any) -> Any:
        kept.append((os.open("/dev/null", os.O_RDONLY), b"x" * 300_000))
        return await move(self, *given, **more)

    Record.move = moved  # type: ignore[method-assign]


PLANTS = {
    "ended_kept": ("daemon", ended_kept),
    "heard_before_recorded": ("daemon", heard_before_recorded),
    "gone_unnoticed": ("daemon", gone_unnoticed),
    "turns_stranded": ("daemon", turns_stranded),
    "run_again": ("client", run_again),
}


def plant(name: str, side: str) -> None:
    where, bug = PLANTS.get(name, ("", None))
    if bug is not None and where == side:
        bug()


if "meantime.app.daemon" in sys.orig_argv:
    plant(os.environ.get("MEANTIME_FAULT_PLANT", ""), "daemon")
