"""The protocol of one server, and that of its host. Where both have a version in common, they agree on it as
if nobody stood between them, and every message is passed on as it is. Otherwise each side speaks its own:

- a host that makes a handshake, and a server without one: `server_without_handshake.py`;
- a host that makes none, and a server that waits for one: `server_with_handshake.py`."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, cast

from meantime.ports.wrapped_server import LoginChallenge, ServerEnd, ServerFull, WrapOrder, WrappedServers

from .protocol_versions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    WITH_HANDSHAKE,
    WITHOUT_HANDSHAKE,
    envelope_of,
    meta_of,
    no_common_version,
    version_of,
)
from .raw_messages import (
    ENVELOPE,
    NOTHING,
    UNREADABLE,
    RawMessage,
    encoded,
    key,
    parts,
    raw,
    read,
    request,
    text,
    value,
)
from .server_with_handshake import ServerWithHandshake
from .server_without_handshake import ServerWithoutHandshake
from .task_offers import DISCOVER, INITIALIZE

PROBE = "meantime-probe"  # the id of our own server/discover
PATIENCE = 45.0  # seconds for its answer: npx may have to download the server first; hosts wait for a minute
MOST_HELD = 64 << 20  # bytes of lines that wait for it
REFUSED = RawMessage(error=raw({"message": "The server did not answer."}))


class Translation(Protocol):
    def send(self, line: bytes) -> None:
        """From the host."""
        ...

    def on_line(self, line: bytes) -> bool:
        """From the server."""
        ...

    def original(self, id: int | str | None) -> int | str | None:
        """The id of the host for a request that the server will not answer."""
        ...


class NegotiatedServer:
    """Implements ports.wrapped_server.WrappedServer for a session, and ServerEnd for the server itself."""

    def __init__(self, servers: WrappedServers, order: WrapOrder, end: ServerEnd) -> None:
        self._end = end
        self._is_settled = False  # everything is passed on
        self._translation: Translation | None = None
        self._first: RawMessage | None = None  # initialize or server/discover of the host, until its answer
        self._refusal = b""  # the line with which the server refused an initialize
        self._has_refused = False  # a server/discover
        self._timer: asyncio.TimerHandle | None = None  # while our own server/discover is open
        self._held: list[bytes] = []  # lines of the host meanwhile
        self._held_bytes = 0
        self._server = servers.start(order, self)

    @property
    def name(self) -> str:
        return self._server.name

    @property
    def is_open(self) -> bool:
        return self._server.is_open

    def authorize(self, authorization: str) -> None:
        self._server.authorize(authorization)

    def pause(self, paused: bool) -> None:
        self._server.pause(paused)

    async def close(self) -> None:
        self._stop_waiting()
        await self._server.close()

    # -- from the host

    def send(self, line: bytes) -> None:
        if self._is_settled:
            self._server.send(line)
        elif self._translation is not None:
            self._translation.send(line)
        elif self._timer is not None:
            self._hold(line)
        else:
            self._begin(line)

    def _hold(self, line: bytes) -> None:
        self._held_bytes += len(line)
        if self._held_bytes > MOST_HELD:
            raise ServerFull
        self._held.append(line)

    def _begin(self, line: bytes) -> None:
        (message,) = read(line)  # a line of the session, which is one message
        if message.method in (INITIALIZE, DISCOVER):
            self._first = message
        elif message.has_id and message.method and self._first is None:
            if not version_of(message.params):
                self._is_settled = True  # neither a handshake nor an envelope: the server may say so
            elif self._has_refused:
                self._make_handshake(message)
                self.send(line)
                return
            else:  # a host that asks for no versions: we do
                self._first = message
                self._hold(line)
                self._probe(meta_of(message.params))
                return
        self._server.send(line)

    def _probe(self, meta: dict[str, Any]) -> None:
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._probed, REFUSED)
        # Nothing else of the request: a server that refuses its log level would seem to know no envelope.
        kept = {name: meta[name] for name in (ENVELOPE, CLIENT_INFO, CLIENT_CAPABILITIES) if name in meta}
        self._server.send(request(raw(PROBE), DISCOVER, encoded({"_meta": encoded(kept)})))

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make_handshake(self, message: RawMessage) -> None:
        self._translation = ServerWithHandshake(meta_of(message.params), self._server.send, self._end.on_line)

    # -- from the server

    def on_line(self, line: bytes) -> bool:
        if self._is_settled:
            return self._end.on_line(line)
        if self._translation is not None:
            return self._translation.on_line(line)
        try:
            messages = read(line)
        except UNREADABLE:
            return False
        first = self._first
        if len(messages) == 1 and not messages[0].method and first is not None:
            (message,) = messages
            if self._timer is not None and key(message.id or NOTHING) == PROBE:
                self._probed(message)
                return True
            if self._timer is None and bytes(message.id) == bytes(first.id):
                return self._answered(first, message, line)
        return self._end.on_line(line)

    def _answered(self, first: RawMessage, message: RawMessage, line: bytes) -> bool:
        """To initialize, or to server/discover."""
        if not message.error:
            self._is_settled = first.method == INITIALIZE or WITHOUT_HANDSHAKE in _versions(message)
            self._has_refused = not self._is_settled
        elif first.method == DISCOVER:
            self._has_refused = True  # a host that makes a handshake, too, does so now
        else:
            self._refusal = bytes(line)
            self._probe(cast("dict[str, Any]", envelope_of(first.params)))
            return True
        self._first = None
        return self._end.on_line(line)

    def _probed(self, message: RawMessage) -> None:
        self._stop_waiting()
        first, self._first = self._first, None
        held, self._held, self._held_bytes = self._held, [], 0
        assert first is not None, "somebody asked first"
        versions = _versions(message)
        if first.method == INITIALIZE:
            self._decide_for_handshake(first, message, versions)
        elif WITHOUT_HANDSHAKE in versions:
            self._is_settled = True
        else:
            self._make_handshake(first)
        for line in held:
            self.send(line)

    def _decide_for_handshake(self, first: RawMessage, message: RawMessage, versions: list[str]) -> None:
        """The server has refused the handshake of the host."""
        if WITHOUT_HANDSHAKE in versions:
            made = ServerWithoutHandshake(first, self._server.send, self._end.on_line)
            self._translation = made
            made.introduce(message.result)
        elif versions:
            asked = text(parts(first.params).get("protocolVersion"))
            known = f"The wrap translates {WITH_HANDSHAKE[0]} to {WITHOUT_HANDSHAKE}."
            server = f"the server {', '.join(versions)}. {known}"
            self._end.on_line(no_common_version(first.id, asked, server, versions))
        else:
            self._end.on_line(self._refusal)

    def on_unreadable(self, answers: int | str | None, why: str) -> None:
        if answers == PROBE:
            self._probed(REFUSED)
        else:
            self._end.on_unreadable(self._original(answers), why)

    def on_unanswered(self, id: int | str | None, why: str) -> None:
        if id == PROBE:
            self._probed(REFUSED)
        else:
            self._end.on_unanswered(self._original(id), why)

    def on_challenge(self, id: int | str | None, challenge: LoginChallenge, why: str) -> None:
        first = self._first
        if id != PROBE or first is None:
            self._end.on_challenge(self._original(id), challenge, why)
            return
        self._stop_waiting()
        held = [message for line in self._held for message in read(line) if message.has_id and message.method]
        self._first, self._held, self._held_bytes = None, [], 0
        for waiting in dict.fromkeys(key(message.id) for message in (first, *held)):
            self._end.on_challenge(waiting, challenge, why)  # all of them waited for our own request

    def _original(self, id: int | str | None) -> int | str | None:
        return self._translation.original(id) if self._translation is not None else id

    def on_gone(self, why: str) -> None:
        self._stop_waiting()
        self._end.on_gone(why)


def _versions(message: RawMessage) -> list[str]:
    """The versions in an answer to server/discover, or in an error that names them."""
    said: Any = value(parts(message.result).get("supportedVersions")) if message.result else None
    return (
        [one[:32] for one in cast("list[Any]", said)[:20] if isinstance(one, str)]
        if isinstance(said, list)
        else []
    )
