"""Commands that are not tasks of their own, for integrations that start programs (ports/commands.py)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from msgspec.structs import replace

from meantime.execution.context import WorkContext
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Run, Task, Work
from meantime.kernel.outcomes import Report
from meantime.ports.commands import Command, CommandEnd, Piece
from meantime.ports.runner import Assignment

from .output_ring import ERR, OUT
from .runner import ShellRunner
from .shim_order import TASK
from .utf8 import as_text

MOST = 1 << 18  # bytes of a piece
INTERRUPTED = 2.0  # seconds that a program has to end after an interrupt
LOOK_AGAIN = 0.05  # seconds, while it is not followed yet


class LastingCommands:
    """Over a shell runner whose folder is its own: nobody else sweeps there."""

    def __init__(self, runner: ShellRunner) -> None:
        self._runner = runner

    def open(self) -> None:
        self._runner.open()

    async def close(self) -> None:
        await self._runner.close()

    def prepare(self, key: str) -> None:
        self._runner.prepare(_task(key))

    def follow(self, key: str, command: Command, *, again: bool = False) -> LastingCommand:
        return LastingCommand(self._runner, key, command, again=again)

    def runs(self, key: str) -> bool:
        return self._runner.runs(_task(key))

    def forget(self, key: str) -> None:
        self._runner.forget(_task(key))

    async def sweep(self, known: Callable[[str], bool]) -> None:
        async def asked(key: str) -> bool:
            return known(key)

        await self._runner.sweep((), asked, 0.0)


class LastingCommand:
    """Followed from the moment that it is made."""

    def __init__(self, runner: ShellRunner, key: str, command: Command, *, again: bool) -> None:
        loop = asyncio.get_running_loop()
        self._runner = runner
        self._task = _task(key, command)
        self._context = WorkContext(self._task, loop, time.time, lambda task, now: None)
        # It is no task: what it starts belongs to the one that its environment names.
        given = {"environment": command.env, "env": {TASK: command.env.get(TASK)}, "stdin": command.stdin}
        assignment = Assignment(self._task, kwargs=given, again=again)
        self._running = loop.create_task(runner.run(assignment, self._context))

    async def stdout(self) -> AsyncIterator[Piece]:
        offset, ended = 0, False
        while True:
            ended = ended or self._running.done()
            task = replace(self._task, status=Status.COMPLETED) if ended else self._task
            chunk = await self._runner.read(task, OUT, offset, MOST)
            if chunk.data:
                yield Piece(chunk.offset, chunk.data)
                offset = chunk.next
            elif ended:
                return
            elif not await self._runner.changed(self._task, OUT, offset):
                await asyncio.wait({self._running}, timeout=LOOK_AGAIN)

    async def ending(self) -> CommandEnd:
        await asyncio.wait({self._running})
        return self._ended()

    async def stderr(self, most: int) -> str:
        return as_text((await self._runner.tail(self._task, ERR, most, most)).data)

    async def stop(self) -> CommandEnd:
        hard = False
        try:
            if self._runner.interrupt(self._task):
                await asyncio.wait({self._running}, timeout=INTERRUPTED)
        except asyncio.CancelledError:
            hard = True
        self._request_stop()
        while not self._running.done():
            try:
                await asyncio.sleep(0)  # a second request counts only when the first was heard
                if hard:
                    self._request_stop()
                    hard = False
                await asyncio.wait({self._running})
            except asyncio.CancelledError:
                hard = True
        await self._end_leftovers()
        return self._ended()

    async def _end_leftovers(self) -> None:
        """Processes that a program leaves behind when an interrupt ends it. A further stop changes nothing
        any more: nobody is told that it is over before they are gone."""
        ending = asyncio.ensure_future(self._runner.end_leftovers(self._task))
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({ending})
        ending.result()

    def _ended(self) -> CommandEnd:
        return CommandEnd(stopped=True) if self._running.cancelled() else _ending(self._running.result())

    def _request_stop(self) -> None:
        """The first time to stop, the second time it is killed."""
        if not self._running.done():
            self._context.count_stop()
            self._running.cancel()

    async def leave(self) -> bool:
        return await self._runner.detach(self._task)


def _task(key: str, command: Command | None = None) -> Task:
    """The task that the shell runner is given for it; it is in no ledger."""
    given = {} if command is None else _given(command)
    work = Work("shell", key, given)
    return Task(id=key, thread="", work=work, status=Status.RUNNING, run=Run())


def _given(command: Command) -> dict[str, object]:
    return {"command": list(command.argv), "cwd": command.cwd, "leftovers": command.leftovers}


def _ending(report: Report) -> CommandEnd:
    if report.detached:
        return CommandEnd(left=True)
    if report.lost:
        return CommandEnd(lost=report.lost)
    if report.stopped:
        return CommandEnd(stopped=True)
    error = report.error
    if error is None:
        return CommandEnd(exit_code=0)
    if error.exit_code is None and error.signal is None:
        return CommandEnd(error=error)
    return CommandEnd(exit_code=error.exit_code, signal=error.signal)
