"""A run that this worker performs: what it says, what it is told, and how it ended."""

from __future__ import annotations

import asyncio
import logging
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from meantime.execution.context import LOOK, WorkContext
from meantime.kernel.errors import MeantimeError, NotFound
from meantime.kernel.model import Chunk, fence_of
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import one_line
from meantime.kernel.questions import Question, Reply
from meantime.kernel.row_facts import LINE
from meantime.link import wire_errors
from meantime.link.frames import WorkState, to_wire
from meantime.ports.clock import Alarm, Clock, sleep
from meantime.ports.engine import Engine
from meantime.ports.runner import CURRENT, Assignment, LastingRunner
from meantime.ports.worker_pools import FilingRunner
from meantime.system.event_spool import VARIABLE, EventSpool

from .messages import (
    AnswerMessage,
    AskedMessage,
    EndedMessage,
    FromWorker,
    GrantedMessage,
    KeptFile,
    ReadMessage,
    RepliedMessage,
    SayingMessage,
    SendMessage,
    UnsentEvent,
    WatchMessage,
    WithdrawnMessage,
)
from .output_ahead import AHEAD
from .run_events import RunEvents
from .sender_numbers import SenderNumbers

logger = logging.getLogger("meantime")
SAY_EVERY = 0.25  # seconds between two reports of progress
STEP_IN = 5.0  # seconds over its timeout, after which a run is stopped though no owner has asked for it
WATCH = 5.0  # seconds after which a watch is answered though nothing has changed
ASK_AGAIN = 4  # ticks between two sends of the same question
TAIL = 4 * LINE  # bytes of output that are looked at for its last line
LOOKS, LOOK_AGAIN = 100, 0.1  # for the last events, and seconds between two
Tell = Callable[[FromWorker], None]


class PerformedRun:
    def __init__(
        self,
        granted: GrantedMessage,
        engine: Engine,
        clock: Clock,
        say: Tell,
        spool: EventSpool,
        *,
        again: bool,
    ) -> None:
        self.granted = granted
        self.task = granted.task
        self._engine = engine
        self._clock = clock
        self._say = say
        self._again = again
        self._runner = engine.runner(self.task.work.kind)
        self._spool = spool if self._runner.abilities.adopt and granted.events else None
        self.events = RunEvents(granted, say, self._spool)
        loop = asyncio.get_running_loop()
        self._context = WorkContext(self.task, loop, clock.now, self._changed, _WorkerQuestions(self))
        self._performing: asyncio.Task[None] | None = None
        self._began = clock.monotonic()
        self._sender = os.urandom(8).hex()
        # An owner of an earlier version goes by the number alone, so it is above those of a life before.
        self._number = int(clock.now() * 1_000_000)
        self._is_saying = False
        self._told = -SAY_EVERY  # when it last said something
        self._stops = 0  # of the owner's
        self._was_asked = False
        self._timed_out = False
        self._alarm: Alarm | None = None
        self._written = SenderNumbers()
        self._write = asyncio.Lock()
        self._last: tuple[str, float | None] = ("", None)  # line of its output, and when it was written
        self.asked: dict[str, tuple[Question, asyncio.Future[Reply]]] = {}
        self._ticks = 0

    # -- performing

    def prepare(self) -> None:
        """Before it is written down: then a trace without a process means that it never began. Raises
        MeantimeError if there is no room for it."""
        if self._runner.abilities.adopt:
            cast("LastingRunner", self._runner).prepare(self.task)
        if self._spool is not None:
            self._spool.make()

    def begin(self, ended: Callable[[EndedMessage], None]) -> None:
        if self._runner.abilities.adopt and self._again:
            self._began -= cast("LastingRunner", self._runner).age(self.task) or 0.0
        timeout = self.task.run.timeout
        if timeout is not None:
            left = max(0.0, timeout + STEP_IN - self.age)
            self._alarm = self._clock.call_later(left, self._overdue)
        self.events.open()
        self._performing = asyncio.get_running_loop().create_task(self._perform(ended))

    @property
    def age(self) -> float:
        return self._clock.monotonic() - self._began

    async def _perform(self, ended: Callable[[EndedMessage], None]) -> None:
        CURRENT.set(self._context)
        report = await self._report()
        if self._alarm is not None:
            self._alarm.cancel()
        if report.detached:
            return  # it goes on, and the next life takes it up
        wire = to_wire(replace(report, timed_out=report.timed_out or self._timed_out))
        ended(
            EndedMessage(
                nonce=self.granted.nonce,
                task=self.task.id,
                fence=fence_of(self.task.run),
                report=wire,
                said=self._state,
                age=self.age,
                spill=report.spill,
                files=await self._kept(),
                events=await self._events_left(),
            )
        )

    async def _events_left(self) -> tuple[UnsentEvent, ...]:
        """A machine may have no file to open for a while. An ending must not wait for ever."""
        for look in range(LOOKS):
            try:
                return self.events.left()
            except OSError as problem:
                if look == LOOKS - 1:
                    logger.warning("The last events of %s cannot be read: %s", self.task.id, problem)
            await sleep(self._clock, LOOK_AGAIN)
        return ()

    async def _report(self) -> Report:
        given: dict[str, Any] = {}
        if self.task.work.kind == "shell":
            spool = {} if self._spool is None else {VARIABLE: str(self._spool.folder.absolute())}
            given["env"] = self.granted.env | spool
            if self.granted.stdin is not None:
                given["stdin"] = self.granted.stdin
        assignment = Assignment(self.task, kwargs=given, again=self._again)
        return await self._engine.perform(assignment, self._context)

    async def _kept(self) -> tuple[KeptFile, ...]:
        """Functions have no files, and need not wait for a thread."""
        files = self._files()
        return await asyncio.to_thread(_described, files) if files else ()

    def _files(self) -> dict[str, Path]:
        if not self._runner.abilities.output:
            return {}
        return dict(cast("FilingRunner", self._runner).output_files(self.task))

    def forget(self) -> None:
        """Its ending is recorded by the owner, and its output copied."""
        if self._runner.abilities.adopt:
            cast("LastingRunner", self._runner).forget(self.task)

    async def leave(self) -> None:
        """The worker ends. Work that outlives it is detached."""
        if self._performing is None or self._performing.done():
            return
        if self._runner.abilities.adopt and await cast("LastingRunner", self._runner).detach(self.task):
            await asyncio.wait([self._performing], timeout=STEP_IN)
            return
        self._performing.cancel()
        await asyncio.wait([self._performing], timeout=LOOK)

    # -- stopping

    def stop(self, times: int) -> None:
        """Once for each time that the owner asks, however often it repeats itself."""
        if times > self._stops:
            self._stops = times
            self._request_stop()

    def _request_stop(self) -> None:
        self._context.request_stop()
        self._engine.stop(self.task)
        self._clock.call_later(LOOK, self._after_stop)

    def _after_stop(self) -> None:
        self._was_asked = True
        if self._context.is_deaf:
            self._tell()

    def _overdue(self) -> None:
        """The owner stops it. One that is not there cannot keep it running."""
        if not self._context.stops and self._performing is not None and not self._performing.done():
            self._timed_out = True
            self._request_stop()

    # -- what it says

    @property
    def _state(self) -> WorkState:
        return WorkState(self._context.said, self._context.emitted, self._context.session)

    def saying(self) -> SayingMessage:
        self._number += 1
        is_deaf = self._was_asked and self._context.is_deaf
        line, at = self._last
        quiet = None if at is None else max(0.0, self._clock.now() - at)
        return SayingMessage(
            nonce=self.granted.nonce,
            number=self._number,
            said=self._state,
            age=self.age,
            is_deaf=is_deaf,
            line=line,
            quiet=quiet,
            sender=self._sender,
        )

    @property
    def speaks(self) -> bool:
        return self._runner.abilities.output and self._performing is not None and not self._performing.done()

    async def look(self) -> None:
        """Reports the last line of its output, if there is a new one."""
        try:
            chunk = await cast("FilingRunner", self._runner).tail(self.task, "both", 1, TAIL)
        except (MeantimeError, OSError):
            return
        last = one_line(chunk.text.strip(), LINE), chunk.at
        if chunk.at is not None and last != self._last:
            self._last = last
            self._tell()

    def _changed(self, id: str, now: bool) -> None:
        """The first at once, those that follow soon after together: a flood of them is not a flood of
        messages."""
        if now:
            self._tell()
        elif not self._is_saying:
            self._is_saying = True
            left = self._told + SAY_EVERY - self._clock.monotonic()
            self._clock.call_later(max(0.0, left), self._tell)

    def _tell(self) -> None:
        self._is_saying = False
        self._told = self._clock.monotonic()
        if self._performing is not None and not self._performing.done():
            self._say(self.saying())

    def tick(self) -> None:
        """A question whose message was lost is asked again, and so is one whose answer was. A stop that came
        before the run was under way reached nobody: it is requested again."""
        if self._context.stops < self._stops:
            self._engine.stop(self.task)
        self.events.tick()
        self._ticks += 1
        if self._ticks % ASK_AGAIN == 0:
            for question, _ in list(self.asked.values()):
                self.ask(question)

    def ask(self, question: Question) -> None:
        self._say(AskedMessage(nonce=self.granted.nonce, question=question))

    def withdraw(self, question: str, reply: Reply | None) -> None:
        self._say(WithdrawnMessage(nonce=self.granted.nonce, question=question, reply=reply))

    def replied(self, said: RepliedMessage) -> None:
        _, answer = self.asked.get(said.question, (None, None))
        if answer is None or answer.done():
            return
        if said.reply is not None:
            answer.set_result(said.reply)
        elif said.error is not None:
            answer.set_exception(wire_errors.from_wire(said.error))

    # -- what it is asked

    async def answer(self, asked: ReadMessage | WatchMessage | SendMessage) -> AnswerMessage:
        try:
            match asked:
                case ReadMessage():
                    return AnswerMessage(ask=asked.ask, chunk=await self._read(asked))
                case WatchMessage():
                    return await self._watch(asked)
                case SendMessage():
                    await self._send(asked)
                    return AnswerMessage(ask=asked.ask)
        except (MeantimeError, OSError) as problem:
            return AnswerMessage(ask=asked.ask, error=wire_errors.to_wire(problem))

    async def _read(self, asked: ReadMessage) -> Chunk:
        if asked.file:
            return await asyncio.to_thread(self._piece, asked)
        runner = cast("FilingRunner", self._runner)
        if asked.lines:
            return await runner.tail(self.task, asked.stream, asked.lines, asked.most)
        return await runner.read(self.task, asked.stream, asked.offset, asked.most)

    def _piece(self, asked: ReadMessage) -> Chunk:
        path = self._files().get(asked.file)
        if path is None:
            raise NotFound(f"There is no file {asked.file!r} of this run.")
        with path.open("rb") as file:
            file.seek(asked.offset)
            data = file.read(asked.most)
        return Chunk(data, asked.offset, asked.offset + len(data), path.stat().st_size)

    async def _watch(self, asked: WatchMessage) -> AnswerMessage:
        runner = cast("FilingRunner", self._runner)
        try:
            changed = await asyncio.wait_for(runner.changed(self.task, asked.stream, asked.seen), WATCH)
        except TimeoutError:
            changed = True  # it may have changed: the owner looks
        chunk = None
        if changed and asked.most > 0 and asked.seen >= 0:
            chunk = await runner.read(self.task, asked.stream, asked.seen, min(asked.most, AHEAD))
        return AnswerMessage(ask=asked.ask, changed=changed, chunk=chunk)

    async def _send(self, asked: SendMessage) -> None:
        """Each number once: the owner repeats what was not answered."""
        async with self._write:
            if self._written.is_new(asked.sender, asked.number):
                await cast("FilingRunner", self._runner).write(self.task, asked.data, eof=asked.eof)
                self._written.note(asked.sender, asked.number)


def _described(files: Mapping[str, Path]) -> tuple[KeptFile, ...]:
    found: list[KeptFile] = []
    for ending, path in files.items():
        try:
            data = path.read_bytes()
        except OSError:
            continue  # most commands have only some of them
        found.append(KeptFile(ending=ending, size=len(data), crc=zlib.crc32(data)))
    return tuple(found)


class _WorkerQuestions:
    """The questions of one run, asked of the owner."""

    def __init__(self, run: PerformedRun) -> None:
        self._run = run

    async def ask(self, question: Question) -> Reply:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._run.asked[question.id] = (question, answer)
        self._run.ask(question)
        try:
            return await answer
        finally:
            del self._run.asked[question.id]

    def withdraw(self, question: str, reply: Reply | None) -> None:
        self._run.withdraw(question, reply)

    async def notify(self, text: str) -> str:
        return await self._run.events.notify(text)
