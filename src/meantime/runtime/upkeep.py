"""upkeep: what a restart must mend, and what must be looked at now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from meantime.kernel.change import Facts
from meantime.kernel.errors import LedgerDamaged, MeantimeError
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.model import Lost, Task
from meantime.kernel.outcomes import RESTARTED
from meantime.ports.engine import Engine
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import Assignment

from .admit import Admission
from .announce import Announcing
from .batches import Batches
from .delayed_starts import DelayedStarts
from .record import Record
from .session_cleanup import SessionCleanup
from .settings import Settings
from .wake import Waking

logger = logging.getLogger("meantime")
UNKEPT = "It was queued when Meantime was closed, and it could not be started again: "
COMMAND = UNKEPT + "its environment, or its stdin, is never stored."
GONE = UNKEPT + "what it needs was not stored, or is not here."
COPIED = "This ledger is a copy. The task belongs to the original; how it ended there is not known here."
COPIED_QUEUE = "This ledger is a copy. The original may have started the task, so it is not started here."
STRAY = 3600.0  # seconds after which what belongs to no task is removed


class Upkeep:
    def __init__(
        self,
        record: Record,
        admission: Admission,
        batches: Batches,
        announcing: Announcing,
        waking: Waking,
        engine: Engine,
        settings: Settings,
        sessions: SessionCleanup,
        has_carrier: bool,
        stop: Callable[[Task], None],
        follow: Callable[[], Coroutine[Any, Any, None]],
        delayed: DelayedStarts,
        look_at_clocks: Sequence[Callable[[], None]],
    ) -> None:
        self._record = record
        self._stop = stop
        self._sessions = sessions
        self._follow = follow
        self._delayed = delayed
        self._look_at_clocks = look_at_clocks
        self._lasting = {runner.kind: runner for runner in engine.lasting()}
        self._is_copy = False
        self._has_carrier = has_carrier
        self._batches = batches
        self._admission = admission
        self._announcing = announcing
        self._waking = waking
        self._engine = engine
        self._settings = settings
        self._rounds = BackgroundTasks()

    async def recover(self) -> None:
        """Every task that a former owner left active gets its ending, or its place in the queue. In a copy
        of a ledger it gets its ending, as the original goes on with it."""
        left = await self._record.store.active()
        self._is_copy = self._record.store.is_copy
        if self._is_copy:
            await self._drop_follow_ups(left)
            left = await self._record.store.active()
        for task in left:
            self._record.keep(task)
        await self._batches.recover(left)
        others = [task for task in left if not self._take_up(task)]
        await asyncio.gather(*(self._mend(task) for task in others))
        if self._is_copy:
            await self._record.store.own()
        await self._sweep(0.0)
        await asyncio.sleep(0)  # so that what was adopted is followed before anybody asks for it

    async def _drop_follow_ups(self, active: Sequence[Task]) -> None:
        """Drops the follow-ups of a copy. They were said to the original, which continues with them."""
        for task in (*active, *await self._record.store.following()):
            if task.follow_up:
                logger.warning("This ledger is a copy: the follow-up of %s is left to the original.", task.id)
                await self._record.amend(task.id, lambda now: {"follow_up": ""}, durable=True)

    def _take_up(self, task: Task) -> bool:
        """Work that outlives us is followed again: its runner finds out what has become of it."""
        if self._is_out_of_reach(task):
            return True
        runner = self._lasting.get(task.work.kind)
        if task.status is Status.QUEUED or runner is None or (self._is_copy and not runner.knows_whose(task)):
            return False
        self._admission.take_up(Assignment(task, again=True))
        if task.status is Status.CANCELLING:
            # Not before its run has begun, which is next: there would be nobody to hear it.
            asyncio.get_running_loop().call_soon(self._stop, task)
        return True

    def _is_out_of_reach(self, task: Task) -> bool:
        """Without a carrier nothing is known of a run at a worker. It is left to an owner that has one."""
        if not task.place or task.status is Status.QUEUED or self._is_copy or self._has_carrier:
            return False
        logger.warning(
            "Task %s runs at a worker, and no carrier is configured: it is left as it is. Set [engine] "
            "carrier to follow it.",
            task.id,
        )
        return True

    async def _sweep(self, older_than: float) -> None:
        for runner in self._engine.lasting():
            active = [task for task in self._record.live.values() if task.work.kind == runner.kind]
            await runner.sweep(active, self._is_known, older_than)

    async def _is_known(self, id: str) -> bool:
        try:
            return await self._record.store.load(id) is not None
        except LedgerDamaged:
            return True  # it is there, and cannot be read: its files are all that is left of it

    async def _mend(self, task: Task) -> None:
        runnable = self._can_run(task)
        again = runnable and task.retry == "idempotent"
        if task.status is Status.QUEUED and task.run.not_before is not None and (again or not self._is_copy):
            self._prepare(task)
            self._delayed.add(task)  # whether it can run is looked at when it is due
        elif task.status is Status.QUEUED and (again if self._is_copy else runnable):
            self._prepare(task)
            self._admission.enqueue(Assignment(task))
        elif task.status in (Status.RUNNING, Status.WAITING) and again:
            run = replace(task.run, attempt=task.run.attempt + 1, started_at=None, cancel=None, claim=None)
            self._prepare(replace(task, run=run))
            moved = await self._record.move(task.id, Move.RETRY, Facts(next_run=run))
            self._admission.enqueue(Assignment(moved.task))
        else:
            lost = Lost(_reason(task, is_copy=self._is_copy), emitted_vars=task.run.emitted)
            await self._record.move(task.id, Move.LOSE, Facts(outcome=lost))

    def _prepare(self, task: Task) -> None:
        """In a copy: the trace of it that lies here is the original's."""
        if self._is_copy and task.work.kind in self._lasting:
            self._lasting[task.work.kind].prepare(task)

    def _can_run(self, task: Task) -> bool:
        try:
            return self._engine.runner(task.work.kind).can_run(task)
        except MeantimeError:
            return False

    def start(self) -> None:
        self._rounds.start(self._go_round())

    async def _go_round(self) -> None:
        next_upkeep = 0.0
        while True:
            await self._try(self._announcing.settle_debts())
            await self._try(self._waking.reconcile())
            for look in self._look_at_clocks:
                look()
            if self._record.clock.monotonic() >= next_upkeep:
                next_upkeep = self._record.clock.monotonic() + self._settings.upkeep_every
                await self._try(self._announcing.park_unclaimed())
                await self._try(self._record.store.forget(self._settings.retention, self._record.clock.now()))
                await self._try(self._sweep(STRAY))
                await self._try(self._sessions.sweep(STRAY))
                await self._try(self._follow())
            await self._record.sleep(self._settings.reconcile_every)

    async def _try(self, step: Coroutine[Any, Any, object]) -> None:
        """A full disk, no descriptors left, whatever: the next round tries again. It must not end."""
        try:
            await step
        except Exception as problem:
            logger.warning("Upkeep could not be done and is tried again: %s", problem)

    async def close(self) -> None:
        await self._rounds.close()


def _reason(task: Task, *, is_copy: bool) -> str:
    if is_copy:
        return COPIED_QUEUE if task.status is Status.QUEUED else COPIED
    if task.status is not Status.QUEUED:
        return RESTARTED
    return COMMAND if task.work.kind == "shell" and not task.work.faithful else GONE
