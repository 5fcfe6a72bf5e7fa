"""Runs watches. A watch keeps in its cursor what it has seen, so a later owner runs it again from there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from meantime.kernel.errors import InvalidInput, LimitReached, MeantimeError
from meantime.kernel.model import Failed, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import Jsonable
from meantime.kernel.watches import KIND, ending_of, spec_of, summary_of
from meantime.ports.clock import Alarm, Clock, age
from meantime.ports.commands import Commands
from meantime.ports.runner import Abilities, Assignment, Context, Leftovers
from meantime.ports.watch_ledger import WatchLedger

if TYPE_CHECKING:
    from .state_watch import RunningWatch
    from .watch_sources import WatchSources

MOST = 10_000  # watches at once
STOPPED = "until it was stopped"


class WatchRunner:
    kind = KIND
    abilities = Abilities(adopt=True)

    def __init__(self, clock: Clock, commands: Commands, *, lasts: bool) -> None:
        """`commands`: for those that are run again and again; they end with us. `lasts`: whether the ledger
        remembers watches; otherwise they end with us, too."""
        self._clock = clock
        self._commands = commands
        self._sources: WatchSources | None = None
        self._lasts = lasts
        self._ledger: WatchLedger | None = None
        self._running: dict[str, tuple[asyncio.Task[object], RunningWatch]] = {}

    def join(self, ledger: WatchLedger) -> None:
        self._ledger = ledger

    # -- life

    def open(self) -> None: ...

    async def close(self) -> None:
        if self._sources is not None:
            await self._sources.close()

    def check(self, task: Task, assignment: Assignment) -> None:
        if assignment.foreground:
            raise InvalidInput("A watch is not waited for.", hint="Write thread.start(Watch(…)).")
        from .expressions import expression

        spec = spec_of(task)
        for name, text in (("match", spec.match), ("until", spec.until)):
            if text:
                expression(text, name)
        if len(self._running) >= MOST:
            raise LimitReached(
                f"{MOST} watches run, which is the most.", running=len(self._running), limit=MOST
            )

    async def is_folder(self, path: str) -> bool:
        return await self._opened().is_folder(path)

    def can_run(self, task: Task) -> bool:
        return True

    async def exists(self, task: Task) -> bool:
        return False

    # -- one run

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task, me = assignment.task, asyncio.current_task()
        assert me is not None
        looking = self._opened().look(task)
        self._running[task.id] = (me, looking)
        deadline = self._arm(task, looking)
        try:
            why, last = await looking.ending()
        except asyncio.CancelledError:
            if me.cancelling() > context.stops:
                return Report(detached=True)  # we leave it to the next owner
            context.emit("matches", looking.findings.cursor.matches)
            return Report(stopped=True, partial=summary_of(looking.findings.cursor, STOPPED))
        except MeantimeError as problem:
            return Report(error=Failed(str(problem), problem.code))
        except OSError as problem:
            why = f"{looking.findings.spec.of} cannot be looked at: {problem.strerror or problem}."
            return Report(error=Failed(why, type(problem).__name__))
        finally:
            if deadline is not None:
                deadline.cancel()
            looking.close()
            if self._running.get(task.id) == (me, looking):
                del self._running[task.id]
        context.emit("matches", looking.findings.cursor.matches)
        text = ending_of(looking.findings.spec, looking.findings.cursor, why)
        return Report(result=Jsonable(f"{text}\n{last}" if last else text, True))

    def _opened(self) -> WatchSources:
        """The sources are loaded with the first watch: many ledgers never have one."""
        from .watch_sources import WatchSources

        assert self._ledger is not None
        if self._sources is None:
            self._sources = WatchSources(self._ledger, self._commands, self._clock)
        return self._sources

    def _arm(self, task: Task, looking: RunningWatch) -> Alarm | None:
        deadline = looking.findings.spec.deadline
        if deadline is None:
            return None
        left = deadline - self.age(task)
        if left <= 0:  # before its first look, which is then its only one
            looking.expire()
            return None
        return self._clock.call_later(left, looking.expire)

    # -- what outlives us

    def age(self, task: Task) -> float:
        spec = spec_of(task)
        began_at = task.created_at if task.run.not_before is None else task.run.started_at
        return age(self._clock, spec.boot, spec.began, began_at)

    async def detach(self, task: Task) -> bool:
        for _ in range(2):
            if task.id in self._running:
                break
            await asyncio.sleep(0)  # its run was launched just now, and has not taken its first step
        found = self._running.get(task.id)
        if not self._lasts or found is None:
            return False
        me, looking = found
        await looking.leave()
        me.cancel()
        return True

    def prepare(self, task: Task) -> None:
        """The cursor is all the trace there is."""

    def knows_whose(self, task: Task) -> bool:
        return False

    def keep(self, task: Task, kept: bool) -> None: ...

    async def end_leftovers(self, task: Task) -> Leftovers:
        return Leftovers()

    def forget(self, task: Task) -> None: ...

    async def sweep(
        self, active: Iterable[Task], known: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None: ...
