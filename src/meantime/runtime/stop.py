"""stop: asking tasks to stop, one, many, or everything when we close."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import cast

from meantime.kernel.argument_checks import check_words
from meantime.kernel.change import SHUTDOWN, Disposition, Facts
from meantime.kernel.constraints import check_flag
from meantime.kernel.errors import Refused
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.model import Task
from meantime.kernel.notices import left_running
from meantime.ports.engine import Engine
from meantime.ports.runner import LastingRunner
from meantime.ports.tasks import CancelAnswer

from .admit import Admission
from .queries import Looking
from .record import Record
from .run import Runs
from .settings import Settings

logger = logging.getLogger("meantime")
REFUSED = 2.0  # seconds that a close goes on with a ledger that refuses every write
AGAIN = 0.1  # seconds between its tries
NAMED = 10  # tasks in the log


class Stopping:
    def __init__(
        self,
        record: Record,
        runs: Runs,
        admission: Admission,
        looking: Looking,
        engine: Engine,
        settings: Settings,
    ) -> None:
        self._engine = engine
        self._record = record
        self._runs = runs
        self._admission = admission
        self._looking = looking
        self._settings = settings

    async def cancel(self, ref: str, thread: str | None, by: str, reason: str, *, wait: bool) -> CancelAnswer:
        check_flag(wait, "wait")
        task = await self._looking.find(ref, thread)
        if task.outcome is not None and left_running(task.outcome):
            found = await cast("LastingRunner", self._engine.runner(task.work.kind)).end_leftovers(task)
            if found.left:
                pids = ",".join(map(str, found.left))
                raise Refused(
                    f"Task {task.id} had ended, and {len(found.left)} of the processes that it left running "
                    f"cannot be killed: {pids}.",
                    code="still_running",
                    hint=f"Look at what holds them: ps -o pid,stat,wchan,args -p {pids}",
                )
            return CancelAnswer(task, Disposition.ALREADY_ENDED, found.killed)
        answer = await self._cancel(task, by, reason)
        if wait and not answer.task.ended:
            (ended,) = await self._looking.wait([task.id], None)
            answer = CancelAnswer(ended, answer.disposition)
        return answer

    async def _cancel(self, task: Task, by: str, reason: str) -> CancelAnswer:
        """`cancelling` is durable before this returns; what the work does with it decides."""

        def cancelling(task: Task, done: bool) -> None:
            if done and not task.ended:
                self._runs.stop(task)

        facts = Facts(by=check_words(by, 100), reason=check_words(reason, 500))
        moved = await self._record.move(task.id, Move.CANCEL, facts, cancelling)
        return CancelAnswer(moved.task, moved.disposition)

    async def cancel_all(
        self, thread: str, batch: str | None, by: str, *, descendants: bool
    ) -> Sequence[CancelAnswer]:
        own = [task for task in self._looking.active(thread) if batch in (None, task.batch)]
        chosen = {task.id: task for task in own}
        if descendants:
            for task in list(self._record.live.values()):  # parents come before their children
                if task.parent in chosen:
                    chosen[task.id] = task
        return await asyncio.gather(*(self._cancel(task, by, "") for task in chosen.values()))

    async def everything(self, *, keeps: bool) -> None:
        """Until nothing runs here: a start that was on its way when we closed may still come in. Lasting work
        is left to the next owner. Where the disk does not take the endings we give up after a while; the next
        owner finds those lost.
        """
        clock = self._record.clock
        deadline = clock.monotonic() + 2 * self._settings.stop_deadline
        kept: set[str] = set()
        self._record.hurry()
        while (left := deadline - clock.monotonic()) > 0:
            await self._record.drain()
            await self._admission.drain()
            running = await self._not_kept(kept, keeps)
            if not running:
                return
            if self._record.refused_for() > REFUSED:
                break
            stops = (self._cancel(task, SHUTDOWN, "this Meantime was closed") for task in running)
            await asyncio.gather(*stops, return_exceptions=True)
            pause = AGAIN if self._record.refused_for() else left
            await self._looking.wait([task.id for task in running], None, timeout=min(left, pause))
        self._leave(await self._not_kept(kept, keeps))

    def _leave(self, running: list[Task]) -> None:
        """They are stopped all the same, though nothing can say so any more."""
        for task in running:
            self._runs.stop(task)
        if running:
            named = ", ".join(task.id for task in running[:NAMED])
            logger.error(
                "The ledger took no writes while this Meantime was closed: the endings of %d tasks are not "
                "recorded (%s%s). They are stopped; the next owner of the ledger finds them lost.",
                len(running),
                named,
                ", …" if len(running) > NAMED else "",
            )

    async def _not_kept(self, kept: set[str], keeps: bool) -> list[Task]:
        """The running tasks to stop; tasks that go on without us are added to `kept`."""
        running = [task for task in self._record.live.values() if task.status is not Status.QUEUED]
        if keeps:
            kept |= {task.id for task in running if task.id not in kept and await self._runs.detach(task)}
        return [task for task in running if task.id not in kept]
