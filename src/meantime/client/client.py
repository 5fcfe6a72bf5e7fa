"""The verbs of ports.tasks, asked of the owner. A function is held here, and runs here when it says so."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from meantime.kernel.errors import Disconnected, Duplicate, NotFound, TaskFailed
from meantime.kernel.ids import ENTROPY, check_id, crockford, task_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import Limits
from meantime.kernel.model import Run, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import is_unicode
from meantime.kernel.work import Order
from meantime.link import frames
from meantime.link.frames import FromOwner, Heard, Limited, Stop, Welcome
from meantime.link.verbs import VERBS, Verb, from_wire_answer
from meantime.ports.clock import Clock
from meantime.ports.engine import Engine
from meantime.ports.host import Host
from meantime.ports.runner import CURRENT, Assignment
from meantime.ports.tasks import Answer, OpenTurn, Options, Tasks
from meantime.push import Pushing

from .connection import Asked, Connection
from .executor import Executor, Held

# Asked twice, these could be done twice.
_ONCE = frozenset({"call", "resume", "send", "append", "promote"})
LAST_WORDS = 15.0  # seconds that a close waits for what runs here to stop
ON_ITS_WAY = 0.02  # seconds before another look at what the owner is writing down
_OWNER = 40  # bits: above them `seen` says which owner counted


class Client(Tasks):
    """Verbs that need nothing here are made from the port itself, at the end of this file."""

    def __init__(
        self,
        path: Path,
        engine: Engine,
        clock: Clock,
        *,
        version: str,
        patience: float = 30.0,
        summon: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.id = "x_" + crockford(os.urandom(16))
        self._engine = engine
        self._connection = Connection(path, self.id, self, version=version, patience=patience, summon=summon)
        self._executor = Executor(engine, clock, self._connection.say)
        self._limits = Limits()
        self._turns: set[str] = set()
        self.pushing = Pushing(self, asyncio.sleep)
        self._beside: set[asyncio.Future[None]] = set()
        self._owners = 0  # how many there were before this one

    async def open(self) -> None:
        await self._connection.open()

    async def close(self, on_close: str | None = None) -> None:
        """What runs here is cancelled, as an owner that closes would; the owner records it."""
        await self.pushing.close()
        if self._connection.is_up:
            reason = "its process closed its connection"
            stops = [
                self.cancel(id, None, by="shutdown", reason=reason, wait=True)
                for id in self._executor.running()
            ]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    await asyncio.gather(*stops, return_exceptions=True)
        await self._connection.close()
        await self._executor.close()

    async def _ask(self, verb: Verb, *args: Any, **kwargs: Any) -> Any:
        return await self._answer(
            Asked(verb, verb.encode(*args, **kwargs), is_repeatable=verb.name not in _ONCE)
        )

    async def _answer(self, asked: Asked) -> Any:
        inside = CURRENT.get(None)
        if inside is not None:
            asked.work = (inside.task_id, getattr(inside, "depth", 0))
        return asked.verb.decode_answer(await self._connection.ask(asked))

    # -- what the connection wants to know, and to say

    def turns(self) -> list[str]:
        return list(self._turns)

    def welcomed(self, welcome: Welcome, *, same: bool) -> None:
        self._limits = welcome.limits
        if not same:
            self._owners += 1
            self._turns.clear()
        self._executor.repeat()

    def heard(self, frame: FromOwner) -> None:
        match frame:
            case frames.Run():
                self._executor.run(frame)
            case Stop():
                self._executor.stop(frame)
            case Heard():
                self._executor.heard(frame)
            case Limited():
                self._limits = frame.limits
            case _:
                pass

    # -- handing off

    async def start(self, thread: str, order: Order, options: Options) -> Task:
        return await self._hand_over("start", thread, order, options)

    async def adopt(self, thread: str, order: Order, options: Options, running_for: float) -> Task:
        return await self._hand_over("adopt", thread, order, options, running_for)

    async def _hand_over(self, verb: str, thread: str, order: Order, options: Options, *more: Any) -> Task:
        """With an id of our own: what is asked again after a lost answer is known by it."""
        id = _id_of(options)
        options = replace(options, id=id)
        if order.target is not None:
            options = replace(options, executor=self.id)
        order = _for_owner(order, options)
        arguments = VERBS[verb].encode(thread, order, options, *more)
        if order.target is not None:
            self._hold(id, thread, order)
        try:
            return await self._handed_over(VERBS[verb], arguments, id, thread)
        except Disconnected:
            raise  # it may have been taken: the owner will ask for it then
        except Exception:
            self._executor.let_go(id)
            raise

    async def _handed_over(self, verb: Verb, arguments: bytes, id: str, thread: str) -> Task:
        sent = 0
        while True:
            asked = Asked(verb, arguments)
            try:
                return await self._answer(asked)
            except Duplicate as problem:
                sent += asked.sent
                if sent < 2 or problem.existing != id:
                    raise
            with contextlib.suppress(NotFound):  # it is our own, and only its answer was lost
                return await self._ask(VERBS["get"], id, thread)
            await asyncio.sleep(ON_ITS_WAY)

    def _hold(self, id: str, thread: str, order: Order) -> Held:
        if self._executor.holds(id):
            raise Duplicate.of_id(id)
        picture = Task(id=id, thread=thread, work=order.work, status=Status.QUEUED, run=Run())
        assignment = Assignment(picture, order.target, order.args, order.kwargs)
        self._engine.runner(order.work.kind).check(picture, assignment)
        return self._executor.hold(id, order)

    # -- inline or job

    async def call(self, thread: str, order: Order, options: Options, threshold: float | None) -> Answer:
        if order.target is None:
            order = _for_owner(order, options)
            return from_wire_answer(await self._ask(VERBS["call"], thread, order, options, threshold))
        id = _id_of(options)
        held = self._hold(id, thread, order)
        options = replace(options, id=id, executor=self.id)
        goes_on = False
        try:
            answer = await self._called(thread, order, options, threshold, held)
            goes_on = answer.mode == "background"
        finally:
            if not goes_on:
                self._executor.let_go(id)
        return answer

    async def _called(
        self, thread: str, order: Order, options: Options, threshold: float | None, held: Held
    ) -> Answer:
        """What has begun here is never begun again: where the connection is lost, it is a task already,
        or becomes one, or we wait for it as we are."""
        while True:
            try:
                if held.performing is not None:
                    return Answer("background", task=await self._as_task(thread, order, options, held))
                return from_wire_answer(await self._ask(VERBS["call"], thread, order, options, threshold))
            except TaskFailed:
                own = held.performing.result().exception if held.performing else None
                if own is None:
                    raise
                raise own from None  # as if it had been called here, which it was
            except Disconnected as problem:
                if problem.code == "in_doubt":
                    held.is_deaf = True  # the owner stops a call that nobody waits for; we do
                elif held.performing is None:
                    raise
                else:
                    return _inline(await asyncio.shield(held.performing))

    async def _as_task(self, thread: str, order: Order, options: Options, held: Held) -> Task:
        """It may be on its way to the ledger, so also one that has ended meanwhile is not answered here:
        it would be a result and a task."""
        assert options.id is not None
        while True:
            with contextlib.suppress(NotFound):
                task: Task = await self._ask(VERBS["get"], options.id, thread)
                held.is_deaf = False
                return task
            with contextlib.suppress(Duplicate):
                arguments = VERBS["adopt"].encode(thread, order, options, 0.0)
                return await self._answer(Asked(VERBS["adopt"], arguments))
            await asyncio.sleep(ON_ITS_WAY)

    # -- turns

    async def open_turn(self, thread: str, *, lease: float | None, limit: int) -> OpenTurn:
        """A turn that was opened for a caller who is gone by then is given back."""
        opening = asyncio.ensure_future(self._ask(VERBS["open_turn"], thread, lease=lease, limit=limit))
        try:
            opened: OpenTurn = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._unwanted)
            raise
        self._turns.add(opened.id)
        return opened

    def _unwanted(self, opening: asyncio.Future[OpenTurn]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            return
        closing = asyncio.ensure_future(self.close_turn(opening.result().id, failed=False))
        self._beside.add(closing)
        closing.add_done_callback(self._beside.discard)
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def close_turn(self, turn: str, *, failed: bool, thread: str | None = None) -> None:
        try:
            await self._ask(VERBS["close_turn"], turn, failed=failed, thread=thread)
        finally:
            self._turns.discard(turn)  # the owner gives back what a client does not name any more

    async def wait_wake(self, thread: str, seen: int) -> int:
        """Every owner counts anew: what was seen of a former one is nothing to this one."""
        verb, owner = VERBS["wait_wake"], self._owners
        known = seen & ((1 << _OWNER) - 1) if seen >= 0 and seen >> _OWNER == owner else -1
        asked = Asked(verb, verb.encode(thread, known))
        asked.fresh = verb.encode(thread, -1)
        return await self._answer(asked) | self._owners << _OWNER

    def attach(self, thread: str, host: Host) -> None:
        self.pushing.attach(check_id(thread, "thread"), host)

    def detach(self, thread: str) -> None:
        self.pushing.detach(thread)

    # -- limits

    def limits(self) -> Limits:
        return self._limits


def _id_of(options: Options) -> str:
    return task_id(os.urandom(ENTROPY)) if options.id is None else check_id(options.id, "id")


def _for_owner(order: Order, options: Options) -> Order:
    """A command gets the environment of the process that hands it off, wherever it is started. One that
    may be run again does not: values of variables are never stored, so they could not be given again."""
    if order.work.kind != "shell" or options.retry:
        return order
    own = {name: value for name, value in os.environ.items() if is_unicode(name) and is_unicode(value)}
    return order.with_environment(own)


def _inline(report: Report) -> Answer:
    if report.result is not None:
        return Answer("synchronous", report.result.value)
    raise report.exception or Disconnected("The call was stopped when the owner of the ledger was lost.")


def _plain(verb: Verb) -> Callable[..., Awaitable[Any]]:
    async def method(self: Client, *args: Any, **kwargs: Any) -> Any:
        return await self._ask(verb, *args, **kwargs)  # pyright: ignore[reportPrivateUsage]  its own method

    method.__name__ = verb.name
    return method


for _name, _made in VERBS.items():
    if _name not in vars(Client):
        setattr(Client, _name, _plain(_made))
