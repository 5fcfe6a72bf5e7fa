"""MCP over Streamable HTTP, for requests that have passed the gate of the HTTP server."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from meantime.conversation.dialect_lookup import OWN, dialect_of
from meantime.kernel.ids import check_id
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.owner import HostCount, Owner
from meantime.ports.tasks import Tasks
from meantime.surfaces.caller.caller_thread import named
from meantime.surfaces.hooks.shown_notices import has_hooks
from meantime.surfaces.http.gate import LOCAL_NAMES
from meantime.surfaces.http.http_settings import HttpSettings
from meantime.surfaces.http.tokens import Caller
from meantime.toolset.owner_catalog import OwnerCatalog
from meantime.toolset.toolset import Toolset

from .client_conversation import ClientConversation
from .notice_delivery import NoticeDelivery, Ride
from .sdk_server import Context, ToolServer

RIDING = "meantime.riding"
THREAD, DIALECT = "meantime.thread", "meantime.dialect"
MOST_SESSIONS, MOST_CONVERSATIONS = 256, 1_000
SESSION = "mcp-session-id"


async def open_http_server(tasks: Tasks, owner: Owner, settings: HttpSettings) -> HttpMcp:
    door = HttpMcp(tasks, owner, settings)
    await door.open()
    return door


class Riding:
    """The answer to one request: whether it got out, with all that rides on it."""

    def __init__(self) -> None:
        self._rides: list[tuple[NoticeDelivery, Ride]] = []
        self._over = False
        self._whole = False
        self._gone = False

    def add(self, inbox: NoticeDelivery, ride: Ride) -> None:
        if self._over:  # its client went away, and the call went on without it
            inbox.give_back(ride)
        else:
            self._rides.append((inbox, ride))

    def wrapped(self, receive: Receive, send: Send) -> tuple[Receive, Send]:
        async def receiving() -> Message:
            message = await receive()
            self._gone = self._gone or message["type"] == "http.disconnect"
            return message

        async def sending(message: Message) -> None:
            await send(message)
            last = message["type"] == "http.response.body" and not message.get("more_body", False)
            self._whole = self._whole or (last and not self._gone)

        return receiving, sending

    def end(self) -> None:
        self._over = True
        for inbox, ride in self._rides:
            if self._whole:
                inbox.sent(ride)
            else:
                inbox.give_back(ride)


class TransportSessions:
    """The SDK's sessions of one server."""

    def __init__(self, door: ToolServer, settings: HttpSettings) -> None:
        self.manager = StreamableHTTPSessionManager(
            door.server,
            security_settings=_security(settings),
            max_request_body_size=settings.body_bytes,
            max_sessions=MOST_SESSIONS,
        )
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keeping: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._keeping = asyncio.get_running_loop().create_task(self._keep())
        await self._ready

    async def _keep(self) -> None:
        """In one asyncio task, as the SDK's cancel scopes want it."""
        async with self.manager.run():
            self._ready.set_result(None)
            await self._closing.wait()

    async def close(self) -> None:
        self._closing.set()
        if self._keeping is not None:
            await asyncio.wait([self._keeping])


class HttpMcp:
    def __init__(self, tasks: Tasks, owner: Owner, settings: HttpSettings) -> None:
        self._tasks = tasks
        self._works = OwnerCatalog(tasks, owner)
        self._settings = settings
        self._conversations: OrderedDict[tuple[str, str, str], ClientConversation] = OrderedDict()
        self._beside = BackgroundTasks()
        self._opening = asyncio.Lock()
        self._doors: dict[
            str, TransportSessions
        ] = {}  # by dialect: a server of the SDK has one guidance for all

    async def open(self) -> None:
        await self._server(OWN)

    async def _server(self, dialect: str) -> TransportSessions:
        async with self._opening:
            if dialect not in self._doors:
                guidance = await Toolset(self._tasks, self._works, "anybody", dialect).guidance()
                door = ToolServer(self, self._settings.version, guidance)
                sessions = TransportSessions(door, self._settings)
                await sessions.open()
                self._doors[dialect] = sessions
            return self._doors[dialect]

    async def close(self) -> None:
        for door in self._doors.values():
            await door.close()
        for conversation in self._conversations.values():
            await conversation.close()
        await self._beside.wait()

    async def handle(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        riding = Riding()
        receiving, sending = riding.wrapped(receive, send)
        thread = caller.thread or Request(scope).query_params.get("thread")
        if thread is not None:
            thread = check_id(thread, "thread")
        dialect = dialect_of(Request(scope).query_params.get("dialect") or OWN).name
        door = await self._server(dialect)
        # A session belongs to whoever opened it: to another token it does not exist.
        token = AccessToken(token="-", client_id=f"thread {thread}" if thread else "person", scopes=[])
        own = {RIDING: riding, THREAD: thread, DIALECT: dialect, "user": AuthenticatedUser(token)}
        try:
            await door.manager.handle_request({**scope, **own}, receiving, sending)
        finally:
            riding.end()
            if scope["method"] == "DELETE":
                self._left(Request(scope).headers.get(SESSION, ""))

    # -- what the server asks

    async def conversation(self, ctx: Context) -> ClientConversation:
        request: Any = ctx.request  # Streamable HTTP always has one
        session = request.headers.get(SESSION, "")
        client = ctx.session.client_params
        name = named(client.client_info.name) if client is not None else "anybody"
        thread = request.scope[THREAD] or (f"mcp-{named(session)}" if session else f"mcp-{name}")
        return self._kept(thread, session or name, request.scope[DIALECT])

    def carries(self, ctx: Context, conversation: ClientConversation, ride: Ride) -> None:
        request: Any = ctx.request  # Streamable HTTP always has one
        request.scope[RIDING].add(conversation.inbox, ride)

    def hosts(self) -> Sequence[HostCount]:
        """Clients that have called lately: by the newer protocol nobody says that it leaves."""
        return [HostCount(one.thread, "C", "mcp") for one in self._conversations.values() if one.is_alive]

    def _kept(self, thread: str, client: str, dialect: str) -> ClientConversation:
        """One for each client of a thread: what one has read, another has not."""
        key = (thread, client, dialect)
        found = self._conversations.get(key)
        if found is None:
            folder = self._settings.folder
            hooks = partial(has_hooks, folder, thread) if folder else lambda: False
            found = ClientConversation(self._tasks, self._works, thread, dialect=dialect, has_hooks=hooks)
            self._conversations[key] = found
        self._conversations.move_to_end(key)
        found.called()
        if len(self._conversations) > MOST_CONVERSATIONS:
            self._drop(next(iter(self._conversations)))
        return found

    def _left(self, session: str) -> None:
        """Its client has ended it: what that may not have read is told to the next one."""
        for key in [key for key in self._conversations if session and key[1] == session]:
            self._drop(key)

    def _drop(self, key: tuple[str, str, str]) -> None:
        self._beside.start(self._conversations.pop(key).close())


def _security(settings: HttpSettings) -> TransportSecuritySettings:
    """The gate has looked already, and more closely. The SDK looks at nothing unless it is told to."""
    local = [*LOCAL_NAMES, *(f"{name}:*" for name in LOCAL_NAMES)]
    hosts = [*local, *settings.hosts, "meantime"]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins
    )
