"""The processes that run functions for us. Each connected process is an executor: it has a lease while it is
connected, a grace when it is not, and when that is over its runs are lost and its turns given back."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from meantime.kernel.errors import InvalidInput, MeantimeError, NotFound
from meantime.kernel.model import Json, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.questions import Reply
from meantime.link import wire_errors
from meantime.link.frame_connection import Wire
from meantime.link.frames import (
    Ended,
    EndingAcknowledged,
    Fence,
    QuestionAsked,
    Replied,
    RunFrame,
    Saying,
    Stop,
    UnknownFrame,
    Withdraws,
    from_wire,
)
from meantime.ports.clock import Alarm, Clock
from meantime.ports.executors import Relay
from meantime.ports.runner import Assignment, Stopped
from meantime.ports.tasks import Tasks

from .empty_inboxes import EmptyInboxes

GONE = "The process that ran it is gone; how far it got is not known."
NOT_THERE = "The process that had handed it in does not have it any more."


class RemoteRun(NamedTuple):
    """A run that an executor is to perform, as long as we wait for it."""

    assignment: Assignment
    context: Relay
    ended: asyncio.Future[Report]

    @property
    def task(self) -> Task:
        return self.assignment.task


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
        self.life: int | None = None  # a descriptor that tells the end of its process

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
        self._tasks: Tasks | None = None
        self._beside: set[asyncio.Task[None]] = set()
        self._closed = False
        self.inboxes = EmptyInboxes()
        self.keep_late: Callable[[str, str, Fence, Report], Awaitable[None]] = _forget  # set by the owner

    def serve(self, tasks: Tasks) -> None:
        self._tasks = tasks

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
        _end(run, Report(detached=True))
        return True

    def _awaited(self, id: str) -> ConnectedExecutor | None:
        executor = self._known.get(id)
        if executor is None and self.may_run(id):
            executor = self._known[id] = ConnectedExecutor(id)
            self._arm(executor)
        return executor

    # -- coming and going

    def join(self, id: str, wire: Wire[Any], pid: int | None, turns: list[str]) -> ConnectedExecutor:
        """A process that comes back takes its place again; its other connection is closed."""
        executor = self._known.setdefault(id, ConnectedExecutor(id))
        if executor.wire is not None:
            executor.wire.abort()
        if executor.grace is not None:
            executor.grace.cancel()
        executor.wire, executor.pid = wire, pid
        self._watch(executor)
        for turn in executor.turns - set(turns):  # opened, but the answer was lost
            self.give_back(turn, failed=False)
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
            _end(run, Report(lost=GONE))
        for turn in executor.turns:
            self.give_back(turn, failed=failed)

    def _arm(self, executor: ConnectedExecutor) -> None:
        if not self._closed:
            executor.grace = self.clock.call_later(self._grace, lambda: self.gone(executor))

    def _watch(self, executor: ConnectedExecutor) -> None:
        """A connection can be lost and come back; a process that has ended does not."""
        self._unwatch(executor)
        if executor.pid is None or not hasattr(os, "pidfd_open"):
            return
        try:
            executor.life = os.pidfd_open(executor.pid)
        except OSError:
            return  # its connection tells, too, only later
        asyncio.get_running_loop().add_reader(executor.life, self.gone, executor)

    def _unwatch(self, executor: ConnectedExecutor) -> None:
        if executor.life is not None:
            asyncio.get_running_loop().remove_reader(executor.life)
            os.close(executor.life)
            executor.life = None

    def _let_be(self, executor: ConnectedExecutor) -> None:
        self._unwatch(executor)
        if executor.grace is not None:
            executor.grace.cancel()

    # -- what executors say

    def saying(self, executor: ConnectedExecutor, frame: Saying) -> None:
        run = executor.run(frame.task, frame.fence)
        if run is not None:
            _relay(run, frame)
            run.context.relay_deaf(frame.is_deaf)

    def ended(self, executor: ConnectedExecutor, frame: Ended) -> None:
        run = executor.run(frame.task, frame.fence)
        if run is not None:
            _relay(run, frame)
            _end(run, from_wire(frame.report))
        self._spawn(self._acknowledge(executor, frame, is_late=run is None))

    def unknown(self, executor: ConnectedExecutor, frame: UnknownFrame) -> None:
        run = executor.run(frame.task, frame.fence)
        if run is not None:
            _end(run, Report(lost=NOT_THERE))

    def question_asked(self, executor: ConnectedExecutor, frame: QuestionAsked) -> None:
        run = executor.run(frame.task, frame.fence)
        asked = (frame.task, frame.question.id)
        if run is not None and asked not in executor.asking:
            executor.asking.add(asked)
            self._spawn(self._answer_question(executor, run, frame))

    async def _answer_question(
        self, executor: ConnectedExecutor, run: RemoteRun, frame: QuestionAsked
    ) -> None:
        said: Reply | None = None
        error = None
        try:
            said = await self._said(frame) if frame.again else None
            said = said or await run.context.ask(frame.question)
        except MeantimeError as problem:
            error = wire_errors.to_wire(problem)
        except Stopped:
            return  # which it hears by itself
        finally:
            executor.asking.discard((frame.task, frame.question.id))
        if executor.wire is not None:
            executor.wire.send(Replied(frame.task, frame.fence, frame.question.id, said, error))

    async def _said(self, frame: QuestionAsked) -> Reply | None:
        """It was answered while the connection was lost."""
        assert self._tasks is not None
        answers = (await self._tasks.get(frame.task, None)).answers
        own = [said for said in answers if said.run == frame.fence[0] and said.question == frame.question.id]
        return own[-1] if own else None

    def withdraws(self, executor: ConnectedExecutor, frame: Withdraws) -> None:
        run = executor.run(frame.task, frame.fence)
        if run is not None:
            run.context.withdraw(frame.question, frame.reply)

    async def _acknowledge(self, executor: ConnectedExecutor, frame: Ended, *, is_late: bool) -> None:
        """Once it is on record. A run without a record is a call, which has its answer, or was deleted."""
        assert self._tasks is not None
        with contextlib.suppress(NotFound):
            await self._tasks.wait([frame.task], None)
            if is_late:
                await self.keep_late(frame.task, executor.id, frame.fence, from_wire(frame.report))
        if executor.wire is not None:
            executor.wire.send(EndingAcknowledged(frame.task, frame.fence))

    def give_back(self, turn: str, *, failed: bool) -> None:
        assert self._tasks is not None
        self._spawn(self._tasks.close_turn(turn, failed=failed))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(MeantimeError):
                await work

        task = asyncio.get_running_loop().create_task(quietly())
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def close(self) -> None:
        """Nobody is waited for any more: what was not left to the next owner ends here."""
        self._closed = True
        for executor in self._known.values():
            self._let_be(executor)
            for run in list(executor.runs.values()):
                _end(run, Report(lost=GONE))
        for task in self._beside:
            task.cancel()


def check_times(lease: float, grace: float) -> None:
    if not 0 < lease <= 86_400 or not 0 <= grace <= 86_400:
        raise InvalidInput("An executor's lease and grace are seconds, up to a day.")


def _end(run: RemoteRun, report: Report) -> None:
    if not run.ended.done():
        run.ended.set_result(report)


def _relay(run: RemoteRun, frame: Saying | Ended) -> None:
    run.context.relay(frame.said.progress, frame.said.emitted, frame.said.session)
    if run.assignment.again:  # what was begun under us, we have timed ourselves
        run.context.running_for(max(0.0, frame.age))


async def _forget(task: str, executor: str, fence: Fence, report: Report) -> None:
    """Nobody keeps a ledger here."""


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
