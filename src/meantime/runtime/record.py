"""The only writer. Every change goes: load, decide, one transaction; then those who listen are told.

The effects of a commit belong to the commit itself, not to its caller: a caller that is cancelled while it
waits can neither take the change back nor keep it from taking effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from meantime.kernel.change import (
    Change,
    Disposition,
    Facts,
    amend,
    decide,
    notify,
    notify_waiting,
    submit,
)
from meantime.kernel.errors import Degraded, Duplicate, LedgerError, NotFound, Refused
from meantime.kernel.event_notices import Events, NoticeRate
from meantime.kernel.lifecycle import ENDED, Move
from meantime.kernel.model import Json, Task
from meantime.kernel.notice_sources import Draft
from meantime.kernel.schedules import ScheduleChange
from meantime.ports.clock import Clock, sleep
from meantime.ports.store import CommitResult, Committed, Store

Listener = Callable[[Change, Committed], None]
Then = Callable[[Task, bool], None]
DRAIN = 5.0  # seconds that a close waits for the disk
_RETRY = (0.05, 0.2, 1.0, 5.0)  # seconds between tries to record what must not be lost
_HURRIED = 0.1  # seconds between them while we close


class Moved(NamedTuple):
    task: Task
    disposition: Disposition


class Record:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.live: dict[str, Task] = {}  # every task that has not ended, as last committed
        self.of_thread: dict[str, dict[str, Task]] = {}  # the same, by thread
        self.calls: dict[str, Task] = {}  # that somebody waits for: no tasks yet, but they may have children
        # Called in the order of commits; they must not fail. Those of changes are not called for a new task:
        # nobody waits for it, answers it or stops it yet.
        self.change_listeners: list[Listener] = []
        self.listeners: list[Listener] = []
        self.schedule_listeners: list[Callable[[ScheduleChange], None]] = []
        self.notice_listeners: list[Callable[[str], None]] = []  # see notices_of; they must not fail
        self._pending: set[asyncio.Future[Committed]] = set()
        self._hurried = asyncio.Event()  # we are closing
        self._refused_since: float | None = None  # by the monotonic clock

    async def create(self, task: Task, then: Then) -> None:
        """`then` is called once, with the commit: True if the task is there, False if it is not."""
        committed = await self._commit(submit(task), then)
        if committed.result is CommitResult.SAME_ID:
            raise Duplicate.of_id(task.id)
        if committed.result is CommitResult.SAME_CALL:
            raise duplicate_call(task.tool_call_id or "", committed.existing)

    async def move(self, id: str, move: Move, facts: Facts, then: Then | None = None) -> Moved:
        """One move by compare-and-swap: who comes second decides again on what the first made of it."""
        task = self.live.get(id) or await self.current(id)
        while True:
            change = decide(task, move, facts, self.clock.now())
            if not change.writes:
                return Moved(task, change.disposition)
            if (await self._commit(change, then)).result is CommitResult.DONE:
                return Moved(change.task, change.disposition)
            task = await self._reload(id)

    async def insist(self, id: str, move: Move, facts: Facts) -> Moved:
        """For endings: a disk that is full or failing for a while must not lose one."""
        tries = 0
        while True:
            try:
                return await self.move(id, move, facts)
            except (LedgerError, Degraded):
                await self._pause(_RETRY[min(tries, len(_RETRY) - 1)])
                tries += 1

    async def _pause(self, seconds: float) -> None:
        """Before another try. A close cuts it short: there is not much time left for tries."""
        if self._hurried.is_set():
            await self.sleep(_HURRIED)
            return
        hurried = asyncio.ensure_future(self._hurried.wait())
        alarm = self.clock.call_later(seconds, hurried.cancel)
        try:
            await asyncio.wait([hurried])
        finally:
            alarm.cancel()
            hurried.cancel()

    def hurry(self) -> None:
        """We are closing: what could not be written is tried again now, and more often."""
        self._hurried.set()

    def refused_for(self) -> float:
        """Seconds in which every write was refused; 0 where the last one was taken."""
        return 0.0 if self._refused_since is None else self.clock.monotonic() - self._refused_since

    async def amend(
        self,
        id: str,
        fields: Callable[[Task], dict[str, Any] | None],
        event: str = "",
        *,
        durable: bool = False,
    ) -> Task:
        """Changes fields, but not the status: `fields` looks at the task and says what to change, or None."""
        task = await self.current(id)
        while True:
            changes = fields(task)
            if changes is None:
                return task
            change = amend(task, self.clock.now(), event=event, durable=durable, **changes)
            if (await self._commit(change)).result is CommitResult.DONE:
                return change.task
            task = await self._reload(id)

    async def notify(self, id: str, events: Events, rate: NoticeRate, cursor: Json = None) -> Task:
        """Tells the thread of events of a run that goes on: now, or together with the next ones. An event
        of a worker is recorded once, however often it is repeated. A watch says how far it has looked."""
        task = await self.current(id)
        joins = True
        while True:
            change = notify(task, events, self.clock.now(), rate, joins=joins, cursor=cursor)
            if not change.writes:
                return task
            result = (await self._commit(change)).result
            if result is CommitResult.DONE:
                return change.task
            joins = joins and result is not CommitResult.LEASED
            task = await self._reload(id)

    async def notify_waiting(self, id: str) -> None:
        """Tells the thread of the events that had to wait."""
        task = await self.current(id)
        while (change := notify_waiting(task, self.clock.now())).writes:
            if (await self._commit(change)).result is CommitResult.DONE:
                return
            task = await self._reload(id)

    async def current(self, id: str) -> Task:
        task = self.live.get(id) or await self.store.load(id)
        if task is None:
            raise NotFound.task(id)
        return task

    async def _reload(self, id: str) -> Task:
        task = await self.store.load(id)
        if task is None:
            raise NotFound.task(id)
        known = self.live.get(id)
        return known if known is not None and known.version >= task.version else task

    def notices_of(self, thread: str) -> None:
        """A notice for this thread is about to be unread. Repeated once it is, before anybody else is
        notified: a reader in between saw a ledger without it.
        """
        for listener in self.notice_listeners:
            listener(thread)

    def _commit(self, change: Change, then: Then | None = None) -> asyncio.Future[Committed]:
        def landed(committed: Committed | None) -> None:
            if committed is not None:
                self._took(change, committed)
            if then is not None:
                then(change.task, committed is not None)

        return self._write(lambda: self.store.commit(change), change.notices, landed)

    def commit_schedule(
        self, change: ScheduleChange, then: Callable[[bool], None]
    ) -> asyncio.Future[Committed]:
        """`then` is called once, with the commit: False if nothing was written."""

        def landed(committed: Committed | None) -> None:
            for listener in self.schedule_listeners if committed is not None else ():
                listener(change)
            then(committed is not None)

        return self._write(lambda: self.store.commit_schedule(change), change.notices, landed)

    def _write(
        self,
        write: Callable[[], asyncio.Future[Committed]],
        notices: Sequence[Draft],
        landed: Callable[[Committed | None], None],
    ) -> asyncio.Future[Committed]:
        """`landed` is called once: with the commit, or with None if nothing was written."""
        waiter: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        told = [draft.thread for draft in notices if not draft.muted]
        for thread in told:
            self.notices_of(thread)

        def committed(inner: asyncio.Future[Committed]) -> None:
            self._pending.discard(inner)
            for thread in told:
                self.notices_of(thread)
            problem = inner.exception()
            self._heard_of_disk(problem)
            done = problem is None and inner.result().result is CommitResult.DONE
            landed(inner.result() if done else None)
            if waiter.done():
                return
            if problem is None:
                waiter.set_result(inner.result())
            else:
                waiter.set_exception(problem)

        try:
            commit = write()
        except BaseException:  # it could not even be handed in: nothing was taken that is not given back
            landed(None)
            raise
        self._pending.add(commit)
        commit.add_done_callback(committed)
        return waiter

    def _heard_of_disk(self, problem: BaseException | None) -> None:
        if problem is None:
            self._refused_since = None
        elif self._refused_since is None and isinstance(problem, LedgerError | Degraded):
            self._refused_since = self.clock.monotonic()

    async def drain(self) -> None:
        """Waits until every commit that is on its way has taken effect."""
        if self._pending:
            await asyncio.wait(set(self._pending), timeout=DRAIN)
            await asyncio.sleep(0)

    def _took(self, change: Change, committed: Committed) -> None:
        task = change.task
        if task.status not in ENDED:
            self.keep(task)
        elif self.live.pop(task.id, None) is not None:
            own = self.of_thread[task.thread]
            del own[task.id]
            if not own:
                del self.of_thread[task.thread]
        if change.replaces:
            for listener in self.change_listeners:
                listener(change, committed)
        for listener in self.listeners:
            listener(change, committed)

    def keep(self, task: Task) -> None:
        self.live[task.id] = task
        self.of_thread.setdefault(task.thread, {})[task.id] = task

    async def sleep(self, seconds: float) -> None:
        await sleep(self.clock, seconds)


def duplicate_call(call: str, existing: str, what: str = "task") -> Duplicate:
    text = f"Tool call {call!r} of this thread has its {what} already."
    return Duplicate(text, existing, code="duplicate_tool_call", what=what)


def not_started(task: Task) -> Refused:
    """The error for something that only a running task can take."""
    return Refused(
        f"Task {task.id} has not started yet.", code="not_started", hint="It is queued: wait until it runs."
    )
