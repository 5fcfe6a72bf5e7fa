"""delayed starts: queued tasks that must not start yet. They have no place in a queue until their time comes.

They are in the ledger as every task is; here is only when each is due.
"""

from __future__ import annotations

import asyncio
import logging

from meantime.kernel.bounds import error_text
from meantime.kernel.change import Change, Facts, ending
from meantime.kernel.due_heap import DueHeap
from meantime.kernel.due_times import WALL, DueTime
from meantime.kernel.errors import Closed, LimitReached, MeantimeError, Refused
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import NO_LIMIT, WATCH, lane_of
from meantime.kernel.model import Failed, Task
from meantime.ports.engine import Engine
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import Assignment
from meantime.ports.store import Committed

from .admit import Admission
from .due_alarm import AT_ONCE, DueAlarm
from .record import DRAIN, Record

logger = logging.getLogger("meantime")
REFUSED = "It could not be started when it was due: {}"


class DelayedStarts:
    def __init__(self, record: Record, admission: Admission, engine: Engine) -> None:
        self._record = record
        self._clock = record.clock
        self._admission = admission
        self._engine = engine
        self._waiting: dict[str, Task] = {}
        self._due = DueHeap()
        self._alarm = DueAlarm(self._clock, self._ring)
        self._beside = BackgroundTasks()
        self._listens = False
        self._is_ringing = False
        self._is_open = True

    def __len__(self) -> int:
        return len(self._waiting)

    def check_room(self) -> None:
        """They count as tasks that wait, though they wait for their time and not for a slot."""
        most = self._admission.slots.limits.queued
        waiting = self._admission.slots.waiting + self._admission.coming + len(self._waiting)
        if most != NO_LIMIT and waiting >= most:
            raise LimitReached(f"{waiting} tasks wait, which is the most.", running=waiting, limit=most)

    def add(self, task: Task) -> None:
        """A queued task whose commit has landed."""
        due = task.run.not_before
        assert due is not None, "it may start at once"
        if due.boot != self._clock.uptime().boot:  # nobody counts the seconds of a former boot
            due = DueTime(due.at)
        if not self._listens:  # most owners never delay a start
            self._listens = True
            self._record.change_listeners.append(self._on_commit)
        self._waiting[task.id] = task
        self._due.add(task.id, due)
        if not self._is_ringing:
            self._alarm.hear_of(due)

    def _on_commit(self, change: Change, committed: Committed) -> None:
        if change.ends and self._waiting.pop(change.task.id, None) is not None:
            self._due.discard(change.task.id)

    def look_at_clocks(self) -> None:
        if not self._is_ringing and self._is_open and self._waiting:
            self._alarm.look_at_clocks()

    def _ring(self) -> None:
        if not self._is_ringing and self._is_open:
            self._is_ringing = True
            self._beside.start(self._begin_due())

    async def _begin_due(self) -> None:
        try:
            while self._is_open and (due := self._next_group()):
                for task in due:
                    await self._begin(task)
                await asyncio.sleep(0)  # others have their turn
        finally:
            self._is_ringing = False
        if self._is_open:
            self._alarm.next_is(self._due.first(WALL), self._due.first(self._clock.uptime().boot))

    def _next_group(self) -> list[Task]:
        ids = self._due.due(self._clock.now(), self._clock.uptime(), AT_ONCE)
        for id in ids:
            self._due.discard(id)
        return [self._waiting.pop(id) for id in ids]

    async def _begin(self, task: Task) -> None:
        """It gets its place in the queue. A refusal has no caller now: it is the ending of the task."""
        now = self._record.live.get(task.id)
        if now is None or now.status is not Status.QUEUED:
            return  # it was cancelled while another of its group was refused
        try:
            self._check(now)
        except MeantimeError as problem:
            await self._fail(now, str(problem), problem.code)
        except Exception as problem:  # a runner's own mistake keeps none of the others from starting
            logger.exception("Task %s could not be started when it was due.", now.id)
            await self._fail(now, f"{type(problem).__name__}: {problem}", "not_started")
        else:
            self._admission.enqueue(Assignment(now))

    async def _fail(self, task: Task, why: str, code: str) -> None:
        outcome = Failed(error_text(REFUSED.format(why)), code)
        try:
            await self._record.insist(task.id, ending(outcome), Facts(outcome=outcome))
        except Closed:
            return  # still queued, for the next owner

    def _check(self, task: Task) -> None:
        runner = self._engine.runner(task.work.kind)
        if task.work.kind != "call":  # a function was checked with its arguments when it was handed off
            runner.check(task, Assignment(task))
        if not runner.can_run(task):
            raise Refused("what it needs is not here.", code="gone")
        # A watch that waits for a slot would watch nothing.
        on_limit = "reject" if task.work.kind == WATCH else task.run.on_limit or None
        self._admission.is_open(lane_of(task), on_limit=on_limit)

    async def close(self) -> None:
        self._is_open = False
        self._alarm.cancel()
        await self._beside.wait(DRAIN)
