"""The owner's end of every wrap: a unix socket. A wrap says hello in one line, and passes its host's lines
on; it gets frames, each behind a line with its length and the id of the request that it answers."""

from __future__ import annotations

import asyncio
import logging
import os
import select
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.wrapped_server import WrapOrder
from meantime.surfaces.unix_socket import UnixSocket, bind_unix
from meantime.system.line_splitter import LineSplitter, LineTooLong

from .host_pump import REFUSED
from .host_session import HostSession
from .joined_sessions import JoinedSessions
from .wrap_hello import WrapHello, WrapParts

if TYPE_CHECKING:
    from .http_hosts import HttpHosts

LOG = logging.getLogger("meantime.wrap")
MOST_WRAPS = 500
MOST_BYTES = 64 << 20  # of one line
HIGH_WATER = 1 << 20  # bytes that a host may leave unread before its server is not read any more
COPIED = 65_536  # bytes of a message that is put together with its head, for one write
PIECE = 262_144  # bytes of a longer one that the transport gets at once: it copies what it cannot send
OTHER_VERSION = (
    "Meantime's daemon is of another version than this `meantime mcp --wrap`. Install the same version, "
    "then: meantime down && meantime up"
)
THREAD, LOGIN = b"#thread ", b"#login "  # begin a line of the wrap itself: JSON never does
_hello = msgspec.json.Decoder(WrapHello)


class WrapListener:
    def __init__(self, shared: WrapParts, path: Path) -> None:
        self._shared = shared
        self._path = path
        self._links: set[HostLink] = set()
        self._sessions: set[HostSession | JoinedSessions] = set()
        self._server: asyncio.Server | None = None
        self._socket: UnixSocket | None = None

    async def open(self) -> None:
        self._socket = bind_unix(self._path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._connected, sock=self._socket.listening)

    def _connected(self) -> asyncio.Protocol:
        return HostLink(self)

    def add(self, link: HostLink) -> str:
        """Why not; empty: it was added."""
        if self._server is None:
            return "Meantime's daemon is closing."
        if len(self._links) >= MOST_WRAPS:
            return f"{MOST_WRAPS} wraps are connected to Meantime's daemon already. Close some."
        self._links.add(link)
        return ""

    def discard(self, link: HostLink) -> None:
        self._links.discard(link)

    def begin(self, hello: WrapHello, link: HostLink) -> HostSession | JoinedSessions:
        kind = JoinedSessions if hello.prefix else HostSession
        session = kind(self._shared, replace(hello, order=_native(hello.order)), link.send)
        self._keep(session)
        return session

    def http_hosts(self) -> HttpHosts:
        """Hosts over HTTP, which end with those of the socket."""
        from .http_hosts import HttpHosts  # a daemon without an HTTP server has no package for it

        return HttpHosts(self._shared, self._keep)

    def _keep(self, session: HostSession | JoinedSessions) -> None:
        self._sessions.add(session)
        session.closed.add_done_callback(lambda _: self._sessions.discard(session))

    def pause(self) -> None:
        """Nobody new is served."""
        if self._server is not None and self._socket is not None:
            self._server.close()
            self._server = None
            self._socket.remove()

    async def close(self) -> None:
        """Servers end with us; wraps find the next owner."""
        self.pause()
        sessions = list(self._sessions)
        for link in list(self._links):
            link.abort()
        await asyncio.gather(*(session.close() for session in sessions))


class HostLink(asyncio.Protocol):
    """One wrap."""

    def __init__(self, listener: WrapListener) -> None:
        self._listener = listener
        self._lines = LineSplitter(MOST_BYTES)
        self._transport: asyncio.Transport | None = None
        self._session: HostSession | JoinedSessions | None = None
        self._beside = BackgroundTasks()
        self._unsent: deque[memoryview] = deque()
        self._is_paused = False
        self._is_closing = False  # when everything is sent

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are not derived from it
        self._transport.set_write_buffer_limits(HIGH_WATER)
        if refusal := self._listener.add(self):
            self._refuse(refusal)

    def data_received(self, data: bytes) -> None:
        try:
            for line in self._lines.feed(data):
                if self._transport is None or self._transport.is_closing():
                    return
                self._take(line)
        except LineTooLong:
            LOG.warning("A host sent a line of more than %d MB.", MOST_BYTES >> 20)
            self.abort()

    def _take(self, line: bytes) -> None:
        if self._session is None:
            try:
                self._session = self._listener.begin(_hello.decode(line), self)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                LOG.warning("A wrap of another version is not understood.")
                self._refuse(OTHER_VERSION)
        elif line.startswith(THREAD):
            self._session.conversations.on_thread(line[len(THREAD) :].decode("utf-8", "replace"))
        elif line.startswith(LOGIN):
            self._session.on_login(line[len(LOGIN) :].decode("utf-8", "replace"))
        elif line.strip():
            self._session.on_host_line(line)

    def send(self, message: bytes, answers: Raw | None) -> bool:
        """False: the wrap is gone, and will not read this."""
        if self._transport is None or self._transport.is_closing():
            return False
        if b"\n" in message:  # a server over HTTP may write JSON over several lines
            message = bytes(msgspec.json.format(message, indent=0))
        head = b"%d %b\n" % (len(message) + 1, b"-" if answers is None else bytes(answers))
        if len(message) < COPIED and not self._unsent:
            self._transport.write(head + message + b"\n")
        else:
            self._unsent += map(memoryview, (head, message, b"\n"))
            self._send_unsent()
        return not self._transport.is_closing()

    def _send_unsent(self) -> None:
        transport = self._transport
        while self._unsent and not self._is_paused and transport is not None and not transport.is_closing():
            first = self._unsent.popleft()
            if len(first) > PIECE:
                self._unsent.appendleft(first[PIECE:])
            transport.write(first[:PIECE])
        if self._is_closing and not self._unsent and transport is not None:
            transport.close()

    def pause_writing(self) -> None:
        self._is_paused = True
        if self._session is not None:
            self._session.pause(True)

    def resume_writing(self) -> None:
        if self._session is not None:
            self._session.pause(False)
        self._is_paused = False
        self._send_unsent()

    def eof_received(self) -> bool:
        if self._transport is None or _has_closed(self._transport):
            return False  # the wrap has ended: nobody reads what is still answered
        self._beside.start(self._finish())
        return True  # what is still answered goes out

    async def _finish(self) -> None:
        if self._session is not None:
            await self._session.on_host_end()
        self._is_closing = True
        self._send_unsent()

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.discard(self)
        self._transport = None
        self._unsent.clear()
        if self._session is not None:
            self._session.on_host_gone()

    def _refuse(self, text: str) -> None:
        if self._transport is not None:
            self._transport.write(REFUSED + text.encode() + b"\n")
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _has_closed(transport: asyncio.Transport) -> bool:
    """Whether the other side has closed both directions, and not only the one to us."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), 0)
    return any(what & (select.POLLHUP | select.POLLERR) for _, what in poll.poll(0))


def _native(order: WrapOrder) -> WrapOrder:
    """Texts of the system come as bytes, one character each: they need not be UTF-8."""
    env = {_text(name): _text(said) for name, said in order.env.items()}
    return replace(order, words=tuple(map(_text, order.words)), cwd=_text(order.cwd), env=env)


def _text(given: str) -> str:
    return os.fsdecode(given.encode("latin-1", "replace"))
