"""Bugs of the wrap, planted from outside: a daemon imports this file as one of its tools. Each breaks a
promise that the judge of the families `wrap`, `url-wrap` and `hostile-wrap` must see."""

from __future__ import annotations

import os
import sys
from typing import Any


def crossed_ids() -> None:
    """Two calls that run side by side have each other's id."""

    from meantime.surfaces.wrap.host_session import HostSession
    from meantime.surfaces.wrap.open_requests import OpenToolCall
    from meantime.surfaces.wrap.raw_messages import RawMessage

    new_call = HostSession._new_call

    def crossed(self: HostSession, message: RawMessage) -> OpenToolCall:
        call = new_call(self, message)
        other = next(
            (one for one in self._open.values() if isinstance(one, OpenToolCall) and one is not call), None
        )
        if other is not None and not other.is_task:
            call.host_id, other.host_id = other.host_id, call.host_id
        return call

    HostSession._new_call = crossed  # type: ignore[method-assign]


def sent_again() -> None:
    """A server that is started again gets the calls that the one before it had."""
    from msgspec import Raw

    from meantime.surfaces.wrap.held_server import HeldServer

    send, greeted = HeldServer.send, HeldServer.greeted
    kept: list[bytes] = []

    def keeping(self: HeldServer, line: bytes, method: str = "") -> bool:
        if method == "tools/call" and b"slow-" in line:
            kept.append(line)
        return send(self, line, method)

    def again(self: HeldServer, error: Raw) -> str:
        why = greeted(self, error)
        for line in kept:
            send(self, line)
        return why

    HeldServer.send, HeldServer.greeted = keeping, again  # type: ignore[method-assign]


def told_twice() -> None:
    """A notice that a result took along is never acknowledged."""
    from meantime.surfaces.mcp.notice_delivery import NoticeDelivery, Ride

    async def forgets(self: NoticeDelivery, ride: Ride) -> None:
        if ride in self._rides:
            self._rides.remove(ride)
            await self._let_go(ride)

    NoticeDelivery._settle = forgets  # type: ignore[method-assign]


def answered_twice() -> None:
    """A call that has become a task is answered when its reply comes, too."""
    from meantime.surfaces.wrap.background_calls import BackgroundCalls
    from meantime.surfaces.wrap.open_requests import OpenToolCall
    from meantime.surfaces.wrap.raw_messages import RawMessage

    replied = BackgroundCalls.replied

    def both(self: BackgroundCalls, call: OpenToolCall, message: RawMessage) -> None:
        replied(self, call, message)
        if call.is_task:
            self._session.reply(call.host_id, message.result)

    BackgroundCalls.replied = both  # type: ignore[method-assign]


def forgotten_ending() -> None:
    """The next daemon leaves calls that were tasks when the last one was killed as they are."""
    from meantime.kernel.lifecycle import Move
    from meantime.runtime.record import Record

    move = Record.move

    async def forgets(self: Record, *given: Any, **more: Any) -> Any:
        if Move.LOSE in given:
            return None
        return await move(self, *given, **more)

    Record.move = forgets  # type: ignore[method-assign]


def vanished_host() -> None:
    """The call of a host that is gone is nobody's."""
    from meantime.surfaces.wrap.background_calls import BackgroundCalls
    from meantime.surfaces.wrap.open_requests import OpenToolCall

    record = BackgroundCalls.record

    def unless_gone(self: BackgroundCalls, call: OpenToolCall) -> None:
        if not self._session.host_left:
            record(self, call)

    BackgroundCalls.record = unless_gone  # type: ignore[method-assign]


def crossed_replies() -> None:
    """Two requests over HTTP have each other's connection."""
    from msgspec import Raw

    from meantime.surfaces.wrap.http_host import HttpHost
    from meantime.surfaces.wrap.raw_messages import key

    send = HttpHost._send

    def crossed(self: HttpHost, data: bytes, answers: Raw | None) -> bool:
        number = None if answers is None else key(answers)
        calls = [id for id, one in self._open.items() if one.method == "tools/call"]
        if number in calls and len(calls) > 1:
            other = next(id for id in calls if id != number)
            self._open[number], self._open[other] = self._open[other], self._open[number]
        return send(self, data, answers)

    HttpHost._send = crossed  # type: ignore[method-assign]


def answered_into_nothing() -> None:
    """An answer over HTTP counts as read even if the connection has been closed."""
    from msgspec import Raw

    from meantime.surfaces.wrap.http_host import HttpHost

    send = HttpHost._send

    def blindly(self: HttpHost, data: bytes, answers: Raw | None) -> bool:
        send(self, data, answers)
        return True

    HttpHost._send = blindly  # type: ignore[method-assign]


def cut_is_a_cancel() -> None:
    """A connection that breaks cancels its call, as it may only without sessions."""
    from meantime.surfaces.wrap.http_host import HttpHost

    post = HttpHost.post

    async def cuts(self: HttpHost, *given: Any, **more: Any) -> None:
        await post(self, *given, **{**more, "cuts": True})

    HttpHost.post = cuts  # type: ignore[method-assign]


def dropped_notifications() -> None:
    """One of a hundred messages that the server sends by itself is lost."""
    from meantime.surfaces.wrap.host_session import HostSession

    tell, told = HostSession._tell, [0]

    def forgets(self: HostSession, message: bytes) -> None:
        told[0] += 1
        if told[0] % 100:
            tell(self, message)

    HostSession._tell = forgets  # type: ignore[method-assign]


def unanswered_calls() -> None:
    """The calls of a server that has crashed are not answered."""
    from meantime.surfaces.wrap.host_session import HostSession

    HostSession._give_up = lambda self, opened, why: None  # type: ignore[method-assign]


def remembered_ids() -> None:
    """A request whose id is in use is taken for one that was sent before."""
    from meantime.surfaces.wrap.host_session import HostSession
    from meantime.surfaces.wrap.raw_messages import RawMessage

    take = HostSession.take

    def once(self: HostSession, message: RawMessage) -> None:
        used = {bytes(one.host_id) for one in self._open.values() if one.host_id}
        if not (message.is_request and bytes(message.id) in used):
            take(self, message)

    HostSession.take = once  # type: ignore[method-assign]


OF_HOSTILITY = (dropped_notifications, unanswered_calls, remembered_ids)
OF_STDIO = (crossed_ids, sent_again, told_twice, answered_twice, forgotten_ending, vanished_host)
OF_URLS = (crossed_replies, answered_into_nothing, cut_is_a_cancel)
PLANTS = {bug.__name__: bug for bug in (*OF_STDIO, *OF_URLS, *OF_HOSTILITY)}

if "meantime.app.daemon" in sys.orig_argv and (bug := PLANTS.get(os.environ.get("MEANTIME_FAULT_PLANT", ""))):
    bug()
