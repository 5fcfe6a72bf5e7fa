"""One client's conversation with this server: its thread, its tools, its inbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.kernel.errors import MeantimeError, NotFound
from meantime.kernel.lifecycle import ACTIVE, ENDED
from meantime.kernel.model import InlineLimits, Task
from meantime.kernel.notice_sources import notice_id
from meantime.kernel.notices import Notice
from meantime.ports.tasks import Tasks
from meantime.toolset.toolset import Toolset
from meantime.toolset.work_catalog import Works

from . import mcp_tasks
from .notice_delivery import NoticeDelivery

LISTED = 50  # tasks of this conversation that are named as resources
INLINE = InlineLimits(8_000, 200)  # of a notice's payload: hosts cut long results, and then nobody is told
RECENT = 600.0  # seconds without a call after which nobody is said to be there
LOOK = 2.0  # seconds between two looks at a task that somebody listens for


class ClientConversation:
    def __init__(
        self,
        tasks: Tasks,
        works: Works,
        thread: str,
        taken: Callable[[], bool | None] = lambda: None,
        dialect: Wording = OWN,
        has_hooks: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_hooks` says whether hooks tell this conversation."""
        self.thread = thread
        self.tasks = tasks
        self.toolset = Toolset(tasks, works, thread, dialect, inline=INLINE)
        self.inbox = NoticeDelivery(tasks, thread, taken, self.toolset.dialect)
        self._settled: dict[str, None] = {}
        self._called = -RECENT  # when, by the loop's clock
        self._has_hooks = has_hooks
        self.is_named_by_us = False  # a hook or a plugin of ours writes its name into its calls

    def called(self) -> None:
        self._called = asyncio.get_running_loop().time()

    @property
    def is_alive(self) -> bool:
        return asyncio.get_running_loop().time() - self._called < RECENT

    @asynccontextmanager
    async def call(self) -> AsyncGenerator[NoticeDelivery]:
        try:
            await self.inbox.begin()
            yield self.inbox
        finally:
            self.inbox.end()

    async def close(self) -> None:
        await self.inbox.close()

    # -- tasks of MCP

    @property
    def takes_tasks(self) -> bool:
        """Not where hooks or a plugin of ours tell it, exactly once: a client that follows a task by MCP
        tells its model of the ending as well."""
        return not (self.is_named_by_us or self._has_hooks())

    async def start(self, name: str, arguments: object) -> Task | None:
        """Recorded before this returns, under an id that nobody guesses; None for a call that starts
        nothing."""
        task = await self.toolset.started(
            name, arguments, id=mcp_tasks.new_id(), meta={mcp_tasks.MARK: "task"}
        )
        if task is not None:
            self.inbox.follows(task.id)
        return task

    async def task(self, id: str) -> Task:
        """NotFound for another conversation's, and for one that was not made as a task of MCP."""
        task = await self.tasks.get(id, self.thread)
        if not mcp_tasks.is_ours(task, id):
            raise NotFound.task(id)
        self.inbox.follows(task.id)
        return task

    def gave(self, task: Task) -> None:
        """The client was given this ending: the notice of it need not be told."""
        notice = notice_id(task.id, task.run.number)
        if task.ended and notice not in self._settled:
            self._settled[notice] = None
            while len(self._settled) > LISTED * 20:
                del self._settled[next(iter(self._settled))]
            self.inbox.aside(self.inbox.settle_read(task.id, notice))

    async def made(self) -> Sequence[Task]:
        found = await self.tasks.list(self.thread, ACTIVE | ENDED, limit=LISTED)
        return [task for task in found if mcp_tasks.MARK in task.meta]

    # -- resources

    async def unread(self) -> Sequence[Notice]:
        return await self.tasks.notices(self.thread, ("unread", "leased"))

    async def changes(self, id: str) -> AsyncGenerator[Task]:
        """The task whenever it is not what it was, until it has ended."""
        seen = -1
        while True:
            task = await self.tasks.get(id, self.thread)
            if task.version != seen:
                seen = task.version
                yield task
            if task.ended:
                return
            await self.tasks.wait([id], self.thread, timeout=LOOK)

    async def wakes(self) -> AsyncGenerator[None]:
        """Whenever there is something to tell and nobody is being told."""
        seen = -1
        while True:
            seen = await self.tasks.wait_wake(self.thread, seen)
            yield
            await asyncio.sleep(0)


def shown(problem: MeantimeError) -> str:
    return f"{problem.message} {problem.hint}".strip()
