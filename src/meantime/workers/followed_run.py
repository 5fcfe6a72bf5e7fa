"""A run that a worker has claimed, as the owner follows it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, repeat
from pathlib import Path

from msgspec.structs import replace

from meantime.kernel.errors import Closed, Degraded, LedgerError, MeantimeError, NotFound
from meantime.kernel.model import Claim, Progress, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import one_line
from meantime.kernel.row_facts import LINE
from meantime.link import wire_errors
from meantime.link.frames import WorkState
from meantime.ports.clock import Clock, sleep
from meantime.ports.executors import Relay
from meantime.ports.runner import Assignment, Stopped

from .messages import (
    AskedMessage,
    FromOwner,
    GrantedMessage,
    NotedMessage,
    NotifiedMessage,
    RepliedMessage,
    SayingMessage,
    UnsentEvent,
)
from .sender_numbers import SenderNumbers
from .worker_requests import WorkerRequests

logger = logging.getLogger("meantime")
RETRY = (0.05, 0.2, 1.0, 5.0)  # seconds between tries to record an event that came with an ending
TellWorker = Callable[[str, FromOwner], None]
TellClaimant = Callable[[Claim, FromOwner], None]


def claim_of(task: Task) -> Claim:
    """Raises NotFound for a task that no worker has."""
    if task.run.claim is None:
        raise NotFound(f"Task {task.id} is not at a worker.")
    return task.run.claim


class FollowedRun:
    def __init__(
        self, assignment: Assignment, context: Relay, files: Mapping[str, Path], clock: Clock
    ) -> None:
        assert assignment.task.run.claim is not None
        self.assignment = assignment
        self.context = context
        self.files = files
        self.claim: Claim = assignment.task.run.claim
        self._ended: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._numbers = SenderNumbers()  # of the newest `saying`
        self._asking: set[str] = set()
        self._replies: dict[str, RepliedMessage] = {}  # a worker that did not get one asks again
        self._writing = asyncio.Lock()
        self._clock = clock
        self._reported: Progress | None = None  # as the worker said it last
        self.last_line: tuple[str, float | None] = ("", None)  # of its output, and when

    @property
    def task(self) -> Task:
        return self.assignment.task

    @property
    def fence(self) -> tuple[int, int]:
        return self.assignment.fence

    def granted(self) -> GrantedMessage:
        """Everything that the worker needs, and nothing else of the task."""
        given = self.assignment.kwargs if self.task.work.kind == "shell" else {}
        stdin = given.get("stdin")
        plain = Task(
            id=self.task.id,
            thread=self.task.thread,
            work=self.task.work,
            status=self.task.status,
            run=replace(self.task.run, emitted={}, prompt=""),
            depth=self.task.depth,
            inline=self.task.inline,
            place=self.task.place,
            children=self.task.children,
            above=self.task.above,
        )
        return GrantedMessage(
            nonce=self.claim.nonce, task=plain, env=dict(given.get("env") or {}), stdin=stdin, events=True
        )

    def end(self, report: Report) -> None:
        if not self._ended.done():
            self._ended.set_result(report)

    async def outlast(self, cancel: Callable[[FollowedRun], None]) -> Report:
        """A stop is passed on, and what the work makes of it is waited for."""
        me = asyncio.current_task()
        assert me is not None
        while True:
            try:
                return await asyncio.shield(self._ended)
            except asyncio.CancelledError:
                if self._ended.done():
                    return self._ended.result()
                if me.cancelling() > self.context.stops:
                    return Report(detached=True)  # our loop is going down; the run is not ours to end
                cancel(self)

    # -- what the worker says of it

    def said(self, message: SayingMessage) -> None:
        if self._numbers.is_new(message.sender, message.number):
            self._numbers.note(message.sender, message.number)
            self.relay(message.said, message.age)
            self.context.relay_deaf(message.is_deaf)
            if message.quiet is not None:
                self.last_line = one_line(message.line, LINE), self._clock.now() - max(0.0, message.quiet)

    def relay(self, said: WorkState, age: float) -> None:
        """The clock of the worker may be wrong by hours: progress is as old as its message here."""
        progress = said.progress
        if progress == self._reported and self.context.said is not None:
            progress = self.context.said
        elif progress is not None:
            self._reported, progress = progress, replace(progress, updated_at=self._clock.now())
        self.context.relay(progress, said.emitted, said.session)
        if self.assignment.again:  # what was begun under us, we have timed ourselves
            self.context.running_for(max(0.0, age))

    async def ask(self, message: AskedMessage, tell: TellClaimant) -> None:
        """Once for each question. The reply is repeated for a worker that asks again."""
        question = message.question
        if question.id in self._asking:
            return
        if question.id not in self._replies:
            self._asking.add(question.id)
            try:
                reply = await self.context.ask(question)
                replied = RepliedMessage(nonce=self.claim.nonce, question=question.id, reply=reply)
            except MeantimeError as problem:
                error = wire_errors.to_wire(problem)
                replied = RepliedMessage(nonce=self.claim.nonce, question=question.id, error=error)
            except Stopped:
                return  # which it is told by a cancel
            finally:
                self._asking.discard(question.id)
            self._replies[question.id] = replied
        tell(self.claim, self._replies[question.id])

    async def note(self, message: NotifiedMessage, tell: TellClaimant) -> None:
        """An event, once for each number. One that cannot be written now is not answered: the worker repeats
        it. The other errors stay what they are, so a repetition gets the same."""
        answer, error = "", None
        try:
            answer = await self.context.relay_event(message.number, message.text)
        except (LedgerError, Degraded, Closed):
            return
        except MeantimeError as problem:
            error = wire_errors.to_wire(problem)
        noted = NotedMessage(nonce=self.claim.nonce, number=message.number, answer=answer, error=error)
        tell(self.claim, noted)

    async def note_left(self, events: Iterable[UnsentEvent]) -> None:
        """Events that came with the ending, before that is recorded. Nobody repeats them: one that cannot be
        written now is tried until it can be, as the ending itself will be."""
        for event in events:
            try:
                await self._insist(event)
            except Closed:
                raise
            except MeantimeError as problem:
                logger.warning("An event of %s was not told: %s", self.task.id, problem)

    async def _insist(self, event: UnsentEvent) -> None:
        for pause in chain(RETRY, repeat(RETRY[-1])):
            try:
                await self.context.relay_event(event.number, event.text)
                return
            except (LedgerError, Degraded):
                await sleep(self._clock, pause)

    async def write(self, requests: WorkerRequests, data: bytes, *, eof: bool) -> None:
        """One after the other: the worker writes each number once, in their order."""
        async with self._writing:
            await requests.send(self.claim, data, eof=eof)
