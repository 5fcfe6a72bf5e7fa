"""MCP on this process's stdin and stdout, for one client. Lines have a limit, and we know what the client
has taken of our answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from meantime.conversation.dialect_lookup import OWN
from meantime.daemon.home import home
from meantime.ports.tasks import Tasks
from meantime.surfaces.hooks.shown_notices import has_hooks
from meantime.system.line_splitter import LongLine, StreamLines
from meantime.toolset.work_catalog import Works

from .client_conversation import ClientConversation
from .client_sessions import ClientSessions, ClientThread
from .client_thread import instructions
from .handshake import ACKNOWLEDGED, LISTEN
from .notice_delivery import NoticeDelivery, Ride
from .pipes import Out, own_pipes
from .sdk_server import Context, ToolServer
from .standard_streams import own_streams

LONGEST = 4 << 20  # bytes of a line
LAST_WORDS = 2.0  # seconds for what is still asked when the client closes our stdin


async def serve(tasks: Tasks, works: Works, whose: ClientThread, version: str, dialect: str = OWN) -> None:
    """Until the client closes our stdin, or is gone."""
    async with own_pipes(LONGEST) as (lines, out):

        def converse(thread: str) -> ClientConversation:
            hooks = partial(has_hooks, home().folder, thread)
            return ClientConversation(tasks, works, thread, out.is_taken, dialect, hooks)

        sessions = ClientSessions(converse, whose)
        guidance = await sessions.own.toolset.guidance()
        await StdioTransport(sessions, version, guidance).run(lines, out, own_streams().replay)


class StdioTransport:
    def __init__(self, sessions: ClientSessions, version: str, guidance: str) -> None:
        self._sessions = sessions
        by_argument = sessions.by_argument
        said = instructions(guidance, sessions.own.thread, said=not sessions.named, by_argument=by_argument)
        self._tool_server = ToolServer(self, version, said, more=by_argument)
        self._riding: dict[
            Any, tuple[NoticeDelivery, Ride]
        ] = {}  # by the request whose answer takes them along
        self._asked: set[Any] = set()  # requests without an answer
        self._replayed: dict[Any, anyio.Event] = {}  # those whose answer the client has already
        self._quiet = anyio.Event()  # there are none, and there will be none
        self._ended = False

    async def conversation(self, ctx: Context) -> ClientConversation:
        return self._sessions.of(ctx.params)

    def carries(self, ctx: Context, conversation: ClientConversation, ride: Ride) -> None:
        self._riding[ctx.request_id] = (conversation.inbox, ride)

    async def run(self, lines: StreamLines, out: Out, replay: Sequence[bytes] = ()) -> None:
        """`replay`: the client has said these before, and has the answers."""
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        server = self._tool_server.server
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._read, lines, to_server, out, replay)
                group.start_soon(self._write, from_server, out)
                await server.run(from_client, to_client, server.create_initialization_options())
                group.cancel_scope.cancel()
        except* (BrokenPipeError, ConnectionResetError):
            pass  # nobody reads our answers any more
        finally:
            with anyio.CancelScope(shield=True):
                await self._sessions.close()

    async def _read(self, lines: StreamLines, to_server: Any, out: Out, replay: Sequence[bytes]) -> None:
        async with to_server:
            for line in replay:
                await self._replay(line, to_server)
            async for line in lines:
                if isinstance(line, LongLine):
                    await _refuse(out, f"A message has at most {LONGEST} bytes; this one had {line.size}.")
                    continue
                if not line.strip():
                    continue
                try:
                    message = _message(line)
                except (ValueError, RecursionError):
                    await _refuse(out, "This line is not a message of JSON-RPC.")
                    continue
                if isinstance(message, types.JSONRPCRequest):
                    self._sessions.note_session(message)
                    if message.method != LISTEN:  # which is answered when it is over, and not before
                        self._asked.add(message.id)
                await to_server.send(SessionMessage(message))
            self._ended = True
            with anyio.move_on_after(LAST_WORDS):
                await out.flush()
                if self._asked:
                    await self._quiet.wait()

    async def _replay(self, line: bytes, to_server: Any) -> None:
        """One at a time: the client may use the number of an answered request again."""
        message = _message(line)
        answered = anyio.Event()
        if isinstance(message, types.JSONRPCRequest):
            self._replayed[message.id] = answered
        else:
            answered.set()
        await to_server.send(SessionMessage(message))
        await answered.wait()

    async def _write(self, from_server: Any, out: Out) -> None:
        async with from_server:
            async for said in from_server:
                message = said.message
                if self._has_already(message):
                    continue
                await out.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    self._answered(message.id)

    def _has_already(self, message: types.JSONRPCMessage) -> bool:
        """Whether it answers, or acknowledges, what was replayed."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            id: Any = message.id
        elif isinstance(message, types.JSONRPCNotification) and message.method == ACKNOWLEDGED:
            id = (message.params or {}).get("_meta", {}).get(SUBSCRIPTION_ID_META_KEY)
        else:
            return False
        replayed = self._replayed.pop(id, None)
        if replayed is not None:
            replayed.set()
        return replayed is not None

    def _answered(self, id: Any) -> None:
        if id in self._riding:
            inbox, ride = self._riding.pop(id)
            inbox.sent(ride)
        self._asked.discard(id)
        if self._ended and not self._asked:
            self._quiet.set()


def _message(line: bytes) -> types.JSONRPCMessage:
    """ValueError or RecursionError for what is not one."""
    return types.jsonrpc_message_adapter.validate_json(line, by_name=False)


async def _refuse(out: Out, text: str) -> None:
    error = {"code": types.PARSE_ERROR, "message": text}
    await out.write(json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode() + b"\n")
