"""One session of a host with its server: which message goes where, with which id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Raw, Struct

from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.tasks import Tasks
from meantime.ports.wrapped_server import WrapOrder, WrappedServers
from meantime.surfaces.caller.caller_thread import thread_of_session

from .background_calls import BackgroundCalls
from .held_server import INITIALIZED, HeldServer
from .open_requests import OpenRequest, OpenToolCall, session_of_call
from .raw_messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NOTHING,
    PARSE_ERROR,
    UNREADABLE,
    RawMessage,
    answer,
    encoded,
    key,
    notification,
    parts,
    raw,
    read,
    refusal,
    request,
    text,
    value,
)
from .repeated_requests import METHODS as REPEATED
from .repeated_requests import RepeatedRequest, RepeatedRequests
from .tool_answers import listed

LOG = logging.getLogger("meantime.wrap")
MOST_OPEN = 10_000  # requests of a host without an answer
LAST_WORDS = 2.0  # seconds for what is still asked when the host closes its side
UNKNOWN = "Whether the tool did its work is not known."
CANCELLED, PROGRESS = "notifications/cancelled", "notifications/progress"


class WrapHello(Struct, frozen=True, kw_only=True):
    """The first line of a wrap."""

    version: str
    order: WrapOrder
    thread: str
    said: bool = False  # somebody has said which thread; otherwise a call may name its own
    threshold: float | None = None  # seconds, in place of the configured one
    # With a former daemon: the params of the host's handshake, and what must be asked again after it.
    initialize: Raw = NOTHING
    repeats: tuple[RepeatedRequest, ...] = ()

    def __repr__(self) -> str:
        return f"WrapHello({self.order!r}, {self.thread!r})"


class WrapParts(NamedTuple):
    """Parts that all sessions of an owner share. `unread` counts the notices of a thread; `has_hooks` says
    whether hooks tell it."""

    tasks: Tasks
    servers: WrappedServers
    unread: Callable[[str], int]
    has_hooks: Callable[[str], bool]


class HostSession:
    """Implements ports.wrapped_server.ServerEnd. `send` passes a message on to the host, with the id of the
    request that it answers, or None."""

    def __init__(
        self, shared: WrapParts, hello: WrapHello, send: Callable[[bytes, Raw | None], None]
    ) -> None:
        self._shared = shared
        self._send = send
        self.thread = hello.thread
        self._said = hello.said
        self._threshold = hello.threshold
        self._name = ""  # by the server itself
        self._open: dict[int, OpenRequest] = {}  # by their id at the server
        self._count = 0
        self._asked: dict[int, Raw] = {}  # the server's requests, by their id at the host
        repeats = RepeatedRequests(hello.repeats)
        self.server = HeldServer(shared.servers, hello.order, self, hello.initialize, repeats, self._our_own)
        self.host_left = False
        self._beside = BackgroundTasks()
        self.closed = asyncio.get_running_loop().create_future()
        self._calls = BackgroundCalls(self, shared)

    # -- the server

    @property
    def server_name(self) -> str:
        return self.server.name or self._name or "mcp"

    def threshold(self, tool: str) -> float | None:
        if self._threshold is not None:
            return None if self._threshold < 0 else self._threshold
        return self._shared.servers.threshold(self.server_name, tool)

    def _our_own(self, method: str) -> int:
        """The number of a request that no host has made."""
        return self._new(NOTHING, method).number

    # -- from the host

    def on_host_line(self, line: bytes) -> None:
        try:
            messages = read(line)
        except UNREADABLE as problem:
            self._send(refusal(b"null", PARSE_ERROR, f"This line is not JSON-RPC: {problem}"), None)
            return
        for message in messages:
            if not message.method:
                self._answered_by_host(message)
            elif message.has_id:
                self._requested_by_host(message)
            else:
                self._notified_by_host(message)

    def _requested_by_host(self, message: RawMessage) -> None:
        if len(self._open) >= MOST_OPEN:
            self.refuse(message.id, f"{MOST_OPEN} requests are open.")
            return
        if key(message.id) is None:
            self._send(refusal(b"null", INVALID_REQUEST, "An id is a number or a text."), None)
            return
        params = message.params
        if message.method == "tools/call":
            call = self._new_call(message.id, params)
            opened: OpenRequest = call
            params = call.read(params)
            self._calls.begin(call, self.threshold(call.tool))
        else:
            opened = self._new(message.id, message.method)
            params = opened.with_token(params)
            if message.method in REPEATED:
                opened.lasting = message.params
        if message.method == "initialize":
            self.server.initialize = params
        if not self.server.send(request(b"%d" % opened.number, message.method, params), message.method):
            self._open.pop(opened.number, None)
            if isinstance(opened, OpenToolCall):
                self._calls.drop(opened)
            self.refuse(message.id, f"The server is not there. {self.server.why}")

    def _new(self, id: Raw, method: str) -> OpenRequest:
        self._count += 1
        opened = self._open[self._count] = OpenRequest(self._count, id, method)
        return opened

    def _new_call(self, id: Raw, params: Raw) -> OpenToolCall:
        named = "" if self._said else session_of_call(params)
        self._count += 1
        call = OpenToolCall(self._count, id, thread_of_session(named) if named else self.thread)
        self._open[self._count] = call
        return call

    def _notified_by_host(self, message: RawMessage) -> None:
        if message.method == CANCELLED:
            self._cancelled_by_host(parts(message.params))
            return
        if message.method == INITIALIZED:
            self.server.is_initialized = True
        if self.server.is_there:
            self.server.send(notification(message.method, message.params))

    def _cancelled_by_host(self, params: dict[str, Raw]) -> None:
        wanted = key(params.get("requestId", NOTHING))
        waited = (one for one in self._open.values() if one.host_id and not one.is_task)
        opened = next((one for one in waited if key(one.host_id) == wanted), None)
        if opened is None or (isinstance(opened, OpenToolCall) and not self._calls.leave(opened)):
            return
        self.cancel_at_server(opened, params)

    def cancel_at_server(self, opened: OpenRequest, params: dict[str, Raw] | None = None) -> None:
        self._open.pop(opened.number, None)
        if self.server.is_there:
            told = {**(params or {}), "requestId": raw(opened.number)}
            self.server.send(notification(CANCELLED, encoded(told)))

    def _answered_by_host(self, message: RawMessage) -> None:
        number = key(message.id)
        asked = self._asked.pop(number, None) if isinstance(number, int) else None
        if asked is not None and self.server.is_there:
            self.server.send(answer(asked, message.result, message.error))

    def on_thread(self, thread: str) -> None:
        """The wrap has found out which conversation this is."""
        if not self._said and thread:
            self.thread = thread

    # -- from the server

    def on_line(self, line: bytes) -> bool:
        try:
            messages = read(line)
        except UNREADABLE:
            return False
        for message in messages:
            if not message.method:
                self._replied(message)
            elif message.has_id:
                self._requested_by_server(message)
            else:
                self._notified_by_server(message)
        return True

    def _replied(self, message: RawMessage) -> None:
        number = key(message.id) if message.id else None
        opened = self._open.pop(number, None) if isinstance(number, int) else None
        if opened is None:
            return  # to nobody, or a second time
        if opened.host_id:
            self.server.answered()
        if opened.lasting and message.result:
            self.server.repeats.note(opened.method, opened.lasting)
        if isinstance(opened, OpenToolCall):
            self._calls.replied(opened, message)
            return
        if opened.method == "initialize":
            self._welcomed(message, ours=not opened.host_id)
        if not opened.host_id:
            return
        result = message.result
        if opened.method == "tools/list" and result:
            result = listed(result, self.threshold)
        self.reply(opened.host_id, result, message.error)

    def _welcomed(self, message: RawMessage, *, ours: bool) -> None:
        found = parts(message.result)
        self._name = self._name or _plain(text(parts(found.get("serverInfo", NOTHING)).get("name")))
        if not ours:
            return
        if message.error:
            said = text(parts(message.error).get("message"))
            self._fail(f"The server was started again and refused the handshake: {said}")
        else:
            self.server.greeted()

    def on_unreadable(self, answers: int | str | None, why: str) -> None:
        if answers in self._open:
            error = raw({"code": INTERNAL_ERROR, "message": f"The server's answer cannot be read. {why}"})
            self._replied(RawMessage(id=raw(answers), error=error))

    def on_unanswered(self, id: int | str | None, why: str) -> None:
        opened = self._open.pop(id, None) if isinstance(id, int) else None
        if opened is not None:
            self._give_up(opened, why)

    def on_gone(self, why: str) -> None:
        LOG.info("The server %s is gone. %s", self.server_name, why)
        self.server.ended(why)
        self._fail(why)

    def _fail(self, why: str) -> None:
        """Nothing that is open will be answered."""
        opened, self._open = list(self._open.values()), {}
        for one in opened:
            self._give_up(one, why)
        asked, self._asked = list(self._asked), {}
        for number in asked:
            self._send(notification(CANCELLED, raw({"requestId": number})), None)
        self.look_around()

    def _give_up(self, opened: OpenRequest, why: str) -> None:
        if isinstance(opened, OpenToolCall):
            self._calls.lost(opened, f"The server was lost while the tool ran. {UNKNOWN} {why}")
        elif opened.host_id:
            self.refuse(opened.host_id, f"The server was lost before it answered. {why}")

    def _requested_by_server(self, message: RawMessage) -> None:
        if message.method == "elicitation/create" and self._calls.asks(message):
            return
        if self.host_left or len(self._asked) >= MOST_OPEN:
            self._refuse_server(message)
            return
        self._count += 1
        self._asked[self._count] = message.id
        self._send(request(b"%d" % self._count, message.method, message.params), None)

    def _refuse_server(self, message: RawMessage) -> None:
        if message.method == "ping":
            self.answer_server(message.id, raw({}))
        else:
            self.server.send(refusal(message.id, INTERNAL_ERROR, "The client is not there any more."))

    def answer_server(self, id: Raw, result: Raw) -> None:
        if self.server.is_there:
            self.server.send(answer(id, result))

    def _notified_by_server(self, message: RawMessage) -> None:
        params = message.params
        if message.method == PROGRESS:
            self._progressed(parts(params))
            return
        if message.method == CANCELLED:
            wanted = parts(params)
            id = bytes(wanted.get("requestId", b""))
            number = next((one for one, asked in self._asked.items() if bytes(asked) == id), None)
            if number is None:
                return
            del self._asked[number]
            params = encoded({**wanted, "requestId": raw(number)})
        if not self.host_left:
            self._send(notification(message.method, params), None)

    def _progressed(self, params: dict[str, Raw]) -> None:
        number = key(params.get("progressToken", NOTHING))
        opened = self._open.get(number) if isinstance(number, int) else None
        if opened is None:
            return
        if isinstance(opened, OpenToolCall):
            said: Any = {name: value(params.get(name)) for name in ("progress", "total", "message")}
            opened.progressed(said)
            if opened.is_task:
                return
        if opened.token is not None and not self.host_left:
            self._send(notification(PROGRESS, encoded({**params, "progressToken": opened.token})), None)

    # -- to the host

    def reply(self, id: Raw, result: Raw, error: Raw = NOTHING) -> None:
        if not self.host_left:
            self._send(answer(id, result, error), id)

    def refuse(self, id: Raw, said: str) -> None:
        if not self.host_left:
            self._send(refusal(id, INTERNAL_ERROR, said), id)

    # -- the end

    async def on_host_end(self) -> None:
        """The host has closed its side: what it still waits for has a moment."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LAST_WORDS
        while self._is_waited_for() and loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def _is_waited_for(self) -> bool:
        return any(one.host_id and not one.is_task for one in self._open.values())

    @property
    def has_open_call(self) -> bool:
        """Whether the host waits for a call of a tool."""
        return any(isinstance(one, OpenToolCall) and not one.is_task for one in self._open.values())

    def on_host_gone(self) -> None:
        """Tool calls that run become tasks; nobody needs the rest."""
        if self.host_left:
            return
        self.host_left = True
        self.server.stop_reviving()
        self.server.pause(False)
        for one in list(self._open.values()):
            if isinstance(one, OpenToolCall):
                self._calls.record(one)
            elif one.host_id:
                self.cancel_at_server(one)
        asked, self._asked = list(self._asked.values()), {}
        for id in asked:
            self.server.send(refusal(id, INTERNAL_ERROR, "The client is not there any more."))
        self.look_around()

    def look_around(self) -> None:
        """Without a host and without a call, the server is not needed any more."""
        if self.host_left and not self._calls.is_busy and not self.closed.done():
            self.closed.set_result(None)
            self._beside.start(self._stop_server())

    async def _stop_server(self) -> None:
        await self._calls.close()
        await self.server.close()

    async def close(self) -> None:
        """The owner closes: the server ends with it."""
        self.host_left = True
        if not self.closed.done():
            self.closed.set_result(None)
            self._beside.start(self._stop_server())
        await self._beside.wait()


def _plain(name: str) -> str:
    """A server's own name, as part of a task's name."""
    kept = "".join(one if one.isalnum() or one in "._-" else "-" for one in name[:64])
    return kept.strip("-")
