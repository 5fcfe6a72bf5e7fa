"""The conversations of a host: which one a request belongs to, and whether hooks or a plugin tell it.

One rule, the first that holds: whoever starts the wrap names a conversation (`said`); a plugin of ours names
it in the call's arguments (OpenCode, with `by_session`); the host names it in the call's `_meta` (Codex); a
hook has noted it, which the wrap itself looks up (Gemini CLI, Cursor, Claude Code after /clear); the host's
environment names it, and otherwise its process stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from meantime.surfaces.caller.caller_thread import META_CALLER, META_SESSION, thread_of_session

from .raw_messages import parts, text

if TYPE_CHECKING:
    from .open_requests import OpenToolCall
    from .wrap_hello import WrapHello, WrapParts


class HostConversations:
    def __init__(self, shared: WrapParts, hello: WrapHello) -> None:
        self._has_hooks = shared.has_hooks
        self._said = hello.said
        self._by_session = hello.by_session
        self.thread = hello.thread

    def on_thread(self, thread: str) -> None:
        """The wrap has found out which conversation it is from now on."""
        if not self._said and thread:
            self.thread = thread

    def of(self, params: Raw) -> str:
        """The thread of a request."""
        named = "" if self._said else _session_in_meta(params)
        return thread_of_session(named) if named else self.thread

    def assign(self, call: OpenToolCall) -> None:
        """Takes a name out of the arguments of a call, before the server sees them."""
        session = call.take_session() if self._by_session else ""
        call.has_plugin = bool(session)
        if session and not self._said:
            call.thread = thread_of_session(session)

    @property
    def has_hooks(self) -> bool:
        """Whether hooks tell the conversation of a request that is not a call."""
        return self._has_hooks(self.thread)

    def tells(self, call: OpenToolCall) -> bool:
        """Whether hooks or a plugin tell the conversation of this call."""
        return call.has_plugin or self._has_hooks(call.thread)


def _session_in_meta(params: Raw) -> str:
    """Empty for none."""
    if META_CALLER.encode() not in bytes(params):
        return ""
    meta = parts(parts(params).get("_meta", Raw()))
    caller = text(meta.get(META_CALLER))
    return caller and (text(meta.get(META_SESSION)) or caller)
