"""The server of one session, held by the owner: started when it is needed, and again after it has ended, then
with the handshake that the host has made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Raw

from meantime.kernel.errors import MeantimeError
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.wrapped_server import ServerEnd, ServerFull, WrapOrder, WrappedServer, WrappedServers

from .negotiated_server import NegotiatedServer
from .raw_messages import INITIALIZED, notification, parts, request, text
from .repeated_requests import RepeatedRequests

FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0  # seconds between an end of the server and its next start
MOST_HELD = 64 << 20  # bytes that wait for a handshake
MOST_UNASKED = 5  # starts in a row for the sake of subscriptions alone
HANDSHAKE = 60.0  # seconds for a server that was started again to answer ours


class HeldServer:
    """`number` gives the id of a request of ours with this method, which the session knows."""

    def __init__(
        self,
        servers: WrappedServers,
        order: WrapOrder,
        end: ServerEnd,
        initialize: Raw,
        repeats: RepeatedRequests,
        number: Callable[[str], int],
    ) -> None:
        self._servers = servers
        self._order = order
        self._end = end
        self._number = number
        self._server: WrappedServer | None = None
        self._held: list[bytes] | None = None  # until a new server has the handshake
        self._held_bytes = 0
        self._patience: asyncio.TimerHandle | None = None  # with its answer to our handshake
        self._beside = BackgroundTasks()
        self._failures = 0
        self._rests_until = 0.0
        self._unasked = 0  # starts that no request of the host has followed
        self._timer: asyncio.TimerHandle | None = None  # until the next of these
        self._is_closed = False
        self._authorization = ""  # of the host, for a server over HTTP
        self.repeats = repeats
        self.initialize = initialize  # the params of the host's handshake; empty before it
        self.is_initialized = bool(initialize)
        self.why = ""  # it is not there

    @property
    def is_there(self) -> bool:
        return self._server is not None

    @property
    def name(self) -> str:
        return self._server.name if self._server is not None else ""

    def send(self, line: bytes, method: str = "") -> bool:
        """Starts the server if need be. False: it is not there, and `why` says why."""
        server = self._reached(method)
        if server is None:
            return False
        if self._held is not None:
            self._held_bytes += len(line)
            if self._held_bytes > MOST_HELD:
                self.why = "It has not answered the handshake, and no more is kept for it."
                return False
            self._held.append(line)
            return True
        try:
            server.send(line)
        except ServerFull:
            self.why = "It has not read what it was sent for long."
            return False
        return True

    def _reached(self, method: str) -> WrappedServer | None:
        """None while it rests after it ended."""
        if self._server is not None:
            return self._server
        if self._is_closed or asyncio.get_running_loop().time() < self._rests_until:
            return None
        try:
            self._server = NegotiatedServer(self._servers, self._order, self._end)
            self._server.authorize(self._authorization)
        except MeantimeError as problem:
            self.why = f"{problem.message} {problem.hint}".strip()
            return None
        if self.initialize and method != "initialize":
            self._held, self._held_bytes = [], 0
            self._server.send(self._request("initialize", self.initialize))
            self._patience = asyncio.get_running_loop().call_later(HANDSHAKE, self._give_up, self._server)
        return self._server

    def _request(self, method: str, params: Raw) -> bytes:
        return request(b"%d" % self._number(method), method, params)

    def _give_up(self, server: WrappedServer) -> None:
        """Requests of the host wait for a handshake that does not come."""
        self._beside.start(server.close())
        self._end.on_gone(f"It was started again, and did not answer the handshake within {HANDSHAKE:g} s.")

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def greeted(self, error: Raw) -> str:
        """The server has answered our handshake. Returns why it refused it, where it did."""
        if error:
            said = text(parts(error).get("message"))
            return f"The server was started again and refused the handshake: {said}"
        self._stop_waiting()
        held, self._held = self._held or [], None
        first = [notification(INITIALIZED)] if self.is_initialized else []
        first += [self._request(method, params) for method, params in self.repeats]
        for line in first + held:
            self.send(line)
        return ""

    def answered(self) -> None:
        """It has answered the host: the next start, if one is needed, need not wait."""
        self._failures = self._unasked = 0

    def ended(self, why: str) -> None:
        self._stop_waiting()
        self._server = None
        self._held = None
        self.why = why
        self._failures += 1
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (self._failures - 1))
        loop = asyncio.get_running_loop()
        self._rests_until = loop.time() + wait
        if self.repeats.has_subscriptions and self._unasked < MOST_UNASKED:
            self._unasked += 1
            self._timer = loop.call_at(self._rests_until, self._revive)

    def _revive(self) -> None:
        """A host that has subscribed waits for news, and need not ask for anything before."""
        self._timer = None
        self._reached("")

    def authorize(self, authorization: str) -> None:
        """From the next line on."""
        self._authorization = authorization
        if self._server is not None:
            self._server.authorize(authorization)

    def pause(self, paused: bool) -> None:
        if self._server is not None:
            self._server.pause(paused)

    async def close(self) -> None:
        self._is_closed, self.why = True, "Meantime has stopped it."
        self.stop_reviving()
        self._stop_waiting()
        server, self._server = self._server, None
        if server is not None:
            await server.close()
        await self._beside.wait()

    def stop_reviving(self) -> None:
        """Nobody waits for news any more."""
        self._unasked = MOST_UNASKED
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
