"""Blocking until an idle conversation has something to be told: how a host is woken."""

from __future__ import annotations

import asyncio
from typing import Any

from meantime.kernel.lifecycle import ACTIVE
from meantime.ports.tasks import Tasks, ThreadCount

from .hook_delivery import AT_ONCE, Boundary, HookDelivery, Told
from .hook_events import CODEX

ROUND = 5.0  # seconds without news after which it looks again
LOOK = 0.5  # seconds between two looks into the transcript, while something in it is waited for
# Codex is woken by a prompt, and told by the hook of that prompt: a prompt that waits in its queue for long,
# or is there twice, tells nothing twice.
QUEUED = (
    "Background work has ended. Its notices come with this message, or came with an earlier one. "
    "This is an automatic message of Meantime; no human wrote it."
)


class Waiter:
    """One that waits for a conversation. `news` is set when it must look again."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.replaced = False


class IdleWaits:
    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._waiters: dict[str, Waiter] = {}

    def nudge(self, thread: str) -> None:
        if thread in self._waiters:
            self._waiters[thread].news.set()

    async def wait(self, telling: HookDelivery, at: Boundary) -> Told:
        """Returns when there is something to tell, or nothing left to wait for. One waits for each
        conversation, the newest: the host of an older one may be gone, or has run this hook again."""
        own, older = Waiter(), self._waiters.get(at.thread)
        self._waiters[at.thread] = own
        if older is not None:
            older.replaced = True
            older.news.set()
        try:
            return await self._rounds(telling, at, own)
        finally:
            if self._waiters.get(at.thread) is own:
                del self._waiters[at.thread]

    async def _rounds(self, telling: HookDelivery, at: Boundary, own: Waiter) -> Told:
        seen = -1
        while not own.replaced:
            own.news.clear()
            await telling.settle(at)
            count = await self._tasks.thread(at.thread)
            if await self._is_over(telling, at, count):
                break
            woken = await self._woken(at.thread, seen, own, LOOK if count.leased else ROUND)
            if woken is not None and not own.replaced:
                seen = woken
                await telling.gather(at.thread)
                told = Told(QUEUED) if at.host == CODEX else await telling.tell(at)
                if told.text:
                    return told
        return Told(over=True)

    async def _is_over(self, telling: HookDelivery, at: Boundary, count: ThreadCount) -> bool:
        """Another turn may hold a notice and confirm it later: what the transcript has need not be waited
        for. A subagent of Codex may still hand work off when the turn of its parent has ended, and no hook of
        the parent runs then: whoever waits for Codex does so until it is gone."""
        if count.active or count.unread or at.host == CODEX:
            return False
        if await self._tasks.schedules(at.thread, limit=1):
            return False  # a reminder is still to come
        if not count.leased:
            return True
        if await telling.missing(at, await self._tasks.notices(at.thread, ("leased",))):
            return False
        await telling.settle(at)  # it may have come while we looked, and nobody looks after us
        return True

    async def _woken(self, thread: str, seen: int, own: Waiter, seconds: float) -> int | None:
        """The next `seen` when the thread is idle with something unread; None when it is time to look."""
        active = await self._tasks.list(thread, ACTIVE, limit=AT_ONCE)
        waking = asyncio.ensure_future(self._tasks.wait_wake(thread, seen))
        others: list[asyncio.Future[Any]] = [asyncio.ensure_future(own.news.wait())]
        if active:
            ids = [task.id for task in active]
            ending = self._tasks.wait(ids, thread, until="any", timeout=seconds)
            others.append(asyncio.ensure_future(ending))
        try:
            await asyncio.wait([waking, *others], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return waking.result() if waking.done() else None
        finally:
            for one in (waking, *others):
                one.cancel()
            await asyncio.gather(waking, *others, return_exceptions=True)
