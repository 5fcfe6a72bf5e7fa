"""The verbs of ports.tasks and the catalog of ports.owner, asked of the owner. A function is held here, and
runs here when it says so."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from meantime.conversation.push import Pushing
from meantime.execution.containment import is_raisable
from meantime.kernel.errors import Disconnected, Duplicate, Refused, TaskFailed
from meantime.kernel.ids import ENTROPY, check_id, crockford, task_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import Limits, PluginDefaults
from meantime.kernel.model import Json, Run, Task
from meantime.kernel.placement import HERE
from meantime.kernel.plain_text import is_unicode
from meantime.kernel.timeouts import check_age
from meantime.kernel.work import Order
from meantime.link import frames
from meantime.link.verb_messages import VERBS, VerbMessages, from_wire_answer
from meantime.ports.clock import Clock
from meantime.ports.engine import Engine
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.host import Host
from meantime.ports.owner import Catalog
from meantime.ports.runner import CURRENT, Assignment
from meantime.ports.tasks import Answer, OpenTurn, Options, Tasks

from .call_lookup import as_task, task_of
from .executor import Executor, Held, inline_answer
from .owner_connection import OwnerConnection, PendingRequest

# Asked twice, these could be done twice.
_ONCE = frozenset({"call", "resume", "send", "answer", "append", "promote", "notify", "remind"})
ON_ITS_WAY = 0.02  # seconds before another look at what the owner is writing down
LAST_WORDS = 15.0  # seconds that a close waits for what runs here to stop
_OWNER = 40  # bits: above them `seen` says which owner counted


class Client(Tasks, Catalog):
    """Verbs that need nothing here are made from the ports themselves, at the end of this file."""

    def __init__(
        self,
        path: Path,
        engine: Engine,
        clock: Clock,
        *,
        version: str,
        patience: float = 30.0,
        waits: bool = False,
        summon: Callable[[], Awaitable[None]] | None = None,
        parent: str | None = None,
    ) -> None:
        """`waits`: for an owner that is not there yet, as for one that was lost.
        `parent`: the task that this process works for, where one does: what it starts is its child."""
        self._parent = parent
        self.id = "x_" + crockford(os.urandom(16))
        self._engine = engine
        self._clock = clock
        self._connection = OwnerConnection(
            path, self.id, self, version=version, patience=patience, waits=waits, summon=summon
        )
        self._executor = Executor(
            engine, clock, self._connection.say, lambda: self._connection.is_up, self.notify
        )
        self.has_catalog = False  # whether the owner serves one; an older one does not
        self._limits = Limits()
        self._plugins = PluginDefaults()
        self._serving: list[tuple[str, str, str]] = []  # threads that are told here, and how
        self._turns: set[str] = set()
        self._empty: set[str] = set()  # threads whose inbox the owner says is empty
        self.pushing = Pushing(self, asyncio.sleep)
        self._beside = BackgroundTasks()
        self._owners = 0  # how many there were before this one

    @property
    def is_connected(self) -> bool:
        return self._connection.is_up

    async def open(self) -> None:
        try:
            await self._connection.open()
        except BaseException:  # cancelled, too: nobody would close what nobody has got
            await self._connection.close()
            raise

    async def close(self, on_close: str | None = None) -> None:
        """Functions that run here are cancelled, as by an owner that closes; the owner records it."""
        if not self.is_connected:
            await self._connection.close()  # nobody can be asked, so nobody waits for an answer
        try:
            async with asyncio.timeout(LAST_WORDS):
                await self.pushing.close()
                await asyncio.gather(*map(self._stop, self._executor.running()), return_exceptions=True)
        except TimeoutError:
            pass
        finally:
            await self._connection.close()
            await self._executor.close()

    def _stop(self, id: str) -> Awaitable[Any]:
        return self.cancel(id, None, by="shutdown", reason="its process closed its connection", wait=True)

    async def _request(self, verb: VerbMessages, *args: Any, **kwargs: Any) -> Any:
        return await self._answer(
            PendingRequest(verb, verb.encode(*args, **kwargs), is_repeatable=verb.name not in _ONCE)
        )

    async def _answer(self, asked: PendingRequest) -> Any:
        inside = CURRENT.get(None)
        if inside is not None:
            asked.work = (inside.task_id, getattr(inside, "depth", 0))
        return asked.verb.decode_answer(await self._connection.request(asked))

    # -- what the connection wants to know, and to say

    def turns(self) -> list[str]:
        return list(self._turns)

    def welcomed(self, welcome: frames.Welcome, *, same: bool) -> None:
        self._limits, self._plugins, self._empty = welcome.limits, welcome.plugins, set()
        self.has_catalog = welcome.has_catalog
        if not same:
            self._owners += 1
            self._turns.clear()
        self._executor.repeat()
        if self.pushing.hosts or self._serving:
            self._say_hosts()

    def on_frame(self, frame: frames.FromOwner) -> None:
        match frame:
            case frames.RunFrame():
                self._executor.run(frame)
            case frames.Stop():
                self._executor.stop(frame)
            case frames.EndingAcknowledged():
                self._executor.acknowledged(frame)
            case frames.Replied():
                self._executor.replied(frame)
            case frames.Limited():
                self._limits = frame.limits
            case frames.InboxFrame():
                (self._empty.add if frame.is_empty else self._empty.discard)(frame.thread)
            case _:
                pass

    # -- handing off

    async def start(self, thread: str, order: Order, options: Options) -> Task:
        return await self._hand_over("start", thread, order, options)

    async def adopt(self, thread: str, order: Order, options: Options, running_for: float) -> Task:
        return await self._hand_over("adopt", thread, order, options, running_for)

    async def _hand_over(self, verb: str, thread: str, order: Order, options: Options, *more: float) -> Task:
        """With an id of our own: what is asked again after a lost answer is known by it."""
        id = _id_of(options)
        options = self._ours(replace(options, id=id))
        is_ours = order.target is not None and options.place in (None, HERE)
        if is_ours:
            options = replace(options, executor=self.id)
        order = _for_owner(order, options)
        arguments = VERBS[verb].encode(thread, order, options, *more)
        if is_ours:
            self._hold(id, thread, order, *map(check_age, more))
        return await self._handed_over(VERBS[verb], arguments, id, thread)

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Json], options: Options) -> Task:
        id, verb = _id_of(options), VERBS["start_tool"]
        given = verb.encode(thread, name, arguments, self._ours(replace(options, id=id)))
        return await self._handed_over(verb, given, id, thread)

    def _ours(self, options: Options) -> Options:
        return options if options.parent is not None else replace(options, parent=self._parent)

    async def _handed_over(self, verb: VerbMessages, arguments: bytes, id: str, thread: str) -> Task:
        sent = 0
        while True:
            asked = PendingRequest(verb, arguments)
            asked.sent = sent
            asked.unclaimed = partial(self._unclaimed, asked, id)
            try:
                return await self._answer(asked)
            except Exception as problem:
                if not _is_own(asked, id, problem):
                    self._refused(asked, id, problem)
                    raise
            sent = asked.sent
            if found := await task_of(self._request, id, thread):
                return found  # otherwise the owner is still writing it down
            await asyncio.sleep(ON_ITS_WAY)

    def _unclaimed(self, asked: PendingRequest, id: str, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled():
            self._executor.let_go(id)
        elif (problem := answer.exception()) is not None:
            self._refused(asked, id, problem)

    def _refused(self, asked: PendingRequest, id: str, problem: BaseException) -> None:
        """Where the owner was lost, it may have been taken: the next one will ask for it then."""
        in_doubt = isinstance(problem, Disconnected) and asked.sent
        if not in_doubt and not _is_own(asked, id, problem):
            self._executor.let_go(id)

    def _hold(self, id: str, thread: str, order: Order, running_for: float | None = None) -> Held:
        if self._executor.holds(id):
            raise Duplicate.of_id(id)
        picture = Task(id=id, thread=thread, work=order.work, status=Status.QUEUED, run=Run())
        assignment = Assignment(picture, order.target, order.args, order.kwargs)
        self._engine.runner(order.work.kind).check(picture, assignment)
        return self._executor.hold(id, order, running_for)

    # -- inline or job

    async def call(self, thread: str, order: Order, options: Options, threshold: float | None) -> Answer:
        options = self._ours(options)
        if order.target is None:
            order = _for_owner(order, options)
            return from_wire_answer(await self._request(VERBS["call"], thread, order, options, threshold))
        id = _id_of(options)
        held = self._hold(id, thread, order)
        held.awaited = True
        options = replace(options, id=id, executor=self.id)
        goes_on = False
        try:
            answer = await self._called(thread, order, options, threshold, held)
            goes_on = answer.mode == "background"
        finally:
            if goes_on or held.is_running:
                self._executor.left(id)
            else:
                self._executor.let_go(id)
        return answer

    async def _called(
        self, thread: str, order: Order, options: Options, threshold: float | None, held: Held
    ) -> Answer:
        try:
            return from_wire_answer(await self._request(VERBS["call"], thread, order, options, threshold))
        except TaskFailed:
            own = None if held.performing is None or held.is_running else held.performing.result().exception
            if own is None or not is_raisable(own):
                raise
            raise own from None  # as if it had been called here, which it was
        except asyncio.CancelledError:
            if not self.is_connected:  # else the owner is told, and decides
                self._executor.stop_held(held)
            raise
        except Disconnected:
            pass
        try:
            return await self._go_on(thread, order, options, threshold, held)
        except asyncio.CancelledError:
            self._executor.stop_held(held)
            raise

    async def _go_on(
        self, thread: str, order: Order, options: Options, threshold: float | None, held: Held
    ) -> Answer:
        """The owner was lost while we waited. Work that has begun here is never begun again: it is a task
        already, or becomes one, or we wait for it as we are.
        """
        assert options.id is not None
        try:
            task = await as_task(self._request, options.id, thread)
            if task is None and held.performing is None:
                return await self._called(thread, order, options, threshold, held)
            if task is None and held.is_running:
                arguments = VERBS["adopt"].encode(thread, order, options, self._executor.age(held))
                task = await self._handed_over(VERBS["adopt"], arguments, options.id, thread)
            if task is not None:
                return Answer("background", task=task)
        except (Disconnected, Refused):
            if held.performing is None:
                raise
        assert held.performing is not None
        return inline_answer(await self._executor.outlast(held), held)

    # -- turns

    async def open_turn(self, thread: str, *, lease: float | None, limit: int) -> OpenTurn:
        verb = VERBS["open_turn"]
        asked = PendingRequest(verb, verb.encode(thread, lease=lease, limit=limit))
        asked.unclaimed = self._give_back
        opened: OpenTurn = await self._answer(asked)
        self._turns.add(opened.id)
        return opened

    def _give_back(self, answer: asyncio.Future[Any]) -> None:
        """Opened for a caller that is gone: a thread is busy while it has a turn."""
        if not answer.cancelled() and answer.exception() is None:
            opened: OpenTurn = VERBS["open_turn"].decode_answer(answer.result())
            closing = self._beside.start(self.close_turn(opened.id, failed=False))
            closing.add_done_callback(_consume_error)  # where it fails, the next connection gives it back

    def check_agent(self, name: str) -> None:
        return  # its owner says it when it is started

    def has_empty_inbox(self, thread: str) -> bool:
        return self.is_connected and thread in self._empty  # an older owner says nothing

    async def close_turn(self, turn: str, *, failed: bool, thread: str | None = None) -> None:
        verb = VERBS["close_turn"]
        asked = PendingRequest(verb, verb.encode(check_id(turn, "turn"), failed=failed, thread=thread))
        asked.unclaimed = _consume_error  # it is done, also where nobody waits for it
        try:
            await self._answer(asked)
        finally:
            self._turns.discard(turn)  # the owner gives back what a client does not name any more

    async def wait_wake(self, thread: str, seen: int) -> int:
        """Every owner counts anew: what was seen of a former one is nothing to this one."""
        verb, owner = VERBS["wait_wake"], self._owners
        known = seen & ((1 << _OWNER) - 1) if seen >= 0 and seen >> _OWNER == owner else -1
        asked = PendingRequest(verb, verb.encode(thread, known))
        asked.fresh = verb.encode(thread, -1)
        return await self._answer(asked) | self._owners << _OWNER

    def attach(self, thread: str, host: Host) -> None:
        self.pushing.attach(check_id(thread, "thread"), host)
        self._say_hosts()

    def detach(self, thread: str) -> None:
        self.pushing.detach(thread)
        self._say_hosts()

    def _say_hosts(self) -> None:
        hosts = self.pushing.hosts.items()
        told = [(thread, host.delivery.grade, type(host).__name__) for thread, host in hosts]
        self._connection.say(frames.Hosting([*told, *self._serving]))

    def serves(self, threads: Sequence[str], grade: str, kind: str) -> None:
        """The conversations that are told by whoever uses us: the owner knows of them, for those who ask.
        Conversations that are not named again are forgotten."""
        self._serving = [(thread, grade, kind) for thread in threads]
        self._say_hosts()

    # -- limits

    def limits(self) -> Limits:
        return self._limits

    def plugin_defaults(self) -> PluginDefaults:
        return self._plugins

    def now(self) -> float:
        return self._clock.now()


def _id_of(options: Options) -> str:
    return task_id(os.urandom(ENTROPY)) if options.id is None else check_id(options.id, "id")


def _consume_error(done: asyncio.Future[Any]) -> None:
    """So that nobody complains of an error that nobody waits for."""
    _ = done.cancelled() or done.exception()


def _is_own(asked: PendingRequest, id: str, problem: BaseException) -> bool:
    """Asked again, it is there already: only the first answer was lost."""
    return asked.sent > 1 and isinstance(problem, Duplicate) and problem.existing == id


def _for_owner(order: Order, options: Options) -> Order:
    """A command gets the environment of the process that hands it off, wherever it is started. One that
    may be run again, or starts later, does not: values of variables are never stored."""
    is_delayed = options.delay is not None or options.at is not None
    if order.work.kind != "shell" or options.retry or is_delayed or options.place not in (None, HERE):
        return order
    own = {name: value for name, value in os.environ.items() if is_unicode(name) and is_unicode(value)}
    return order.with_environment(own)


def _plain(verb: VerbMessages) -> Callable[..., Awaitable[Any]]:
    async def method(self: Client, *args: Any, **kwargs: Any) -> Any:
        return await self._request(verb, *args, **kwargs)  # pyright: ignore[reportPrivateUsage]  its own method

    method.__name__ = verb.name
    return method


for _name, _made in VERBS.items():
    if _name not in vars(Client):
        setattr(Client, _name, _plain(_made))
