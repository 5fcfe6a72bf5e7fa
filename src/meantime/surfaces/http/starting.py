"""Handing work off: a command, a registered tool, an agent; resuming, and sending a call to the back."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Task
from meantime.kernel.work import Agent, Order
from meantime.ports.owner import Owner
from meantime.ports.tasks import Options

from . import answers, asking
from .body import Body
from .endpoint import Table, thread_of
from .parts import Parts
from .wire import wire_task

THREAD = "default"


class StartBody(Body):
    thread: str | None = None
    # the work: exactly one of command, tool and agent
    command: str | list[str] | None = None
    cwd: str | None = None
    env: dict[str, str | None] | None = None
    environment: dict[str, str] | None = None
    stdin: str | None = None
    open_stdin: bool | None = None
    pty: bool | None = None
    merge: bool | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    agent: str | None = None
    prompt: str | None = None
    fork: bool | None = None
    fork_of: str | None = None
    # what every work can have
    parent: str | None = None
    timeout: float | None = None
    description: str = ""
    batch: str | None = None
    tool_call_id: str | None = None
    message_id: str | None = None
    id: str | None = None
    notify: bool = True
    retry: str = ""
    on_limit: str | None = None
    meta: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class ResumeBody(Body):
    prompt: str
    timeout: float | None = None


class ForkBody(Body):
    prompt: str
    parent: str | None = None
    timeout: float | None = None
    description: str = ""


class PromoteBody(Body):
    pass


# What describes each kind of work; its name comes first.
_WORK = {
    "command": ("cwd", "env", "environment", "stdin", "open_stdin", "pty", "merge"),
    "tool": ("arguments",),
    "agent": ("prompt", "cwd", "fork", "fork_of"),
}
_OPTIONS = ("timeout", "description", "batch", "tool_call_id", "message_id", "id", "notify", "retry",
            "on_limit", "meta")  # fmt: skip
_CAMEL = {field.name: field.encode_name for field in msgspec.structs.fields(StartBody)}


class Starting:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks = parts.tasks

    def table(self) -> Table:
        return {
            "POST /v1/tasks": self.start,
            "POST /v1/tasks/{id}/resume": self.resume,
            "POST /v1/tasks/{id}/fork": self.fork,
            "POST /v1/tasks/{id}/promote": self.promote,
        }

    async def start(self, request: Request) -> Response:
        body = await self._parts.body(request, StartBody)
        own = thread_of(request)
        thread = asking.own_thread(body.thread or own or THREAD, own)
        given = {name: getattr(body, name) for name in _OPTIONS}
        fork = bool(body.fork) or body.fork_of is not None
        source, parent = await self._source(body.fork_of, thread), await self._parent(body.parent, own)
        options = Options(**given, fork=fork, fork_of=source, parent=parent)
        return _created(await self._tasks.start(thread, ordered(body, self._parts.owner), options))

    async def resume(self, request: Request) -> Response:
        body = await self._parts.body(request, ResumeBody)
        task = await self._parts.task(request)
        options = Options(timeout=body.timeout)
        return _created(await self._tasks.resume(task.id, thread_of(request), body.prompt, options))

    async def fork(self, request: Request) -> Response:
        """A new task that goes on from all that this one knows; in its thread, and told as this one is."""
        body = await self._parts.body(request, ForkBody)
        source = await self._parts.task(request)
        if source.work.kind != "agent":
            what = f"{source.work.kind} tasks have no conversation to fork."
            raise InvalidInput(what, code="nothing_to_fork", hint="Start a new task.")
        options = Options(
            timeout=body.timeout,
            description=body.description,
            notify=source.notify,
            fork=True,
            fork_of=source.id,
            parent=await self._parent(body.parent, thread_of(request)),
        )
        order = Agent(source.work.name, body.prompt).order()
        return _created(await self._tasks.start(source.thread, order, options))

    async def _source(self, ref: str | None, thread: str) -> str | None:
        return None if ref is None else (await self._tasks.get(ref, thread)).id

    async def _parent(self, id: str | None, own: str | None) -> str | None:
        """What starts here counts for its parent: whoever may see one thread alone cannot name another's.
        An agent's own thread has the id of its task, which lies in the thread that started it."""
        return id if id is None or own is None or id == own else (await self._tasks.get(id, own)).id

    async def promote(self, request: Request) -> Response:
        await self._parts.body(request, PromoteBody)
        task = await self._tasks.promote(request.path_params["id"], thread_of(request))
        return answers.json(wire_task(task, whole=True))


def ordered(body: StartBody, owner: Owner) -> Order:
    kinds = [kind for kind in _WORK if getattr(body, kind) is not None]
    if len(kinds) != 1:
        given = " and ".join(kinds) or "none of them"
        raise InvalidInput(f"A task is exactly one of command, tool and agent, not {given}.")
    (kind,) = kinds
    for other, fields in _WORK.items():
        strange = [name for name in fields if name not in _WORK[kind] and getattr(body, name) is not None]
        if strange:
            raise InvalidInput(f"{_CAMEL[strange[0]]} belongs to {other}, not to {kind}.")
    given = {name: getattr(body, name) for name in _WORK[kind] if getattr(body, name) is not None}
    if body.command is not None:
        return owner.command(body.command, **given)
    if body.tool is not None:
        return owner.tool(body.tool, body.arguments or {})
    where = {"cwd": body.cwd} if body.cwd is not None else {}
    return Agent(body.agent or "", body.prompt or "", **where).order()


def _created(task: Task) -> Response:
    return answers.json(wire_task(task, whole=True), 201, {"Location": f"/v1/tasks/{task.id}"})
