"""The session of a call, where an agent has one server for all of its sessions."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import mcp_types as types

from meantime.ports.event_loop import BackgroundTasks
from meantime.surfaces.caller.caller_thread import (
    ARGUMENT,
    GEMINI,
    META_CALLER,
    META_SESSION,
    thread_of_session,
)

from .client_conversation import ClientConversation

MOST = 1_000  # conversations, with our own: the daemon knows no more of one process by name


class ClientThread(NamedTuple):
    """The conversation of the calls on stdin."""

    thread: str
    said: bool  # somebody has said which; otherwise a call may name its own
    by_argument: bool  # also among its arguments
    serves: Callable[[Sequence[str]], None]  # is told of all that there are, whenever there are others
    noted: Callable[[str, object], str] = lambda tool, arguments: ""  # whose call it is, by a hook's word


class ClientSessions:
    """A conversation for each session that the client names, and one for what comes without a name.

    The values in `_meta` are the client's own. An argument may be the model's: it counts only where
    something of ours writes it into every call (`by_argument`). Where somebody has said which conversation
    it is (not `named`), every call is of that one; the argument is in it all the same."""

    def __init__(self, converse: Callable[[str], ClientConversation], whose: ClientThread) -> None:
        self.own = converse(whose.thread)
        self.by_argument = whose.by_argument
        self.named = not whose.said
        self._serves = whose.serves
        self._noted = whose.noted
        self._converse = converse
        self._open: OrderedDict[str, ClientConversation] = OrderedDict()  # the others; last, who called last
        self._beside = BackgroundTasks()
        self._serves([whose.thread])

    def note_session(self, request: types.JSONRPCRequest) -> None:
        """Takes the name out of the arguments, before the server sees them. A hook's word counts before it:
        where there is one, the argument is what the model wrote."""
        params: Any = request.params
        if not self.by_argument or request.method != "tools/call" or not isinstance(params, dict):
            return
        call = cast("dict[str, Any]", params)
        arguments: Any = call.get("arguments")
        noted = self._noted(str(call.get("name")), arguments)
        named = cast("dict[str, Any]", arguments).pop(ARGUMENT, "") if isinstance(arguments, dict) else ""
        meta: Any = call.get("_meta")
        if (noted or named) and (meta is None or isinstance(meta, dict)):  # any other the server refuses
            call["_meta"] = {**(meta or {}), META_CALLER: noted or named, META_SESSION: noted or named}
            conversation = self.of(call)
            conversation.is_named_by_us = True
            # Gemini CLI has the results of its tools twice after a resume: its hooks alone tell it.
            conversation.inbox.tells = not (noted and os.environ.get(GEMINI))

    def of(self, params: Mapping[str, Any] | None) -> ClientConversation:
        meta: Any = (params or {}).get("_meta")
        said = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
        session: Any = said.get(META_CALLER) and (said.get(META_SESSION) or said[META_CALLER])
        if not self.named or not isinstance(session, str) or not session:
            return self.own
        thread = thread_of_session(session)
        return self.own if thread == self.own.thread else self._kept(thread)

    def _kept(self, thread: str) -> ClientConversation:
        if thread not in self._open:
            self._open[thread] = self._converse(thread)
            if len(self._open) >= MOST:
                self._drop(next(iter(self._open)))
            self._serves([self.own.thread, *self._open])
        self._open.move_to_end(thread)
        return self._open[thread]

    def _drop(self, thread: str) -> None:
        """It has not called for longest. Notices that it may not have read are told when it calls again."""
        self._beside.start(self._open.pop(thread).close())

    async def close(self) -> None:
        """All at once: each may wait for its last words."""
        closing = (conversation.close() for conversation in (self.own, *self._open.values()))
        await asyncio.gather(*closing, self._beside.wait())
