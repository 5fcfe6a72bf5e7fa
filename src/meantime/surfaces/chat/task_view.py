"""The thread's tasks as they are now, for the toolbar and for completion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.model import Task
from meantime.ports.tasks import Tasks

PAUSE = 0.2  # seconds between two looks, however much happens
MOST = 200
AT_ONCE = 500


class TaskView:
    def __init__(self, tasks: Tasks, thread: str, changed: Callable[[], None]) -> None:
        self._tasks = tasks
        self._thread = thread
        self._changed = changed
        self.active: Sequence[Task] = ()  # oldest first
        self.ended: Sequence[Task] = ()
        self._standing: list[tuple[str, Status]] = []

    async def look(self) -> None:
        active = await self._tasks.list(self._thread, ACTIVE, limit=MOST)
        ended = await self._tasks.list(self._thread, ENDED, limit=MOST)
        gone = {task.id for task in ended}  # some may have ended between the two looks
        self.active = [task for task in active[::-1] if task.id not in gone]
        self.ended = ended[::-1]
        standing = [(task.id, task.status) for task in (*self.active, *self.ended)]
        if standing != self._standing:
            self._standing = standing
            self._changed()

    async def watch(self) -> None:
        """For ever: the journal says when something of ours has changed."""
        after = await self._tasks.last_event()
        await self.look()
        while True:
            await self._tasks.wait_events(after)
            events = await self._tasks.events(after, AT_ONCE)
            if events:
                after = events[-1].seq
            if any(event.thread == self._thread for event in events):
                await self.look()
            await asyncio.sleep(PAUSE)
