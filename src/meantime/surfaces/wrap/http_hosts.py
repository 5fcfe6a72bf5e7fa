"""Hosts that take a URL: configured servers, wrapped, on the HTTP server of the daemon, behind its gate. A
session of MCP is a session with a server of its own; without sessions (2026-07-28) it is a conversation."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from typing import NamedTuple

from starlette.datastructures import Headers as RequestHeaders
from starlette.types import Receive, Scope, Send

from meantime.surfaces.caller.caller_thread import named, thread_of_session
from meantime.surfaces.http.responses import Refusal
from meantime.surfaces.http.wrap_endpoint import WrapRequest

from .host_session import HostSession
from .http_host import HttpHost
from .http_reply import Headers
from .protocol_versions import CLIENT_INFO, meta_of, version_of
from .raw_messages import UNREADABLE, RawMessage, key, parts, read, text
from .task_offers import INITIALIZE
from .wrap_hello import WrapHello, WrapParts

MOST_SESSIONS = 256
SESSION = "mcp-session-id"


class SessionKey(NamedTuple):
    """The key of a session, which does not exist for another server, caller or conversation."""

    name: str
    caller: str  # the thread that its token is bound to
    id: str  # of the session, or of the conversation where there are no sessions
    login: str = ""  # without sessions: a digest of the host's own, which the connection to the server is for


class HttpHosts:
    """`keep` is told of each session that begins."""

    def __init__(self, shared: WrapParts, keep: Callable[[HostSession], None]) -> None:
        self._shared = shared
        self._keep = keep
        self._hosts: dict[SessionKey, HttpHost] = {}
        self._salt = secrets.token_bytes(16)  # of digests, which nobody else can compare

    async def handle(self, asked: WrapRequest, scope: Scope, receive: Receive, send: Send) -> None:
        session = RequestHeaders(scope=scope).get(SESSION, "")
        if scope["method"] == "POST":
            await self._post(asked, session, receive, send)
            return
        host = self._found(asked, session)
        if scope["method"] == "DELETE":
            host.leave()
            await _empty(send, 204)
        elif not await host.listen([], receive, send):
            raise Refusal(409, "has_stream", "This session has a stream already.")

    def close(self) -> None:
        """Streams end; the sessions are closed by those that keep them."""
        for host in self._hosts.values():
            host.end_replies()

    # -- sessions

    async def _post(self, asked: WrapRequest, session: str, receive: Receive, send: Send) -> None:
        messages = _messages(asked.body)
        cuts, headers = False, Headers()
        if session:
            host = self._found(asked, session)
        elif messages[0].method == INITIALIZE:
            session = secrets.token_hex(16)
            key = SessionKey(asked.name, asked.caller, f"session {session}")
            host = self._begun(asked, key, asked.thread or thread_of_session(session))
            headers = [(SESSION.encode(), session.encode())]
        elif version_of(messages[0].params):
            cuts = True
            host = self._conversing(asked, messages[0])
        else:
            text = "This request has neither a session nor the version of a protocol without one."
            raise Refusal(400, "no_session", text, f"Begin with initialize, and send its {SESSION}.")
        host.session.server.authorize(asked.authorization)
        if not any(one.is_request for one in messages):
            host.take(messages)
            await _empty(send, 202)
            return
        await host.post(messages, headers, receive, send, cuts=cuts)
        if headers and host.has_failed:
            host.leave()

    def _found(self, asked: WrapRequest, session: str) -> HttpHost:
        host = self._hosts.get(SessionKey(asked.name, asked.caller, f"session {session}"))
        if host is None:
            raise Refusal(404, "no_session", "There is no such session.", "Begin a new one with initialize.")
        return host

    def _conversing(self, asked: WrapRequest, message: RawMessage) -> HttpHost:
        client = named(text(parts(meta_of(message.params).get(CLIENT_INFO, message.result)).get("name")))
        thread = asked.thread or f"mcp-{client}"
        key = SessionKey(asked.name, asked.caller, f"thread {thread}", self._digest(asked.authorization))
        return self._hosts.get(key) or self._begun(asked, key, thread)

    def _digest(self, login: str) -> str:
        return hashlib.blake2b(login.encode(), key=self._salt).hexdigest() if login else ""

    def _begun(self, asked: WrapRequest, key: SessionKey, thread: str) -> HttpHost:
        order = self._shared.servers.configured(asked.name, os.environ)
        if order is None:
            hint = "Name one of [mcp.servers] in the configuration."
            raise Refusal(404, "no_server", "There is no configured MCP server of this name.", hint)
        if len(self._hosts) >= MOST_SESSIONS:
            raise Refusal(503, "too_many_sessions", f"{MOST_SESSIONS} sessions are open.", "Close one.")
        hello = WrapHello(
            version="", order=order, thread=thread, said=bool(asked.thread), threshold=asked.threshold
        )
        host = self._hosts[key] = HttpHost(self._shared, hello, lambda: self._hosts.pop(key, None) and None)
        self._keep(host.session)
        return host


def _messages(body: bytes) -> list[RawMessage]:
    try:
        found = read(body)
    except UNREADABLE as problem:
        raise Refusal(400, "not_json_rpc", f"The body is not JSON-RPC: {problem}") from None
    if not found or any(one.has_id and key(one.id) is None for one in found):
        raise Refusal(
            400, "not_json_rpc", "The body has no message, or one whose id is not a number or a text."
        )
    return found


async def _empty(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})
