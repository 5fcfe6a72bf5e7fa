"""The connection to the owner: questions and answers, and a new connection when one is lost.

Idempotent requests are repeated. All others fail with Disconnected, because nobody knows whether they were
performed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from meantime.kernel.errors import Closed, Disconnected, InvalidInput, MeantimeError, Refused
from meantime.link import wire_errors
from meantime.link.frame_connection import MAX_FRAME, Wire
from meantime.link.frames import (
    PROTOCOL,
    Answered,
    Bye,
    Forget,
    Frame,
    FromOwner,
    Hello,
    Ping,
    ProblemFrame,
    Refuse,
    Request,
    Welcome,
)
from meantime.link.unix_address import address
from meantime.link.verb_messages import VerbMessages
from meantime.ports.event_loop import check_loop
from meantime.system.platform import peer_credentials

decode = msgspec.json.Decoder(FromOwner).decode
logger = logging.getLogger("meantime")
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # seconds between tries to connect
WELCOME_WITHIN = 10.0
LEAST_WELCOME = 1.0  # seconds that an owner which is there has to answer, even where nobody waits for one
# Those who only listen, and the rest of a turn, do not start an owner that was stopped on purpose.
QUIET = frozenset(
    {"wait_wake", "wait_output", "wait_events", "boundary", "ack", "renew", "close_turn"}
    | {"agents", "registered_tools"}
)
PINGS = 3  # in one lease; so many without an answer, and the owner counts as lost


class FrameListener(Protocol):
    """A part that sends messages of its own on the connection."""

    def turns(self) -> list[str]: ...

    def welcomed(self, welcome: Welcome, *, same: bool) -> None: ...

    def on_frame(self, frame: FromOwner) -> None: ...


class PendingRequest:
    """A question that waits for its answer."""

    __slots__ = ("answer", "arguments", "fresh", "id", "is_repeatable", "sent", "unclaimed", "verb", "work")

    def __init__(self, verb: VerbMessages, arguments: bytes, *, is_repeatable: bool = True) -> None:
        self.id = 0
        self.verb = verb
        self.arguments = arguments
        self.is_repeatable = is_repeatable
        self.fresh = arguments  # what another owner is asked instead
        self.work: tuple[str, int] | None = None  # the task that asks, and its depth
        self.sent = 0  # times
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.unclaimed: Callable[[asyncio.Future[Any]], object] | None = None  # takes what nobody waits for


class OwnerConnection:
    def __init__(
        self,
        path: Path,
        executor: str,
        listener: FrameListener,
        *,
        version: str,
        patience: float,
        waits: bool,
        summon: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._path = path
        self._executor = executor
        self._listener = listener
        self._version = version
        self._patience = patience
        self._waits = waits  # for the first connection, too
        self._summon = summon  # starts the owner where it is not running
        self._wire: Wire[Any] | None = None  # while we are welcome
        self._instance = ""
        self._asked: dict[int, PendingRequest] = {}
        self._count = 0
        self._seeking: asyncio.Task[None] | None = None
        self._giving_up: asyncio.TimerHandle | None = None
        self._pinging: asyncio.TimerHandle | None = None
        self._wanted = asyncio.Event()  # somebody needs the owner, though it said goodbye
        self._closed = False
        self._unanswered = 0  # pings
        self._loop: asyncio.AbstractEventLoop | None = None  # once it is opened

    # -- asking

    @property
    def is_up(self) -> bool:
        return self._wire is not None

    async def request(self, asked: PendingRequest) -> Any:
        """The answer, as JSON."""
        if self._closed:
            raise Closed
        check_loop(self._loop)
        if len(asked.arguments) > MAX_FRAME - 1_000:
            raise InvalidInput(
                f"{asked.verb.name} has {len(asked.arguments)} bytes; {MAX_FRAME} go over the socket.",
                code="too_big",
                hint="Put what is big into a file, and give its name.",
            )
        self._count += 1
        asked.id = self._count
        self._asked[asked.id] = asked
        if self._wire is not None:
            self._send(asked)
        else:
            self._wait_a_while()
        if asked.verb.name not in QUIET:
            self._wanted.set()
        asked.answer.add_done_callback(lambda _: self._asked.pop(asked.id, None))
        if asked.unclaimed is None:
            return await self._claimed(asked)
        try:
            return await asyncio.shield(asked.answer)
        except asyncio.CancelledError:
            # The owner does it nevertheless: what comes of it is somebody's business.
            asked.answer.add_done_callback(asked.unclaimed)
            if not asked.sent:
                asked.answer.cancel()
            raise

    async def _claimed(self, asked: PendingRequest) -> Any:
        try:
            return await asked.answer
        except asyncio.CancelledError:
            self.say(Forget(asked.id))
            raise

    def _send(self, asked: PendingRequest) -> None:
        asked.sent += 1
        self.say(Request(asked.id, asked.verb.name, msgspec.Raw(asked.arguments), asked.work))

    def say(self, frame: Frame) -> None:
        """Dropped where there is no connection: whoever said it says it again when there is one."""
        if self._wire is not None:
            self._wire.send(frame)

    # -- connecting

    async def open(self) -> None:
        """Where the owner is not there, it is started, or it is waited for: for `patience` seconds if it is
        somebody else who starts it."""
        self._loop = asyncio.get_running_loop()
        ends = self._loop.time() + (self._patience if self._waits else 0.0)
        tries = 0
        while True:
            try:
                return await self._connect(max(LEAST_WELCOME, ends - self._loop.time()))
            except (OSError, TimeoutError) as problem:
                if self._loop.time() >= ends and (self._summon is None or tries):
                    raise self._nobody(problem) from problem
            if self._summon is not None:
                await self._summon()
            else:
                left = ends - self._loop.time()
                await asyncio.sleep(max(0.0, min(left, PAUSES[min(tries, len(PAUSES) - 1)])))
            tries += 1

    def _nobody(self, problem: Exception) -> Disconnected:
        why = getattr(problem, "strerror", None) or str(problem) or "it does not answer"
        waited = f" within {self._patience:g} s" if self._waits and self._patience else ""
        return Disconnected(
            f"Nobody answers at {self._path}{waited}: {why}.",
            hint="Start the owner of the ledger first, or wait longer with patience=…; "
            "the daemon is started with: meantime up",
        )

    async def _connect(self, within: float = WELCOME_WITHIN) -> None:
        """One try. Returns when we are welcome."""
        loop = asyncio.get_running_loop()
        welcome: asyncio.Future[Welcome] = loop.create_future()

        def received(frame: FromOwner) -> None:
            if welcome.done():
                self._received(wire, frame)
            elif isinstance(frame, Welcome):
                welcome.set_result(frame)
                self._welcomed(wire, frame)
            elif isinstance(frame, Refuse):
                welcome.set_exception(wire_errors.from_wire(frame.error))

        def lost() -> None:
            if not welcome.done():
                welcome.set_exception(ConnectionResetError("The owner closed the connection."))
                welcome.exception()  # whoever waited may be cancelled
            self._lost(wire)

        wire: Wire[Any] = Wire(decode, received, lost)
        with address(self._path) as place:
            await loop.create_unix_connection(lambda: wire, place)
        _, uid = peer_credentials(wire.peer("socket"))
        if uid not in (
            None,
            os.geteuid(),
        ):  # it would get our commands, with our environment
            wire.abort()
            raise Refused(
                f"{self._path} is served by user {uid}, not by you.",
                code="other_user",
                hint="Name a socket of your own, in a folder that is yours alone.",
            )
        turns = self._listener.turns()
        wire.send(Hello(PROTOCOL, self._version, self._executor, turns, wants_inbox=True))
        try:
            await asyncio.wait_for(welcome, min(within, WELCOME_WITHIN))
        except BaseException:
            wire.abort()
            raise

    def _welcomed(self, wire: Wire[Any], welcome: Welcome) -> None:
        self._wire, self._unanswered = wire, 0
        self._wanted.set()  # should it crash
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None
        same = self._instance in ("", welcome.instance)
        self._instance = welcome.instance
        self._ping(wire, welcome.lease / PINGS)
        self._listener.welcomed(welcome, same=same)
        for asked in list(self._asked.values()):
            asked.arguments = asked.arguments if same else asked.fresh
            self._send(asked)

    def _ping(self, wire: Wire[Any], every: float) -> None:
        """An owner that is stopped keeps the connection open, and answers nothing."""
        if self._unanswered >= PINGS:
            wire.abort()
            return
        self._unanswered += 1
        self.say(Ping())
        self._pinging = asyncio.get_running_loop().call_later(every, self._ping, wire, every)

    def _received(self, wire: Wire[Any], frame: FromOwner) -> None:
        if wire is not self._wire:
            return
        self._unanswered = 0
        match frame:
            case Answered():
                asked = self._asked.get(frame.id)
                if asked is not None and not asked.answer.done():
                    asked.answer.set_result(frame.value)
            case ProblemFrame():
                asked = self._asked.get(frame.id)
                if asked is not None and not asked.answer.done():
                    asked.answer.set_exception(wire_errors.from_wire(frame.error))
            case Bye():
                self._wanted.clear()
            case Ping():
                pass
            case _:
                self._listener.on_frame(frame)

    # -- losing it

    def _lost(self, wire: Wire[Any]) -> None:
        if wire is not self._wire:
            return
        self._wire = None
        if self._pinging is not None:
            self._pinging.cancel()
        if self._closed:
            return
        for asked in list(self._asked.values()):
            if not asked.is_repeatable and asked.sent and not asked.answer.done():
                asked.answer.set_exception(_lost_in_mid_call(asked.verb.name))
        if self._asked:
            self._wait_a_while()
        self._seeking = asyncio.get_running_loop().create_task(self._seek())

    async def _seek(self) -> None:
        """For as long as we are open: functions that run here have endings to tell."""
        tries = 0
        while not self._closed:
            try:
                await self._connect()
                return
            except (OSError, TimeoutError, MeantimeError) as problem:
                logger.debug("The owner at %s cannot be reached: %s", self._path, problem)
                if isinstance(problem, MeantimeError) and problem.code == "other_version":
                    self._fail(problem)
            if self._summon is not None and self._wanted.is_set():
                with contextlib.suppress(Exception):
                    await self._summon()
            await self._pause(PAUSES[min(tries, len(PAUSES) - 1)])
            tries += 1

    async def _pause(self, seconds: float) -> None:
        """Not longer than until somebody needs the owner."""
        if self._wanted.is_set():
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wanted.wait(), seconds)

    def _wait_a_while(self) -> None:
        if self._giving_up is None:
            self._giving_up = asyncio.get_running_loop().call_later(self._patience, self._give_up)

    def _give_up(self) -> None:
        self._giving_up = None
        self._fail(
            Disconnected(
                f"The owner of the ledger did not answer at {self._path} for {self._patience:g} s.",
                hint="Start it with: meantime up",
            )
        )

    def _fail(self, problem: Exception) -> None:
        for asked in list(self._asked.values()):
            if not asked.answer.done():
                asked.answer.set_exception(problem)

    async def close(self) -> None:
        if not self._closed:
            check_loop(self._loop)
        self._closed = True
        for timer in (self._giving_up, self._pinging):
            if timer is not None:
                timer.cancel()
        if self._seeking is not None:
            self._seeking.cancel()
            await asyncio.gather(self._seeking, return_exceptions=True)
        if self._wire is not None:
            self._wire.send(Bye())
            self._wire.close()
        self._fail(Closed())


def _lost_in_mid_call(verb: str) -> Disconnected:
    return Disconnected(
        f"The connection was lost before {verb} was answered; it may have been done, or not.",
        code="in_doubt",
        hint="Look at the task before you ask again.",
    )
