"""The processes that run functions for us. Each connected process is an executor: it has a lease while it is
connected, a grace when it is not, and when that is over its runs are lost and its turns given back."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, Protocol

from meantime.kernel.errors import InvalidInput
from meantime.kernel.limits import Limits
from meantime.kernel.model import Json, Task
from meantime.kernel.outcomes import Report
from meantime.link.frame_connection import Wire
from meantime.link.frames import Fence, Limited, RunFrame, Stop
from meantime.ports.clock import Alarm, Clock
from meantime.ports.executors import Relay
from meantime.ports.runner import Assignment
from meantime.system.platform import ProcessHandle

from .empty_inboxes import EmptyInboxes

GONE = "The process that ran it is gone; how far it got is not known."


class GiveBack(Protocol):
    def __call__(self, turn: str, *, failed: bool) -> None: ...


class RemoteRun(NamedTuple):
    """A run that an executor is to perform, as long as we wait for it."""

    assignment: Assignment
    context: Relay
    ended: asyncio.Future[Report]

    @property
    def task(self) -> Task:
        return self.assignment.task

    def end(self, report: Report) -> None:
        if not self.ended.done():
            self.ended.set_result(report)


class ConnectedExecutor:
    def __init__(self, id: str) -> None:
        self.id = id
        self.pid: int | None = None
        self.wire: Wire[Any] | None = None
        self.runs: dict[str, RemoteRun] = {}
        self.turns: set[str] = set()
        self.hosts: list[tuple[str, str, str]] = []  # that it pushes notices to
        self.asking: set[tuple[str, str]] = set()  # tasks, and what they are asking now
        self.grace: Alarm | None = None
        self.life: ProcessHandle | None = None  # tells the end of its process
        self.give_back: GiveBack = _keep

    def order(self, run: RemoteRun, *, again: bool) -> None:
        if self.wire is not None:
            self.wire.send(RunFrame(run.task, again, run.assignment.foreground))
            if run.context.stops:
                self.stop(run)

    def stop(self, run: RemoteRun) -> None:
        if self.wire is not None:
            self.wire.send(Stop(run.task.id, run.assignment.fence))

    def run(self, task: str, fence: Fence) -> RemoteRun | None:
        found = self.runs.get(task)
        return found if found is not None and found.assignment.fence == fence else None


class ExecutorTable:
    """ports.executors, for the processes that are connected to the socket server."""

    def __init__(self, clock: Clock, *, lease: float = 60.0, grace: float = 30.0) -> None:
        self.clock = clock
        self.lease = lease
        self._grace = grace
        self._known: dict[str, ConnectedExecutor] = {}
        self._began = clock.monotonic()
        self._closed = False
        self.inboxes = EmptyInboxes()

    def hosts(self) -> list[tuple[str, str, str]]:
        return [host for one in self._known.values() for host in one.hosts]

    def about(self) -> tuple[dict[str, Json], ...]:
        """For people: those that are connected, and those that may come back."""
        return tuple(
            {"id": one.id, "pid": one.pid, "runs": len(one.runs), "connected": one.wire is not None}
            for one in self._known.values()
        )

    # -- ports.executors

    def may_run(self, executor: str) -> bool:
        """In our first moments anybody may come back: a former owner may have known it."""
        return executor in self._known or self.clock.monotonic() < self._began + self._grace

    async def perform(self, assignment: Assignment, context: Relay) -> Report:
        executor = self._awaited(assignment.task.executor or "")
        if executor is None:
            return Report(lost=GONE)
        run = RemoteRun(assignment, context, asyncio.get_running_loop().create_future())
        executor.runs[run.task.id] = run
        executor.order(run, again=assignment.again)
        try:
            return await _outlast(run, executor)
        finally:
            if executor.runs.get(run.task.id) is run:
                del executor.runs[run.task.id]

    def detach(self, task: Task) -> bool:
        executor = self._known.get(task.executor or "")
        run = None if executor is None else executor.runs.get(task.id)
        if run is None:
            return False
        run.end(Report(detached=True))
        return True

    def _awaited(self, id: str) -> ConnectedExecutor | None:
        executor = self._known.get(id)
        if executor is None and self.may_run(id):
            executor = self._known[id] = ConnectedExecutor(id)
            self._arm(executor)
        return executor

    # -- ports.executors.LinkedProcesses

    def limits_changed(self, limits: Limits) -> None:
        """All connected processes know them without asking, whoever changed them."""
        for executor in self._known.values():
            if executor.wire is not None:
                executor.wire.send(Limited(limits))

    def inbox_filled(self, thread: str) -> None:
        self.inboxes.tell_filled(thread)

    # -- coming and going

    def join(
        self, id: str, wire: Wire[Any], pid: int | None, turns: list[str], give_back: GiveBack
    ) -> ConnectedExecutor:
        """A process that comes back takes its place again; its other connection is closed. `give_back` takes
        the turns that it does not hold any more, now and when it is gone."""
        executor = self._known.setdefault(id, ConnectedExecutor(id))
        if executor.wire is not None:
            executor.wire.abort()
        if executor.grace is not None:
            executor.grace.cancel()
        executor.wire, executor.pid, executor.give_back = wire, pid, give_back
        self._watch(executor)
        for turn in executor.turns - set(turns):  # opened, but the answer was lost
            give_back(turn, failed=False)
        executor.turns &= set(turns)
        return executor

    def welcome(self, executor: ConnectedExecutor) -> None:
        for run in executor.runs.values():
            executor.order(run, again=True)

    def leave(self, executor: ConnectedExecutor, wire: Wire[Any]) -> None:
        if executor.wire is wire:
            executor.wire = None
            self._arm(executor)

    def gone(self, executor: ConnectedExecutor, *, failed: bool = True) -> None:
        """For good: its process has ended, or its grace is over; or it said so, and nothing failed."""
        self._let_be(executor)
        if self._known.get(executor.id) is not executor:
            return
        del self._known[executor.id]
        wire, executor.wire = executor.wire, None
        if wire is not None:
            wire.abort()
        for run in list(executor.runs.values()):
            run.end(Report(lost=GONE))
        for turn in executor.turns:
            executor.give_back(turn, failed=failed)

    def _arm(self, executor: ConnectedExecutor) -> None:
        if not self._closed:
            executor.grace = self.clock.call_later(self._grace, lambda: self.gone(executor))

    def _watch(self, executor: ConnectedExecutor) -> None:
        """A connection can be lost and come back; a process that has ended does not."""
        self._unwatch(executor)
        if executor.pid is None:
            return
        try:
            executor.life = ProcessHandle(executor.pid)
        except OSError:
            return  # its connection tells, too, only later
        executor.life.on_exit(asyncio.get_running_loop(), lambda: self.gone(executor))

    def _unwatch(self, executor: ConnectedExecutor) -> None:
        if executor.life is not None:
            executor.life.close()
            executor.life = None

    def _let_be(self, executor: ConnectedExecutor) -> None:
        self._unwatch(executor)
        if executor.grace is not None:
            executor.grace.cancel()

    def close(self) -> None:
        """Nobody is waited for any more: what was not left to the next owner ends here."""
        self._closed = True
        for executor in self._known.values():
            self._let_be(executor)
            for run in list(executor.runs.values()):
                run.end(Report(lost=GONE))


def check_times(lease: float, grace: float) -> None:
    if not 0 < lease <= 86_400 or not 0 <= grace <= 86_400:
        raise InvalidInput("An executor's lease and grace are seconds, up to a day.")


def _keep(turn: str, *, failed: bool) -> None:
    """A process that never joined holds no turn."""


async def _outlast(run: RemoteRun, executor: ConnectedExecutor) -> Report:
    """A stop is passed on, and what the function makes of it is waited for."""
    me = asyncio.current_task()
    assert me is not None
    while True:
        try:
            return await asyncio.shield(run.ended)
        except asyncio.CancelledError:
            if run.ended.done():
                return run.ended.result()
            if me.cancelling() > run.context.stops:
                raise
            executor.stop(run)
