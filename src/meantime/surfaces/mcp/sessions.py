"""Whose call it is, where an agent has one server for all of its sessions."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, cast

import mcp_types as types

from meantime.surfaces.cli.conversation import ARGUMENT, thread_of_session

from .conversation import Conversation
from .threads import Whose

NAMED = "threadId"  # in a call's _meta: so Codex names its session
MOST = 1_000  # conversations, with our own: the daemon knows no more of one process by name


class Sessions:
    """A conversation for each session that the client names, and one for what comes without a name.

    What is in `_meta` is the client's own word. An argument may be the model's: it counts only where
    something of ours writes it into every call (`by_argument`). Where somebody has said which conversation
    it is (not `named`), every call is of that one; the argument is in it all the same."""

    def __init__(self, converse: Callable[[str], Conversation], whose: Whose) -> None:
        self.own = converse(whose.thread)
        self.by_argument = whose.by_argument
        self.named = not whose.said
        self._serves = whose.serves
        self._converse = converse
        self._open: OrderedDict[str, Conversation] = OrderedDict()  # the others; last, who called last
        self._beside: set[asyncio.Task[None]] = set()
        self._serves([whose.thread])

    def hear(self, request: types.JSONRPCRequest) -> None:
        """Takes the name out of the arguments, before the server sees them."""
        params: Any = request.params
        if not self.by_argument or request.method != "tools/call" or not isinstance(params, dict):
            return
        arguments = cast("dict[str, Any]", params).get("arguments")
        if isinstance(arguments, dict) and ARGUMENT in arguments:
            session = cast("dict[str, Any]", arguments).pop(ARGUMENT)
            meta: Any = cast("dict[str, Any]", params).get("_meta")
            if meta is None or isinstance(meta, dict):  # what is none the server refuses, as everywhere
                params["_meta"] = {**(meta or {}), NAMED: session}

    def of(self, params: Mapping[str, Any] | None) -> Conversation:
        meta: Any = (params or {}).get("_meta")
        session: Any = cast("dict[str, Any]", meta).get(NAMED) if isinstance(meta, dict) else None
        if not self.named or not isinstance(session, str) or not session:
            return self.own
        thread = thread_of_session(session)
        return self.own if thread == self.own.thread else self._kept(thread)

    def _kept(self, thread: str) -> Conversation:
        if thread not in self._open:
            self._open[thread] = self._converse(thread)
            if len(self._open) >= MOST:
                self._drop(next(iter(self._open)))
            self._serves([self.own.thread, *self._open])
        self._open.move_to_end(thread)
        return self._open[thread]

    def _drop(self, thread: str) -> None:
        """It has not called for longest. What it may not have read is told when it calls again."""
        closing = asyncio.get_running_loop().create_task(self._open.pop(thread).close())
        self._beside.add(closing)
        closing.add_done_callback(self._beside.discard)

    async def close(self) -> None:
        """All at once: each may wait for its last words."""
        closing = (conversation.close() for conversation in (self.own, *self._open.values()))
        await asyncio.gather(*closing, *self._beside)
