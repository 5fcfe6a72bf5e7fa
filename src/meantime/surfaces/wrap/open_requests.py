"""Requests of a host that a wrapped server has not answered."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Raw

from meantime.ports.runner import Context

from .raw_messages import ENVELOPE, RawMessage, parts, raw, text, value

# How Codex names who calls, in a call's _meta (surfaces/mcp/client_sessions.py).
CALLER, SESSION = "threadId", "sessionId"
TOKEN = "progressToken"
MOST_PROGRESS = 1e100  # beyond, and what is not a number at all, is nonsense


class OpenRequest:
    """`host_id` is the host's own id, as it wrote it; empty for a request of ours."""

    is_task = False  # the host has its answer, and the call continues

    def __init__(self, number: int, host_id: Raw, method: str) -> None:
        self.number = number  # its id at the server
        self.host_id = host_id
        self.method = method
        self.token: Raw | None = None  # the host's, for progress
        self.lasting: Raw | None = None  # the params, if a server that is started again must be asked, too

    def with_token(self, params: Raw) -> Raw:
        """The params with a progress token of ours, where the host gave one."""
        if b"progressToken" not in bytes(params):
            return params
        whole = parts(params)
        return self._marked(whole, parts(whole.get("_meta", Raw())), always=False)

    def _marked(self, whole: dict[str, Raw], meta: dict[str, Raw], *, always: bool) -> Raw:
        self.token = meta.get(TOKEN)
        if self.token is not None or always:
            whole["_meta"] = raw({**meta, TOKEN: self.number})
        return raw(whole)


class OpenToolCall(OpenRequest):
    """A call of a tool, which can become a task."""

    def __init__(self, number: int, host_id: Raw, thread: str) -> None:
        super().__init__(number, host_id, "tools/call")
        self.began = asyncio.get_running_loop().time()
        self.thread = thread
        self.tool = ""
        self._arguments: Raw | None = None
        self.enveloped = False
        self.timer: asyncio.TimerHandle | None = None
        self.seconds = 0.0  # its threshold
        self.reply: asyncio.Future[RawMessage | str] | None = None  # once it is to be recorded; a text: lost
        self.left = False  # the host has cancelled it
        self.context: Context | None = None  # of its task
        self._said: dict[str, Any] | None = None  # how far it is

    def read(self, params: Raw) -> Raw:
        """Takes what it needs from the params, and gives those for the server."""
        whole = parts(params)
        meta = parts(whole.get("_meta", Raw()))
        self.tool = text(whole.get("name"))
        self._arguments = whole.get("arguments")
        self.enveloped = ENVELOPE in meta
        return self._marked(whole, meta, always=True)

    @property
    def input(self) -> Any:
        """Its arguments, read when they are needed."""
        return value(self._arguments)

    @property
    def elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self.began

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def progressed(self, said: dict[str, Any]) -> None:
        self._said = said
        if self.context is not None:
            report_progress(self.context, said)

    def linked(self, context: Context) -> None:
        self.context = context
        if self._said is not None:
            report_progress(context, self._said)


def session_of_call(params: Raw) -> str:
    """The session that a call names in its _meta; empty for none."""
    if b"threadId" not in bytes(params):
        return ""
    meta = parts(parts(params).get("_meta", Raw()))
    caller = text(meta.get(CALLER))
    return caller and (text(meta.get(SESSION)) or caller)


def report_progress(context: Context, said: dict[str, Any]) -> None:
    done, total, message = _number(said.get("progress")), _number(said.get("total")), said.get("message")
    percent = min(100.0, 100.0 * done / total) if done is not None and total else None
    words = message if isinstance(message, str) else None
    if percent is not None or words is not None:
        context.progress(percent, message=words)


def _number(given: Any) -> float | None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < MOST_PROGRESS:
        return None
    return float(given)
