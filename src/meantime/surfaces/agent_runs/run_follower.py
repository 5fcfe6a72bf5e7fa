"""A run as it goes on: its new lines, and its state whenever that changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, NamedTuple

from meantime.kernel.errors import Refused
from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import LinePage, PlacedLine
from meantime.ports.clock import Clock
from meantime.ports.tasks import Tasks

from .conversations import AgentConversations
from .numbered_run import NumberedRun

WINDOW = 1 << 20  # bytes of a conversation's end that are read; older lines are left out
_NO_LINES = LinePage((), 0, 0, 0)


class RunStep(NamedTuple):
    """The run now, its lines since the step before, and the place behind them. A step without news says that
    the run is still there."""

    run: NumberedRun
    lines: Sequence[PlacedLine]
    cursor: int
    changed: bool


class RunFollower:
    def __init__(
        self, tasks: Tasks, conversations: AgentConversations, clock: Clock, heartbeat: float
    ) -> None:
        self._tasks = tasks
        self._conversations = conversations
        self._clock = clock
        self._heartbeat = heartbeat

    async def follow(self, run: NumberedRun, since: int | None = None) -> AsyncIterator[RunStep]:
        """From the beginning, or from the cursor of a step, until nothing more comes by itself. The last step
        is always a change."""
        cursor = -WINDOW if since is None else since
        length, last = -1, ("", Status.QUEUED)
        while True:
            seq = await self._tasks.last_event()
            run = await self._conversations.run(run.id, None)
            page, total = _NO_LINES, await self._length(run)
            if total != length or run.stands:
                page, length = await self.lines(run, cursor), total
                cursor = page.next
            lines = [one for one in page.lines if one.line.run == run.number]
            state = (run.task.version, run.status)
            over = run.stands and cursor >= page.total
            yield RunStep(run, lines, max(0, cursor), bool(lines) or state != last or over)
            last = state
            if over:
                return
            if cursor >= page.total:
                await self._news(run, length, seq)

    async def pause(self, run: NumberedRun) -> None:
        """Returns when a run that waits may have changed, or after the heartbeat."""
        seq = await self._tasks.last_event()
        now = await self._conversations.run(run.id, None)
        if now.task.version == run.task.version:
            await self._news(run, await self._length(run), seq)

    async def lines(self, run: NumberedRun, offset: int = -WINDOW) -> LinePage:
        """Lines of the run's conversation; none where its runner keeps no lines."""
        try:
            return await self._tasks.line_page(run.task.id, None, offset=offset, most=WINDOW)
        except Refused:
            return _NO_LINES

    async def _length(self, run: NumberedRun) -> int:
        """How much was said so far, in the bytes of its log."""
        try:
            return (await self._tasks.tail(run.task.id, None, "both", 1, 1)).total
        except Refused:
            return 0

    async def _news(self, run: NumberedRun, length: int, seq: int) -> None:
        """Returns when something may have changed, or after the heartbeat."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(self._heartbeat, lambda: over.done() or over.set_result(None))
        waits: list[Coroutine[Any, Any, None]] = [
            self._tasks.wait_output(run.task.id, None, "both", length),
            self._tasks.wait_events(seq),
        ]
        watched = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait([*watched, over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            for one in watched:
                one.cancel()
            await asyncio.gather(*watched, return_exceptions=True)
