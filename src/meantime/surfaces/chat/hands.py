"""What an agent does with work: it hands it off, or waits for it in the foreground."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from meantime.api import Thread
from meantime.handle import Handle
from meantime.kernel.errors import LimitReached, MeantimeError, NotFound, Refused, TaskEnded
from meantime.kernel.model import Task
from meantime.kernel.notices import payload_text
from meantime.kernel.payloads import as_text
from meantime.kernel.work import Order
from meantime.toolset.works import Works

from . import texts

MOST = 1_000  # active tasks that are counted


class Ordered(NamedTuple):
    """Work that is an order already."""

    given: Order

    def order(self) -> Order:
        return self.given


class Done(NamedTuple):
    """What a foreground call came to: its output, or the task that it became."""

    text: str
    failed: bool = False
    task: Task | None = None


class Hands:
    def __init__(self, thread: Thread, works: Works) -> None:
        self.thread = thread
        self.max_async: float = texts.MAX_ASYNC  # -1 is no limit
        self._works = works
        self._one_by_one = asyncio.Lock()  # two launches must not both take the last place
        self.calling = 0  # foreground calls under way
        self._leaving = False  # nobody waits for their answers any more

    async def launch(
        self,
        command: str | list[str],
        *,
        description: str = "",
        cwd: str | None = None,
        timeout: float | None = None,
    ) -> Task:
        """Hands it off; LimitReached where as many run as may."""
        order = Ordered(self._works.command(command, cwd=cwd, open_stdin=False))
        async with self._one_by_one:
            running = len(await self.thread.list(limit=MOST))
            if self.max_async != -1 and running >= self.max_async:
                said = texts.FULL.format(max=f"{self.max_async:g}", running=running)
                raise LimitReached(said, running=running, limit=int(self.max_async))
            return (await self.thread.start(order, description=description, timeout=timeout)).task

    async def call(self, command: str, *, cwd: str | None = None, timeout: float | None = None) -> Done:
        """Waits for it, until it ends or is sent to the background."""
        order = Ordered(self._works.command(command, cwd=cwd, open_stdin=False))
        self.calling += 1
        try:
            answer = await self.thread.call(order, threshold=None, timeout=timeout)
        except TaskEnded as ended:
            outcome = ended.task.outcome
            return Done(payload_text(outcome) if outcome else ended.message, failed=True)
        finally:
            self.calling -= 1
        if self._leaving:
            raise asyncio.CancelledError
        return Done(as_text(answer.result), task=answer.task)

    async def to_background(self, *, leave: bool = False) -> list[Handle]:
        """Everything that is waited for now goes on as a task. What has just ended has its answer.

        leave: whoever waited is not to go on with it."""
        sent: list[Handle] = []
        self._leaving = leave
        try:
            for call in await self.thread.calls():
                with suppress(NotFound, Refused):
                    sent.append(await self.thread.promote(call))
        finally:
            self._leaving = False
        return sent


def refusal(problem: MeantimeError) -> str:
    """As a person sees it."""
    if isinstance(problem, LimitReached):
        return texts.FULL_SHOWN.format(max=problem.limit, running=problem.running)
    return f"{problem.message} {problem.hint}".strip()
