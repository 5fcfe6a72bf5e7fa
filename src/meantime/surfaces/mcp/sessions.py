"""Whose call it is, where an agent has one server for all of its sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import mcp_types as types

from meantime.surfaces.cli.conversation import ARGUMENT, thread_of_session

from .conversation import Conversation

NAMED = "threadId"  # in a call's _meta: so Codex names its session


class Sessions:
    """A conversation for each session that the client names, and one for what comes without a name.

    What is in `_meta` is the client's own word. An argument may be the model's: it counts only where
    something of ours writes it into every call (`by_argument`). Where somebody has said which conversation
    it is (not `named`), every call is of that one; the argument is in it all the same."""

    def __init__(
        self, converse: Callable[[str], Conversation], own: str, *, named: bool, by_argument: bool
    ) -> None:
        self.own = converse(own)
        self.by_argument = by_argument
        self.named = named
        self._converse = converse
        self._open = {own: self.own}

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
        if thread not in self._open:
            self._open[thread] = self._converse(thread)
        return self._open[thread]

    async def close(self) -> None:
        for conversation in self._open.values():
            await conversation.close()
