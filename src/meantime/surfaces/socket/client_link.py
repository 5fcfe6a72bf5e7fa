"""One connected process: its questions, its executor, its turns."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import msgspec

from meantime.kernel.decode_errors import Mismatch, mismatch_raises
from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.ids import ID
from meantime.link import wire_errors
from meantime.link.frame_connection import MAX_FRAME, Wire
from meantime.link.frames import (
    PROTOCOL,
    Answered,
    Bye,
    Ended,
    Forget,
    Frame,
    FromClient,
    Hello,
    Hosting,
    Ping,
    ProblemFrame,
    QuestionAsked,
    Refuse,
    Request,
    Saying,
    UnknownFrame,
    Welcome,
    Withdraws,
)
from meantime.link.verb_messages import CATALOG_VERBS, VERBS, VerbMessages, encode, to_wire_answer
from meantime.ports.clock import Alarm
from meantime.ports.owner import Catalog
from meantime.ports.runner import CURRENT, Context
from meantime.ports.tasks import OpenTurn, Tasks
from meantime.system.platform import peer_credentials

from .executor_reports import ExecutorReports
from .executor_table import ConnectedExecutor, ExecutorTable

MAX_ASKED = 10_000  # questions of one process at once
MAX_HOSTS = 1_000  # of one process, that are known by name
HELLO_WITHIN = 10.0  # seconds
OLDER = "The daemon is older than this program: meantime down --keep && meantime up"
decode = msgspec.json.Decoder(FromClient).decode


class LinkedOwner(NamedTuple):
    """The owner, as all of its connected processes share it. `instance` tells a client whether it speaks
    to the same owner as before; `unread` counts the notices that a thread is to be told."""

    tasks: Tasks
    catalog: Catalog
    executors: ExecutorTable
    reports: ExecutorReports
    unread: Callable[[str], int]
    instance: str
    version: str


class ClientLink:
    def __init__(self, owner: LinkedOwner, full: str = "") -> None:
        """`full`: why nobody can be let in."""
        self._owner = owner
        self._executors = owner.executors
        self._reports = owner.reports
        self._full = full
        self.wire: Wire[Any] = Wire(decode, self._received, self._lost, self._made)
        self.executor: ConnectedExecutor | None = None
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._outlasting: set[int] = set()  # calls of its own functions: they outlast a connection
        self._wants_inbox = False
        self._paused = False
        self._heard = 0.0
        self._alarm: Alarm | None = None
        self.closed = asyncio.get_running_loop().create_future()

    # -- life

    def _made(self) -> None:
        self._pid, uid = peer_credentials(self.wire.peer("socket"))
        if uid not in (None, os.geteuid()):  # None: this system does not say; the file's mode decides
            self.wire.abort()
            return
        if self._full:
            self._refuse(self._full, "Close one first.", code="too_many")
            return
        self._alarm = self._executors.clock.call_later(HELLO_WITHIN, self._late)

    def _late(self) -> None:
        if self.executor is None:
            self.wire.abort()

    def _hello(self, hello: Hello) -> None:
        if hello.protocol != PROTOCOL:
            self._refuse(
                f"This owner speaks version {PROTOCOL} of the link, and meantime {self._owner.version}; "
                f"the client speaks {hello.protocol}, and meantime {hello.version}.",
                "Install the same version, then: meantime down && meantime up",
                code="other_version",
            )
            return
        if self.executor is not None or not ID.match(hello.executor):
            self.wire.abort()
            return
        self._wants_inbox = hello.wants_inbox
        back = self._reports.give_back
        self.executor = self._executors.join(hello.executor, self.wire, self._pid, hello.turns, back)
        lease = self._executors.lease
        limits, plugins = self._owner.tasks.limits(), self._owner.tasks.plugin_defaults()
        about = (self._owner.version, self._owner.instance, lease, limits, plugins)
        self.wire.send(Welcome(*about, has_catalog=True))
        self._executors.welcome(self.executor)
        self._check_lease()

    def _refuse(self, message: str, hint: str, *, code: str) -> None:
        error = wire_errors.to_wire(Refused(message, code=code, hint=hint))
        self.wire.send(Refuse(error))
        self.wire.close()

    def _check_lease(self) -> None:
        """A process that is stopped keeps its connection open, and runs nothing."""
        clock, lease = self._executors.clock, self._executors.lease
        if self._heard + lease <= clock.monotonic():
            self.wire.abort()
            return
        self._alarm = clock.call_later(lease / 3, self._check_lease)

    def _lost(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._drop_questions()
        self._executors.inboxes.leave(self.wire)
        if self.executor is not None:
            self._executors.leave(self.executor, self.wire)
        if not self.closed.done():
            self.closed.set_result(None)

    def _drop_questions(self) -> None:
        for id, asked in list(self._asked.items()):
            if id not in self._outlasting:
                asked.cancel()

    def pause(self) -> None:
        self._paused = True
        self._drop_questions()

    def close(self) -> None:
        self.wire.send(Bye())
        self.wire.close()

    # -- what is said

    def _received(self, frame: FromClient) -> None:
        self._heard = self._executors.clock.monotonic()
        if isinstance(frame, Hello):
            self._hello(frame)
            return
        if self.executor is None:
            self.wire.abort()
            return
        match frame:
            case Request():
                self._handle_request(frame)
            case Forget():
                if asked := self._asked.get(frame.id):
                    asked.cancel()
            case Ended():
                self._reports.ended(self.executor, frame)
            case Saying():
                self._reports.saying(self.executor, frame)
            case QuestionAsked():
                self._reports.question_asked(self.executor, frame)
            case Withdraws():
                self._reports.withdraws(self.executor, frame)
            case Hosting():
                self.executor.hosts = frame.hosts[:MAX_HOSTS]
            case UnknownFrame():
                self._reports.unknown(self.executor, frame)
            case Bye():
                self._executors.gone(self.executor, failed=False)
            case Ping():
                self.wire.send(Ping())

    def _handle_request(self, ask: Request) -> None:
        if self._paused:
            return
        verb = VERBS.get(ask.verb)
        if verb is None or len(self._asked) >= MAX_ASKED:
            text = f"There is no verb {ask.verb!r}." if verb is None else "Too many questions at once."
            refused = Refused(text, hint=OLDER if verb is None else "")
            self.wire.send(ProblemFrame(ask.id, wire_errors.to_wire(refused)))
            return
        answering = asyncio.get_running_loop().create_task(self._answer(ask, verb))
        self._asked[ask.id] = answering
        answering.add_done_callback(lambda _: self._answered(ask.id))

    def _answered(self, id: int) -> None:
        self._asked.pop(id, None)
        self._outlasting.discard(id)

    async def _answer(self, ask: Request, verb: VerbMessages) -> None:
        if ask.work is not None:
            CURRENT.set(cast("Context", SimpleNamespace(task_id=ask.work[0], depth=ask.work[1], children=-1)))
        try:
            value = encode(await self._perform(ask, verb))
            if len(value) > MAX_FRAME - 1_000:
                raise Refused(
                    f"The answer has {len(value)} bytes; at most {MAX_FRAME} go over the socket.",
                    code="too_big",
                    hint="Read it in parts, or from its file.",
                )
        except Exception as problem:
            self._say(ProblemFrame(ask.id, wire_errors.to_wire(problem)))
            return
        self._say(Answered(ask.id, msgspec.Raw(value)))

    def _say(self, answer: Frame) -> None:
        if not self._paused:
            self.wire.send(answer)

    async def _perform(self, ask: Request, verb: VerbMessages) -> Any:

        def error(mismatch: Mismatch) -> InvalidInput:
            return InvalidInput(f"{verb.name}: {mismatch.text}.", hint=OLDER if mismatch.is_unknown else "")

        with mismatch_raises(error):
            given = verb.decode(ask.arguments)
        if verb.name == "call" and given["options"].executor is not None:
            self._outlasting.add(ask.id)
        served = self._owner.catalog if verb.name in CATALOG_VERBS else self._owner.tasks
        answer = await getattr(served, verb.name)(**given)
        return self._noted(verb.name, given, answer)

    def _noted(self, verb: str, given: dict[str, Any], answer: Any) -> Any:
        """The owner's facts about its client: which turns it holds, and where it need not open one."""
        assert self.executor is not None
        match verb:
            case "open_turn":
                opened: OpenTurn = answer
                if not self.wire.is_open:  # nobody will ever know this turn
                    self._reports.give_back(opened.id, failed=False)
                    return answer
                self.executor.turns.add(opened.id)
                if self._wants_inbox and not opened.notices and not self._owner.unread(given["thread"]):
                    self._executors.inboxes.tell_empty(given["thread"], self.wire)
            case "close_turn":
                self.executor.turns.discard(given["turn"])
            case "call":
                return to_wire_answer(answer)
            case _:
                pass
        return answer
