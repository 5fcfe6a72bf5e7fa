"""The server of one session, held by the owner: started when it is needed, and again after it has ended, then
with the handshake that the host has made."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from msgspec import Raw

from meantime.kernel.errors import MeantimeError
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.wrapped_server import ServerEnd, ServerFull, WrapOrder, WrappedServer, WrappedServers

from .negotiated_server import NegotiatedServer
from .raw_messages import INITIALIZED, notification, parts, request, text
from .repeated_requests import RepeatedRequests
from .task_offers import INITIALIZE

FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0  # seconds between an end of the server and its next start
MOST_RESTED = 2.0  # seconds of such a wait for which a request is kept; before, it is refused
MOST_HELD = 64 << 20  # bytes that wait for a start or a handshake
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
        self._rested: list[tuple[bytes, str]] = []  # lines that wait for the next start, with their methods
        self._start: asyncio.TimerHandle | None = None  # while there are such lines
        self._unasked = 0  # starts that no request of the host has followed
        self._timer: asyncio.TimerHandle | None = None  # until the next of these
        self._is_closed = False
        self._authorization = ""  # of the host, for a server over HTTP
        self.repeats = repeats
        self.initialize = initialize  # the params of the host's handshake; empty before it
        self.is_initialized = bool(initialize)
        self.why = ""  # it is not there
        self._last_end = ""  # why it ended

    @property
    def is_there(self) -> bool:
        return self._server is not None

    @property
    def is_awaited(self) -> bool:
        """Whether there are lines that wait for its next start."""
        return self._start is not None

    @property
    def name(self) -> str:
        return self._server.name if self._server is not None else ""

    def send(self, line: bytes, method: str = "") -> bool:
        """Starts the server if need be. False: it is not there, and `why` says why."""
        if self._server is None and not self._is_closed and (self.is_awaited or self._rest > 0):
            return self._keep(line, method)
        server = self._reached(method)
        if server is None:
            return False
        if self._held is not None:
            if not self._has_room(line, "It has not answered the handshake"):
                return False
            self._held.append(line)
            return True
        try:
            server.send(line)
        except ServerFull:
            self.why = "It has not read what it was sent for long."
            return False
        return True

    @property
    def _rest(self) -> float:
        """Seconds until it may be started again after it ended."""
        return self._rests_until - asyncio.get_running_loop().time()

    def _has_room(self, line: bytes, why: str) -> bool:
        self._held_bytes += len(line)
        if self._held_bytes > MOST_HELD:
            self.why = f"{why}, and no more is kept for it."
            return False
        return True

    def _keep(self, line: bytes, method: str) -> bool:
        """Until the server may be started again. A host that asks once must not lose its request to a rest of
        which it knows nothing."""
        if self._start is None:
            if self._rest > MOST_RESTED:
                self.why = f"{self._last_end} It is started again in {math.ceil(self._rest)} s; call again."
                return False
            self._held_bytes = 0
            self._start = asyncio.get_running_loop().call_at(self._rests_until, self._start_again)
        if not self._has_room(line, f"{self._last_end} It is not started again yet"):
            return False
        self._rested.append((line, method))
        return True

    def _start_again(self) -> None:
        self._start = None
        rested, self._rested = self._rested, []
        # The host's own handshake, if it waits here, takes the place of the one that we would repeat.
        greets = any(method == INITIALIZE for _, method in rested)
        if self._reached(INITIALIZE if greets else "") is None:
            self._end.on_gone(self.why)
            return
        for line, method in rested:
            self.send(line, method)

    def _reached(self, method: str) -> WrappedServer | None:
        """None where it cannot be started."""
        if self._server is not None:
            return self._server
        if self._is_closed:
            return None
        try:
            self._server = NegotiatedServer(self._servers, self._order, self._end)
            self._server.authorize(self._authorization)
        except MeantimeError as problem:
            self.why = f"{problem.message} {problem.hint}".strip()
            return None
        if self.initialize and method != INITIALIZE:
            self._held, self._held_bytes = [], 0
            self._server.send(self._request(INITIALIZE, self.initialize))
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
        self.why = self._last_end = why
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
        if not self.is_awaited:  # otherwise it is started in a moment
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
        if self._start is not None:
            self._start.cancel()
            self._start, self._rested = None, []
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
