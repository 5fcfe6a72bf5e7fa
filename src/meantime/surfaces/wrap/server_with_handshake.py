"""A server of MCP 2025-11-25 or older, for a host of 2026-07-28 that makes no handshake: it is made in its
place. The parts of requests and results that only the newer protocol has are removed and added.

The server is told that its client answers no questions (sampling, elicitation, roots): the newer protocol
asks them in the answer to a call, and a call of the older one goes on while it asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec import Raw

from .protocol_versions import (
    ACKNOWLEDGED,
    CLIENT_INFO,
    LISTEN,
    LISTS_CHANGED,
    LOG_LEVEL,
    PREFIX,
    SUBSCRIPTION,
    UPDATED,
    WITH_HANDSHAKE,
    WITHOUT_HANDSHAKE,
    meta_of,
    no_common_version,
    version_of,
    with_meta,
)
from .raw_messages import (
    CANCELLED,
    INITIALIZED,
    NOTHING,
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
from .repeated_requests import LEVEL, SUBSCRIBE, UNSUBSCRIBE
from .task_offers import DISCOVER, INITIALIZE
from .tool_answers import SERVER_INFO

HANDSHAKE = "meantime-handshake"  # the id of ours
METHOD_NOT_FOUND = -32601
MOST_STREAMS, MOST_URIS = 100, 1_000  # of one host; URIs of one stream
CACHED = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
CACHE: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"}  # nothing is said about it, so nothing is kept
COMPLETE = raw("complete")


class ServerWithHandshake:
    """`to_server` and `to_host` pass a message on. `meta` is that of the host's first request."""

    def __init__(
        self, meta: dict[str, Raw], to_server: Callable[[bytes], None], to_host: Callable[[bytes], bool]
    ) -> None:
        self._to_server = to_server
        self._to_host = to_host
        self._held: list[bytes] | None = []  # until the server has answered the handshake
        self._introduction: dict[str, Raw] = {}
        self._refused = NOTHING
        self._methods: dict[int | str, str] = {}  # of open requests, by id
        self._streams: dict[int | str, tuple[Raw, dict[str, Raw]]] = {}  # by id: with what each wants
        self._level = b""
        self._count = 0
        hello = {
            "protocolVersion": WITH_HANDSHAKE[-1],
            "capabilities": {},
            "clientInfo": meta.get(CLIENT_INFO) or {"name": "host", "version": ""},
        }
        to_server(request(raw(HANDSHAKE), INITIALIZE, raw(hello)))

    # -- from the host

    def send(self, line: bytes) -> None:
        if self._held is not None:
            self._held.append(line)
            return
        (message,) = read(line)  # a line of the session, which is one message
        if self._refused:
            if message.method and message.has_id:
                self._refuse(message)
        elif message.has_id and message.method:
            self._requested(message)
        elif message.method == CANCELLED and not self._ended(parts(message.params)):
            self._to_server(line)

    def _refuse(self, message: RawMessage) -> None:
        said = text(parts(self._refused).get("message")) or "nothing"
        server = f"the server refused both server/discover and the handshake of {WITH_HANDSHAKE[-1]}: {said}"
        self._to_host(no_common_version(message.id, version_of(message.params), server, []))

    def _requested(self, message: RawMessage) -> None:
        version = version_of(message.params)
        number = key(message.id)
        if version != WITHOUT_HANDSHAKE or number is None:
            server = f"the server {text(self._introduction.get('protocolVersion'))} and older."
            self._to_host(no_common_version(message.id, version or "none", server, [WITHOUT_HANDSHAKE]))
        elif message.method == DISCOVER:
            self._to_host(answer(message.id, self._discovered()))
        elif message.method == LISTEN:
            self._listen(message, number)
        else:
            meta = meta_of(message.params)
            self._set_level(meta.get(LOG_LEVEL, NOTHING))
            kept = {name: one for name, one in meta.items() if not name.startswith(PREFIX)}
            self._methods[number] = message.method
            self._to_server(request(message.id, message.method, with_meta(message.params, kept)))

    def _discovered(self) -> Raw:
        found = {
            name: self._introduction[name]
            for name in ("capabilities", "instructions")
            if name in self._introduction
        }
        info = self._introduction.get("serverInfo") or raw({"name": "server", "version": ""})
        more = {**CACHE, "supportedVersions": [WITHOUT_HANDSHAKE], "resultType": "complete"}
        return raw({"capabilities": {}, **found, **more, "_meta": {SERVER_INFO: info}})

    def _set_level(self, level: Raw) -> None:
        can = parts(self._introduction.get("capabilities", NOTHING))
        if level and bytes(level) != self._level and "logging" in can:
            self._level = bytes(level)
            self._own(LEVEL, {"level": level})

    def _own(self, method: str, params: dict[str, Any]) -> None:
        """A request whose answer nobody needs."""
        self._count += 1
        self._to_server(request(raw(f"meantime-own-{self._count}"), method, raw(params)))

    def _listen(self, message: RawMessage, number: int | str) -> None:
        if len(self._streams) >= MOST_STREAMS:
            self._to_host(refusal(message.id, -32603, f"{MOST_STREAMS} streams of changes are open."))
            return
        wanted = parts(parts(message.params).get("notifications", NOTHING))
        self._streams[number] = (message.id.copy(), wanted)
        for uri in _uris(wanted):
            self._own(SUBSCRIBE, {"uri": uri})
        self._tell(message.id, ACKNOWLEDGED, {"notifications": encoded(wanted)})

    def _tell(self, stream: Raw, method: str, params: dict[str, Raw]) -> None:
        meta = {**parts(params.get("_meta", NOTHING)), SUBSCRIPTION: stream}
        self._to_host(notification(method, encoded({**params, "_meta": encoded(meta)})))

    def _ended(self, params: dict[str, Raw]) -> bool:
        """The host wants no changes any more."""
        number = key(params.get("requestId", NOTHING))
        found = self._streams.pop(number, None) if number is not None else None
        if found is not None:
            others = {uri for _, wanted in self._streams.values() for uri in _uris(wanted)}
            for uri in set(_uris(found[1])) - others:
                self._own(UNSUBSCRIBE, {"uri": uri})
        return found is not None

    # -- from the server

    def original(self, id: int | str | None) -> int | str | None:
        if id == HANDSHAKE:
            self._greeted(RawMessage(error=raw({"message": "it did not answer"})))
        return id

    def on_line(self, line: bytes) -> bool:
        try:
            messages = read(line)
        except UNREADABLE:
            return False
        for message in messages:
            if not message.method:
                self._replied(message)
            elif not message.has_id:
                self._notified(message)
            elif message.method == "ping":
                self._to_server(answer(message.id, raw({})))
            else:
                said = f"The client speaks MCP {WITHOUT_HANDSHAKE}, and cannot be asked by this server."
                self._to_server(refusal(message.id, METHOD_NOT_FOUND, said))
        return True

    def _replied(self, message: RawMessage) -> None:
        number = key(message.id) if message.id else None
        if number == HANDSHAKE:
            self._greeted(message)
            return
        method = self._methods.pop(number, "") if number is not None else ""
        if not method or not message.result:
            self._to_host(answer(message.id, message.result, message.error))
            return
        cache = {name: raw(one) for name, one in CACHE.items()} if method in CACHED else {}
        whole = {**cache, **parts(message.result), "resultType": COMPLETE}
        self._to_host(answer(message.id, encoded(whole)))

    def _greeted(self, message: RawMessage) -> None:
        held, self._held = self._held or [], None
        self._introduction = parts(message.result)
        self._refused = message.error.copy() if message.error else NOTHING
        if not self._refused:
            self._to_server(notification(INITIALIZED))
        for line in held:
            self.send(line)

    def _notified(self, message: RawMessage) -> None:
        params = parts(message.params)
        wants = next((name for name, method in LISTS_CHANGED.items() if method == message.method), "")
        if not wants and message.method != UPDATED:
            self._to_host(notification(message.method, message.params))
            return
        for id, wanted in list(self._streams.values()):
            is_wanted = value(wanted.get(wants)) if wants else text(params.get("uri")) in _uris(wanted)
            if is_wanted:
                self._tell(id, message.method, params)


def _uris(wanted: dict[str, Raw]) -> list[str]:
    found: Any = value(wanted.get("resourceSubscriptions"))
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [one for one in listed[:MOST_URIS] if isinstance(one, str)]
