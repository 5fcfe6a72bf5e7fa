"""Tool calls of one session: answered inline, or recorded as tasks. A call is sent once, whatever becomes
of it here."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw

from meantime.kernel.errors import MeantimeError
from meantime.kernel.model import Work
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import as_text, short
from meantime.kernel.work import MAX_INPUT, Order
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import Context
from meantime.ports.tasks import Options
from meantime.surfaces.mcp.notice_delivery import NoticeDelivery

from .elicited_answers import question_of, result_of
from .open_requests import OpenToolCall
from .raw_messages import PARSE_ERROR, RawMessage, raw, value
from .tool_answers import background_answer, with_notices

if TYPE_CHECKING:
    from .host_session import HostSession, WrapParts

LOG = logging.getLogger("meantime.wrap")
AGAIN = 5.0  # seconds until a call that could not be recorded is tried again
MOST_INBOXES = 100  # conversations of one host
MOST_NAME = 500  # characters
CLOSES = 5.0  # seconds for what is still being told


class BackgroundCalls:
    def __init__(self, session: HostSession, shared: WrapParts) -> None:
        self._session = session
        self._shared = shared
        self._inboxes: dict[str, NoticeDelivery] = {}
        self._running: dict[int, OpenToolCall] = {}  # recorded, or about to be
        self._beside = BackgroundTasks()
        self._questions = 0

    @property
    def is_busy(self) -> bool:
        return bool(self._running)

    async def close(self) -> None:
        await asyncio.gather(*(inbox.close() for inbox in self._inboxes.values()))
        await self._beside.wait(CLOSES)

    # -- inline

    def begin(self, call: OpenToolCall, seconds: float | None) -> None:
        inbox = self._inbox(call.thread)
        if inbox.enter():
            self._beside.start(inbox.settle_read_results())
        if seconds is not None:
            call.seconds = seconds
            call.timer = asyncio.get_running_loop().call_later(seconds, self.record, call)

    def drop(self, call: OpenToolCall) -> None:
        """It never reached the server."""
        call.stop_timer()
        self._inbox(call.thread).end()

    def leave(self, call: OpenToolCall) -> bool:
        """The host cancels it. False: it is being recorded, and is cancelled as a task."""
        call.left = True
        if call.reply is not None:
            return False
        self.drop(call)
        return True

    def replied(self, call: OpenToolCall, message: RawMessage) -> None:
        if call.reply is not None:
            if not call.reply.done():
                call.reply.set_result(message)
            return
        call.stop_timer()
        self._inbox(call.thread).end()
        self._give(call, message)

    def lost(self, call: OpenToolCall, why: str) -> None:
        if call.reply is None:
            self.drop(call)
            self._session.refuse(call.host_id, why)
        elif not call.reply.done():
            call.reply.set_result(why)

    def _give(self, call: OpenToolCall, message: RawMessage) -> None:
        waits = message.result and self._shared.unread(call.thread) > 0
        if waits and not self._shared.has_hooks(call.thread):
            self._beside.start(self._give_with_notices(call, message))
        elif not self._session.reply(call.host_id, message.result, message.error):
            self._keep(call, message)

    def _keep(self, call: OpenToolCall, message: RawMessage) -> None:
        """The host is gone, and its answer came a moment later: it is told as a task."""
        self._inbox(call.thread).enter()
        self.record(call)
        self.replied(call, message)

    async def _give_with_notices(self, call: OpenToolCall, message: RawMessage) -> None:
        inbox, result = self._inbox(call.thread), message.result
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

    def _inbox(self, thread: str) -> NoticeDelivery:
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

    async def _record(self, call: OpenToolCall) -> None:
        try:
            order = self._order(call)
            task = await self._shared.tasks.adopt(call.thread, order, Options(), call.elapsed)
        except MeantimeError as problem:
            self._not_recorded(call, problem)
            return
        call.is_task = True
        self._inbox(call.thread).end()
        if call.left:
            await self._shared.tasks.cancel(task.id, call.thread, by="agent", reason="the host cancelled it")
            return
        hooks = self._shared.has_hooks(call.thread)
        seconds = call.seconds or call.elapsed
        given = background_answer(task.id, seconds, hooks=hooks, enveloped=call.enveloped)
        self._session.reply(call.host_id, given)

    def _order(self, call: OpenToolCall) -> Order:
        stored = call.input
        if stored is not None and len(msgspec.json.encode(stored)) > MAX_INPUT:
            stored = {"too_big": short(as_text(stored))}
        name = f"{self._session.server_name}/{call.tool}"[:MOST_NAME]

        async def follow(context: Context) -> Report:
            return await self._follow(call, context, name)

        return Order(Work("tool", name, stored, faithful=False), follow)

    def _not_recorded(self, call: OpenToolCall, problem: MeantimeError) -> None:
        """It goes on inline, and is tried again; nothing is sent twice."""
        LOG.warning("A call of %s could not be recorded: %s", call.tool, problem)
        reply, call.reply = call.reply, None
        del self._running[call.number]
        if reply is not None and reply.done():
            said = reply.result()
            if isinstance(said, str):
                self.lost(call, said)
            else:
                self.replied(call, said)
        elif call.left or self._session.host_left:
            self._inbox(call.thread).end()
            self._session.cancel_at_server(call)
        else:
            call.timer = asyncio.get_running_loop().call_later(AGAIN, self.record, call)
        self._session.look_around()

    async def _follow(self, call: OpenToolCall, context: Context, name: str) -> Report:
        assert call.reply is not None
        call.linked(context)
        try:
            said = await asyncio.shield(call.reply)
        except asyncio.CancelledError:
            self._session.cancel_at_server(call)
            raise
        finally:
            call.context = None
            self._running.pop(call.number, None)
            self._session.look_around()
        if isinstance(said, str):
            return Report(lost=said)
        result, error = value(said.result), value(said.error or None)
        if error is None and not isinstance(result, dict):
            error = {"code": PARSE_ERROR, "message": "The server's answer is not a result that can be read."}
        return self._shared.servers.report_of(result, error, name)

    # -- questions

    def asks(self, message: RawMessage) -> bool:
        """Whether a background call asks this: then its task waits for the answer. While a call of the host
        is open the host is asked, as it always was; so it is where several calls could have asked."""
        running = [call for call in self._running.values() if call.context is not None]
        if len(running) != 1 or len(self._running) != 1 or self._session.has_open_call:
            return False
        params: Any = value(message.params)
        asked = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        self._beside.start(self._ask(running[0], message.id, asked))
        return True

    async def _ask(self, call: OpenToolCall, id: Raw, params: dict[str, Any]) -> None:
        self._questions += 1
        result: dict[str, Any] = {"action": "cancel"}
        try:
            if call.context is not None:
                reply = await call.context.ask(question_of(f"elicitation-{self._questions}", params))
                result = result_of(params, reply)
        except MeantimeError as problem:
            LOG.info("The question of %s has no answer: %s", call.tool, problem)
        self._session.answer_server(id, raw(result))
