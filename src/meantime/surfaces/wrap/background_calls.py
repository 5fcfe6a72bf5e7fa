"""Tool calls of one session: answered inline, or recorded as tasks. A call is sent once, whatever becomes
of it here."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw

from meantime.kernel.errors import MeantimeError
from meantime.kernel.model import Work
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import as_text, short
from meantime.kernel.work import MAX_INPUT, Order
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import Context, Stopped
from meantime.ports.tasks import Options
from meantime.ports.wrapped_server import RemoteAnswer, RemoteReply
from meantime.surfaces.mcp import mcp_tasks
from meantime.surfaces.mcp.notice_delivery import NoticeDelivery

from .background_questions import BackgroundQuestions, input_asked
from .open_requests import OpenToolCall
from .raw_messages import PARSE_ERROR, RawMessage, value
from .server_without_handshake import MOST_ROUNDS
from .task_offers import task_answer
from .tool_answers import background_answer, with_notices
from .wrapped_task_methods import KeptResults

if TYPE_CHECKING:
    from .host_session import HostSession
    from .wrap_hello import WrapParts

LOG = logging.getLogger("meantime.wrap")
AGAIN = 5.0  # seconds until a call that could not be recorded is tried again
MOST_INBOXES = 100  # conversations of one host
MOST_NAME = 500  # characters
MOST_LEFT = 1_000  # calls that were cancelled and have no answer
MOST_TASK = 65_536  # bytes of an answer that is a task
CLOSES = 5.0  # seconds for what is still being told


class BackgroundCalls:
    def __init__(self, session: HostSession, shared: WrapParts, inboxes: dict[str, NoticeDelivery]) -> None:
        """`inboxes` by conversation; sessions of one host share them."""
        self._session = session
        self._shared = shared
        self._inboxes = inboxes
        self._running: dict[int, OpenToolCall] = {}  # recorded, or about to be
        self._beside = BackgroundTasks()
        self.questions = BackgroundQuestions(self._running, session.server_requests.reply)
        self._left: dict[int, OpenToolCall] = {}  # without an answer
        self.kept = KeptResults()

    @property
    def is_busy(self) -> bool:
        return bool(self._running)

    async def close(self) -> None:
        await asyncio.gather(*(inbox.close() for inbox in self._inboxes.values()))
        await self._beside.wait(CLOSES)

    # -- inline

    def begin(self, call: OpenToolCall, seconds: float | None) -> None:
        inbox = self.inbox(call.thread)
        if inbox.enter():
            self._beside.start(inbox.settle_read_results())
        if seconds is not None:
            call.seconds = seconds
            self._look_up(call, seconds)
            wait = 0 if call.is_task_at_once or call.usual is not None else seconds
            call.timer = asyncio.get_running_loop().call_later(wait, self.record, call)

    def _look_up(self, call: OpenToolCall, seconds: float) -> None:
        call.learns = self._shared.servers.learns(self._session.server_name, call.tool)
        usual = self._shared.durations.usual(self._name(call)) if call.learns else None
        if usual is not None and usual > seconds:
            call.usual = usual

    def _learn(self, call: OpenToolCall, message: RawMessage) -> None:
        """A failure may have come at once, and says nothing."""
        if call.learns and message.result:
            self._shared.durations.note(self._name(call), call.elapsed)

    def _name(self, call: OpenToolCall) -> str:
        return f"{self._session.server_name}/{call.tool}"[:MOST_NAME]

    def drop(self, call: OpenToolCall) -> None:
        """It never reached the server."""
        call.stop_timer()
        self.inbox(call.thread).end()

    def leave(self, call: OpenToolCall) -> bool:
        """The host cancels it. False: it is being recorded, and is cancelled as a task."""
        call.left = True
        if call.reply is not None:
            return False
        self.drop(call)
        return True

    def replied(self, call: OpenToolCall, message: RawMessage) -> None:
        if call.seconds is not None and call.reply is None and self._remote(message) is not None:
            self.record(call)  # the server makes a task of its own of it: so is ours
        if call.reply is not None:
            if not call.reply.done():
                call.reply.set_result(message)
            return
        call.stop_timer()
        self._learn(call, message)
        self.inbox(call.thread).end()
        self._give(call, message)

    def lost(self, call: OpenToolCall, why: str) -> None:
        if call.reply is None:
            self.drop(call)
            self._session.refuse(call.host_id, why)
        elif not call.reply.done():
            call.reply.set_result(why)

    def _give(self, call: OpenToolCall, message: RawMessage) -> None:
        waits = message.result and self._shared.unread(call.thread) > 0
        if waits and not self._session.conversations.tells(call):
            self._beside.start(self._give_with_notices(call, message))
        elif not self._session.reply(call.host_id, message.result, message.error):
            self._keep(call, message)

    def _keep(self, call: OpenToolCall, message: RawMessage) -> None:
        """The host is gone, and its answer came a moment later: it is told as a task."""
        self.inbox(call.thread).enter()
        self.record(call)
        self.replied(call, message)

    async def _give_with_notices(self, call: OpenToolCall, message: RawMessage) -> None:
        inbox, result = self.inbox(call.thread), message.result
        ride = await inbox.ride(())
        if ride is not None:
            more = [f"{ride.more} more follow with later results."] if ride.more else []
            told = None if self._session.host_left else with_notices(result, ride.texts + more)
            if told is None:
                inbox.give_back(ride)
            else:
                result = told
                inbox.sent(ride)
        if not self._session.reply(call.host_id, result, message.error):
            self._keep(call, message)

    def inbox(self, thread: str) -> NoticeDelivery:
        if thread not in self._inboxes:
            self._inboxes[thread] = NoticeDelivery(self._shared.tasks, thread)
            if len(self._inboxes) > MOST_INBOXES:
                oldest = next(iter(self._inboxes))
                self._beside.start(self._inboxes.pop(oldest).close())
        return self._inboxes[thread]

    # -- from inline to task

    def record(self, call: OpenToolCall) -> None:
        """The threshold is over, or the host is gone."""
        if call.reply is None:
            call.stop_timer()
            call.reply = asyncio.get_running_loop().create_future()
            self._running[call.number] = call
            self._beside.start(self._record(call))

    def hand_off(self, call: OpenToolCall, seconds: float) -> None:
        """Before its threshold: its host can wait for so long only."""
        if call.reply is None:
            call.seconds = seconds
            self.record(call)

    async def _record(self, call: OpenToolCall) -> None:
        try:
            order = self._order(call)
            options = Options()
            if call.form:  # an id that nobody guesses, as the client asks by it
                options = Options(id=mcp_tasks.new_id(), meta={mcp_tasks.MARK: "task"})
            task = await self._shared.tasks.adopt(call.thread, order, options, call.elapsed)
        except MeantimeError as problem:
            self._not_recorded(call, problem)
            return
        call.is_task = True
        call.task = task.id
        self.inbox(call.thread).end()
        if call.left:
            await self._shared.tasks.cancel(task.id, call.thread, by="agent", reason="the host cancelled it")
            return
        if call.form:
            self.inbox(call.thread).follows(task.id)
            self._session.reply(call.host_id, task_answer(task, call.form))
            return
        hooks = self._session.conversations.tells(call)
        seconds = call.seconds or call.elapsed
        given = background_answer(task.id, seconds, call.usual, hooks=hooks, enveloped=call.enveloped)
        self._session.reply(call.host_id, given)

    def _order(self, call: OpenToolCall) -> Order:
        stored = call.input
        if stored is not None and len(msgspec.json.encode(stored)) > MAX_INPUT:
            stored = {"too_big": short(as_text(stored))}
        name = self._name(call)

        async def follow(context: Context) -> Report | RemoteAnswer:
            return await self._follow(call, context, name)

        return Order(Work("tool", name, stored, faithful=False), follow)

    def _not_recorded(self, call: OpenToolCall, problem: MeantimeError) -> None:
        """It goes on inline, and is tried again; nothing is sent twice."""
        LOG.warning("A call of %s could not be recorded: %s", call.tool, problem)
        reply, call.reply = call.reply, None
        del self._running[call.number]
        self.questions.on_move()
        if reply is not None and reply.done() and not self._session.host_left:
            said = reply.result()
            if isinstance(said, str):
                self.lost(call, said)
            else:
                call.seconds = None  # a task of the server's is then the host's to follow
                self.replied(call, said)
        elif call.left or self._session.host_left:
            self.inbox(call.thread).end()
            self._session.cancel_at_server(call)
        else:
            call.timer = asyncio.get_running_loop().call_later(AGAIN, self.record, call)
        self._session.look_around()

    async def _follow(self, call: OpenToolCall, context: Context, name: str) -> Report | RemoteAnswer:
        call.linked(context)
        self.questions.on_move()
        try:
            said = await self._whole_answer(call, context)
        except (asyncio.CancelledError, MeantimeError, Stopped):
            self._session.cancel_at_server(call)
            self._over(call)
            raise
        if isinstance(said, str):
            self._over(call)
            return Report(lost=said)
        remote = self._remote(said)
        if remote is not None:
            return RemoteAnswer(remote, partial(self._ask_about, call), partial(self._over, call))
        self._learn(call, said)
        if call.form and said.result:
            self.kept.keep(call.task, said.result)
        self._over(call)
        result, error = value(said.result), value(said.error or None)
        if error is None and not isinstance(result, dict):
            error = {"code": PARSE_ERROR, "message": "The server's answer is not a result that can be read."}
        return self._shared.servers.report_of(result, error, name)

    async def _whole_answer(self, call: OpenToolCall, context: Context) -> RawMessage | str:
        """The server's answer. A server that asks for input is called again with it."""
        assert call.reply is not None
        said = await asyncio.shield(call.reply)
        for _ in range(MOST_ROUNDS):
            asked = None if isinstance(said, str) else input_asked(said)
            if asked is None:
                break
            said = await asyncio.shield(self._repeat(call, await asked.answers(context)))
        return said

    def _repeat(self, call: OpenToolCall, more: dict[str, Raw]) -> asyncio.Future[RawMessage | str]:
        reply = call.reply = asyncio.get_running_loop().create_future()
        del self._running[call.number]
        self._session.send_again(call, more)
        self._running[call.number] = call
        return reply

    def _over(self, call: OpenToolCall) -> None:
        call.context = None
        self._running.pop(call.number, None)
        self.questions.on_move()
        self._session.look_around()

    # -- a task of the server's own

    def left(self, call: OpenToolCall) -> None:
        """The server was told to stop it, which it may not read in time."""
        self._left[call.number] = call
        if len(self._left) > MOST_LEFT:
            del self._left[next(iter(self._left))]

    def replied_late(self, number: int | str | None, message: RawMessage) -> None:
        """A server that made a task of a call that nobody wants any more is told so."""
        call = self._left.pop(number, None) if isinstance(number, int) else None
        remote = self._remote(message) if call is not None else None
        id = remote and self._shared.servers.task_id(remote)
        if call is not None and id:
            self._beside.start(self._ask_about(call, "tasks/cancel", {"taskId": id}))

    def _remote(self, message: RawMessage) -> dict[str, Any] | None:
        """The server's answer, if that is a task of its own."""
        if len(memoryview(message.result)) > MOST_TASK or b"taskId" not in bytes(message.result):
            return None
        found: Any = value(message.result)
        return found if self._shared.servers.task_id(found) else None

    async def _ask_about(self, call: OpenToolCall, method: str, params: dict[str, Any]) -> RemoteReply:
        said = await self._session.ask(method, call.params_about_task(params))
        return said if isinstance(said, str) else (value(said.result), value(said.error or None))

    # -- questions

    def asks(self, message: RawMessage) -> bool:
        """Whether a background call asks this: then its task waits for the answer. While a call of the host
        is open the host is asked, as it always was, unless it is gone and the call is about to be a task."""
        if not self._running or (self._session.has_open_call and not self._session.host_left):
            return False
        params: Any = value(message.params)
        asked = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        self._beside.start(self.questions.ask(message.id, asked))
        return True
