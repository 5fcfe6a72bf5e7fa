"""One session of a host with its server: which message goes where, with which id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from msgspec import Raw

from meantime.execution.elicited_answers import ELICIT
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.wrapped_server import LoginChallenge
from meantime.surfaces.mcp.notice_delivery import NoticeDelivery

from .background_calls import BackgroundCalls
from .held_server import HeldServer
from .host_conversations import HostConversations
from .host_notifications import for_host
from .open_requests import OpenRequest, OpenToolCall, OwnRequest
from .raw_messages import (
    CANCELLED,
    INITIALIZED,
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
)
from .repeated_requests import METHODS as REPEATED
from .repeated_requests import RepeatedRequests
from .server_requests import ServerRequests
from .shown_results import shown_result
from .task_offers import INITIALIZE, Introduction, declared_by
from .wrap_hello import WrapHello, WrapParts
from .wrapped_task_methods import WrappedTaskMethods

LOG = logging.getLogger("meantime.wrap")
MOST_OPEN = 10_000  # requests of a host without an answer
LAST_WORDS = 2.0  # seconds for what is still asked when the host closes its side
RECORDED = 10.0  # seconds for calls of it to become tasks
UNANSWERED = f"The server had not answered {LAST_WORDS:g} s after the host closed its input."
UNKNOWN = "Whether the tool did its work is not known."


class HostSession:
    """Implements ports.wrapped_server.ServerEnd. `send` passes a message on to the host, with the id of the
    request that it answers, or None; False: the host is gone."""

    def __init__(
        self,
        shared: WrapParts,
        hello: WrapHello,
        send: Callable[[bytes, Raw | None], bool],
        inboxes: dict[str, NoticeDelivery] | None = None,
        challenged: Callable[[Raw, LoginChallenge], None] | None = None,
        conversations: HostConversations | None = None,
    ) -> None:
        """`challenged` passes on that the server asks for a login, to a host that can make it."""
        self._shared = shared
        self._send = send
        self._challenged = challenged
        self.conversations = conversations or HostConversations(shared, hello)
        self._threshold = hello.threshold
        self._open: dict[int, OpenRequest] = {}  # by their id at the server
        self._count = 0
        repeats = RepeatedRequests(hello.repeats)
        self.server = HeldServer(shared.servers, hello.order, self, hello.initialize, repeats, self._our_own)
        self.on_login = self.server.authorize  # the token of the wrap's own file has changed
        self.server_requests = ServerRequests(self.server, self._tell, self._next)
        self.host_left = False
        self._beside = BackgroundTasks()
        self._is_stopping = False
        self.closed = asyncio.get_running_loop().create_future()  # when its server has ended
        self._calls = BackgroundCalls(self, shared, {} if inboxes is None else inboxes)
        self._task_methods = WrappedTaskMethods(self, shared, self._calls)
        self.introduction = Introduction()

    # -- the server

    def pause(self, paused: bool) -> None:
        self.server.pause(paused)

    @property
    def server_name(self) -> str:
        return self.server.name or self.introduction.name or "mcp"

    def threshold(self, tool: str) -> float | None:
        if self._threshold is not None:
            return None if self._threshold < 0 else self._threshold
        return self._shared.servers.threshold(self.server_name, tool)

    @property
    def may_offer_tasks(self) -> bool:
        """Tasks of MCP, to a client that is not told by hooks."""
        return (self._threshold is None or self._threshold >= 0) and not self.conversations.has_hooks

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
            self.take(message)

    def take(self, message: RawMessage) -> None:
        """From the host."""
        if not message.method:
            self.server_requests.answered(message)
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
        if message.method == "tools/call":
            call = self._new_call(message)
            self._send_on(call, call.params())
        elif not self._task_methods.take(message):
            self.pass_on(message)

    def pass_on(self, message: RawMessage) -> None:
        """A request of the host that is not a call, to the server."""
        opened = self._new(message.id, message.method)
        params = opened.with_token(message.params)
        if message.method in REPEATED:
            opened.lasting = message.params
        elif message.method == "tools/list":
            opened.declares_tasks = declared_by(message.params)
        elif message.method == INITIALIZE:
            self.server.initialize = params
        self._send_on(opened, params)

    def _send_on(self, opened: OpenRequest, params: Raw) -> None:
        if not self.server.send(request(b"%d" % opened.number, opened.method, params), opened.method):
            self._open.pop(opened.number, None)
            if isinstance(opened, OpenToolCall):
                self._calls.drop(opened)
            self.refuse(opened.host_id, f"The server is not there. {self.server.why}")

    def send_again(self, call: OpenToolCall, more: dict[str, Raw]) -> None:
        """A call that the server has answered with a question, with the answer to that."""
        call.number = self._next()
        self._open[call.number] = call
        params = call.params_again(more)
        if not self.server.send(request(b"%d" % call.number, call.method, params), call.method):
            del self._open[call.number]
            self._calls.lost(call, f"The server is not there. {self.server.why}")

    async def ask(self, method: str, params: Raw) -> RawMessage | str:
        """A request of ours. A text says why there is no answer."""
        own = OwnRequest(self._next(), method)
        self._open[own.number] = own
        if not self.server.send(request(b"%d" % own.number, method, params), method):
            own.ended(f"The server is not there. {self.server.why}")
        try:
            return await own.answer()
        finally:
            self._open.pop(own.number, None)

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _new(self, id: Raw, method: str) -> OpenRequest:
        number = self._next()
        opened = self._open[number] = OpenRequest(number, id, method)
        return opened

    def _new_call(self, message: RawMessage) -> OpenToolCall:
        call = OpenToolCall(self._next(), message.id, self.conversations.of(message.params))
        self._open[call.number] = call
        call.read(message.params)
        self.conversations.assign(call)
        seconds = self.threshold(call.tool)
        if seconds is not None:
            call.choose_form(self.introduction, has_hooks=self.conversations.tells(call))
        self._calls.begin(call, seconds)
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
        if isinstance(opened, OpenToolCall):
            self._calls.left(opened)
        if self.server.is_there or self.server.is_awaited:
            told = {**(params or {}), "requestId": raw(opened.number)}
            self.server.send(notification(CANCELLED, encoded(told)))

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
        if opened is None:  # to nobody, or a second time, or to a call that nobody wants any more
            self._calls.replied_late(number, message)
            return
        if opened.host_id:
            self.server.answered()
        if opened.lasting and message.result:
            self.server.repeats.note(opened.method, opened.lasting)
        if isinstance(opened, OpenToolCall):
            self._calls.replied(opened, message)
        elif isinstance(opened, OwnRequest):
            opened.ended(message)
        else:
            result = shown_result(self, opened, message.result) if message.result else NOTHING
            if opened.method == INITIALIZE and not opened.host_id:
                refused = self.server.greeted(message.error)
                if refused:
                    self._fail(refused)
            if opened.host_id:
                self.reply(opened.host_id, result, message.error)

    def on_unreadable(self, answers: int | str | None, why: str) -> None:
        if answers in self._open:
            error = raw({"code": INTERNAL_ERROR, "message": f"The server's answer cannot be read. {why}"})
            self._replied(RawMessage(id=raw(answers), error=error))

    def on_unanswered(self, id: int | str | None, why: str) -> None:
        opened = self._open.pop(id, None) if isinstance(id, int) else None
        if opened is not None:
            self._give_up(opened, why)

    def on_challenge(self, id: int | str | None, challenge: LoginChallenge, why: str) -> None:
        opened = self._open.get(id) if isinstance(id, int) else None
        is_call = isinstance(opened, OpenToolCall)
        if opened is None or not opened.host_id or self._challenged is None or (is_call and opened.reply):
            self.on_line(refusal(raw(id), INTERNAL_ERROR, why))
            return
        del self._open[opened.number]
        if is_call:
            self._calls.drop(opened)
        self._challenged(opened.host_id, challenge)

    def on_gone(self, why: str) -> None:
        LOG.info("The server %s is gone. %s", self.server_name, why)
        self.server.ended(why)
        self._fail(why)

    def _fail(self, why: str) -> None:
        """Nothing that is open will be answered."""
        opened, self._open = list(self._open.values()), {}
        for one in opened:
            self._give_up(one, why)
        self.server_requests.server_gone()
        self.look_around()

    def _give_up(self, opened: OpenRequest, why: str) -> None:
        if isinstance(opened, OpenToolCall):
            self._calls.lost(opened, f"The server was lost while the tool ran. {UNKNOWN} {why}")
        elif isinstance(opened, OwnRequest):
            opened.ended(why)
        elif opened.host_id:
            self.refuse(opened.host_id, f"The server was lost before it answered. {why}")

    def _requested_by_server(self, message: RawMessage) -> None:
        if message.method != ELICIT or not self._calls.asks(message):
            self.server_requests.ask(message, host_left=self.host_left)

    def _notified_by_server(self, message: RawMessage) -> None:
        if message.method == CANCELLED:
            if not self._calls.questions.withdraw(message.params):
                self.server_requests.cancelled(message.params)
        elif (told := for_host(message, self._open)) is not None:
            self._tell(told)

    # -- to the host

    def _tell(self, message: bytes) -> None:
        if not self.host_left:
            self._send(message, None)

    def reply(self, id: Raw, result: Raw, error: Raw = NOTHING) -> bool:
        """False: the host is gone, and does not read it."""
        return not self.host_left and self._send(answer(id, result, error), id)

    def refuse(self, id: Raw, said: str, code: int = INTERNAL_ERROR) -> None:
        if not self.host_left:
            self._send(refusal(id, code, said), id)

    # -- the end

    async def on_host_end(self) -> None:
        """The host has closed its side: what is open has a moment; then calls become tasks."""
        await self._until_answered(LAST_WORDS)
        for one in list(self._open.values()):
            if isinstance(one, OpenToolCall):
                self._calls.hand_off(one, LAST_WORDS)
            elif one.host_id:
                self.cancel_at_server(one)
                self.refuse(one.host_id, UNANSWERED)
        await self._until_answered(RECORDED)

    async def _until_answered(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until and any(one.host_id and not one.is_task for one in self._open.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

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
        self.server_requests.host_gone()
        self.look_around()

    def look_around(self) -> None:
        """Without a host and without a call, the server is not needed any more."""
        if self.host_left and not self._calls.is_busy:
            self._stop()

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._beside.start(self._stop_server())

    async def _stop_server(self) -> None:
        """An owner that ends meanwhile waits for it: otherwise the guard of the server would be killed."""
        self._task_methods.close()
        try:
            await self._calls.close()
            await self.server.close()
        finally:
            self.closed.set_result(None)

    async def close(self) -> None:
        """The owner closes: the server ends with it."""
        self.host_left = True
        self._stop()
        await self._beside.wait()
