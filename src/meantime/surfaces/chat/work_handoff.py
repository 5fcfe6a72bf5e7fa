"""An agent's ways to work: it hands work off, or waits for it in the foreground."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from meantime.conversation.handle import Handle
from meantime.kernel.errors import NotFound, Refused
from meantime.ports.dialect import Said
from meantime.ports.tasks import Tasks
from meantime.thread import Thread
from meantime.toolset.toolset import Toolset
from meantime.toolset.work_catalog import Works

from .chat_dialect import MAX_ASYNC, Speech

WAITING = frozenset({"run", "task"})  # tools that wait, unless they are asked not to


class WorkHandoff:
    """`speech` and `toolset` are of one conversation, with as many tasks at once as it may have."""

    def __init__(self, tasks: Tasks, thread: Thread, works: Works) -> None:
        self.thread = thread
        self._tasks = tasks
        self._works = works
        self.calling = 0  # foreground calls under way
        self._leaving = False  # nobody waits for their answers any more
        self.allow(MAX_ASYNC)

    def allow(self, most: int) -> None:
        """So many tasks at once; -1 is no limit."""
        self.max_async = most
        self.speech = Speech(most)
        self.toolset = Toolset(self._tasks, self._works, self.thread.id, self.speech)

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Said:
        """One tool, as the agent calls it. A waiting call ends, or is sent to the background."""
        waits = await self.toolset.starts(name) and not arguments.get("async")
        self.calling += waits
        try:
            said = await self.toolset.call(name, arguments)
        finally:
            self.calling -= waits
        if self._leaving:
            raise asyncio.CancelledError
        return said

    async def to_background(self, *, leave: bool = False) -> list[Handle[Any]]:
        """Everything that is waited for now goes on as a task. A call that has just ended has its answer.

        leave: whoever waited is not to go on with it."""
        sent: list[Handle[Any]] = []
        self._leaving = leave
        try:
            for call in await self.thread.calls():
                with suppress(NotFound, Refused):
                    sent.append(await self.thread.promote(call))
        finally:
            self._leaving = False
        return sent
