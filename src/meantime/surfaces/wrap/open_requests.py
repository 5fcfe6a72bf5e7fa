"""Requests of a host that a wrapped server has not answered."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Raw

from meantime.ports.runner import Context
from meantime.surfaces.caller.caller_thread import ARGUMENT

from .raw_messages import ENVELOPE, RawMessage, encoded, parts, raw, text, value
from .task_offers import BY_2025, BY_EXTENSION, Introduction, declares_tasks

TOKEN = "progressToken"
ANSWERS = 30.0  # seconds for the answer to a request of ours
MOST_PROGRESS = 1e100  # beyond, and what is not a number at all, is nonsense


class OpenRequest:
    """`host_id` is the host's own id, as it wrote it; empty for a request of ours."""

    is_task = False  # the host has its answer, and the call continues

    def __init__(self, number: int, host_id: Raw, method: str) -> None:
        self.number = number  # its id at the server
        self.host_id = host_id
        self.method = method
        self.token: Raw | None = None  # the host's, for progress
        self.declares_tasks = False  # its client takes tasks of MCP
        self.lasting: Raw | None = None  # the params, if a server that is started again must be asked, too

    def with_token(self, params: Raw) -> Raw:
        """The params with a progress token of ours, where the host gave one."""
        if b"progressToken" not in bytes(params):
            return params
        whole = parts(params)
        return self._marked(whole, parts(whole.get("_meta", Raw())), always=False)

    def progress(self, params: dict[str, Raw]) -> Raw | None:
        """The params of a notification of progress, for the host; None where it wants none."""
        return encoded({**params, TOKEN: self.token}) if self.token is not None else None

    def _marked(self, whole: dict[str, Raw], meta: dict[str, Raw], *, always: bool) -> Raw:
        self.token = meta.get(TOKEN)
        if self.token is not None or always:
            whole["_meta"] = raw({**meta, TOKEN: self.number})
        return raw(whole)


class OwnRequest(OpenRequest):
    """One that we make; `reply` is the server's answer, or a text that says why there is none."""

    def __init__(self, number: int, method: str) -> None:
        super().__init__(number, Raw(), method)
        self.reply: asyncio.Future[RawMessage | str] = asyncio.get_running_loop().create_future()

    def ended(self, said: RawMessage | str) -> None:
        if not self.reply.done():
            self.reply.set_result(said)

    async def answer(self) -> RawMessage | str:
        try:
            async with asyncio.timeout(ANSWERS):
                return await self.reply
        except TimeoutError:
            return f"The server has not answered for {ANSWERS:g} s."


class OpenToolCall(OpenRequest):
    """A call of a tool, which can become a task."""

    def __init__(self, number: int, host_id: Raw, thread: str) -> None:
        super().__init__(number, host_id, "tools/call")
        self.began = asyncio.get_running_loop().time()
        self.thread = thread
        self.has_plugin = False  # one of ours tells its conversation
        self.tool = ""
        self._arguments: Raw | None = None
        self.enveloped = False
        self._whole: dict[str, Raw] = {}  # its params, until they are sent
        self.meta: dict[str, Raw] = {}  # and its _meta
        self.form = ""  # of the MCP task that answers it, if it goes to the background
        self.is_task_at_once = False
        self.timer: asyncio.TimerHandle | None = None
        self.seconds: float | None = None  # its threshold; None: it stays in the foreground
        self.learns = False  # how long calls of its tool take
        self.usual: float | None = None  # seconds, if they usually take longer than the threshold
        self.task = ""  # the id of its task, once it is recorded
        self.reply: asyncio.Future[RawMessage | str] | None = None  # once it is to be recorded; a text: lost
        self.left = False  # the host has cancelled it
        self.context: Context | None = None  # of its task
        self._said: dict[str, Any] | None = None  # how far it is

    def read(self, params: Raw) -> None:
        """Takes what it needs from the params."""
        whole = self._whole = parts(params)
        self.meta = parts(whole.get("_meta", Raw()))
        self.tool = text(whole.get("name"))
        self._arguments = whole.get("arguments")
        self.enveloped = ENVELOPE in self.meta

    def take_session(self) -> str:
        """Takes the session that a plugin of ours has put there out of the arguments; empty for none."""
        if self._arguments is None or ARGUMENT.encode() not in bytes(self._arguments):
            return ""
        given = parts(self._arguments)
        session = text(given.pop(ARGUMENT, None))
        self._arguments = self._whole["arguments"] = encoded(given)
        return session

    def choose_form(self, introduction: Introduction, *, has_hooks: bool) -> None:
        """A client takes a task for an answer where it says so: by the extension in each request, unless
        hooks tell the conversation; by 2025-11-25 by asking for one, which is then the only answer. A server
        that has tasks is asked for its own."""
        if self.enveloped:
            self.form = BY_EXTENSION if declares_tasks(self.meta) and not has_hooks else ""
        elif "task" in self._whole and (introduction.offers_tasks or introduction.server_has_tasks):
            self.form = BY_2025
            if not introduction.server_has_tasks:
                del self._whole["task"]
                self.is_task_at_once = True

    def params(self) -> Raw:
        """For the server."""
        whole, self._whole = self._whole, {}
        return self._marked(whole, self.meta, always=self.seconds is not None)

    def params_again(self, more: dict[str, Raw]) -> Raw:
        """For the server, which has asked for more."""
        given = {} if self._arguments is None else {"arguments": self._arguments}
        return self._marked({"name": raw(self.tool), **given, **more}, self.meta, always=True)

    def params_about_task(self, given: dict[str, Any]) -> Raw:
        """For a request about the task that the server made of it, with the envelope of the call."""
        if not self.enveloped:
            return raw(given)
        meta = {name: said for name, said in self.meta.items() if name != TOKEN}
        return raw({**given, "_meta": encoded(meta)})

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

    def progress(self, params: dict[str, Raw]) -> Raw | None:
        self._said = {name: value(params.get(name)) for name in ("progress", "total", "message")}
        if self.context is not None:
            report_progress(self.context, self._said)
        return None if self.is_task else super().progress(params)

    def linked(self, context: Context) -> None:
        self.context = context
        if self._said is not None:
            report_progress(context, self._said)


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
