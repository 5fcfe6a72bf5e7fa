"""Handing work off: a command, a tool, an agent, a watch; resuming, and sending a call to the back."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from meantime.kernel.due_times import delay_of, time_of
from meantime.kernel.errors import InvalidInput
from meantime.kernel.watches import Watch
from meantime.kernel.work import Agent, Order
from meantime.ports.owner import Owner
from meantime.ports.tasks import Tasks, options_from

from .dependencies import Dependencies
from .routing import RequestContext
from .task_encoding import wire_task
from .task_lookup import find, own_thread, scope
from .task_requests import ForkBody, PromoteBody, ResumeBody, StartBody, WatchBody
from .task_schemas import WireTask

THREAD = "default"
# The fields that describe each kind of work; its name comes first.
_WORK = {
    "command": ("cwd", "env", "environment", "stdin", "open_stdin", "pty", "merge"),
    "tool": ("arguments",),
    "agent": ("prompt", "cwd", "fork", "fork_of"),
    "watch": (),
}


async def start(deps: Dependencies, asked: RequestContext[None, StartBody]) -> WireTask:
    body, own = asked.body, asked.thread
    thread = own_thread(body.thread or own or THREAD, own)
    options = options_from(
        body,
        tool_call_id=_tool_call(body),
        fork=bool(body.fork) or body.fork_of is not None,
        fork_of=await _source(deps.tasks, body.fork_of, thread),
        parent=await _parent(deps.tasks, body.parent, own),
        delay=delay_of(body.delay),
        at=time_of(body.at),
    )
    if body.watch is not None:
        body = replace(body, watch=await _own_watch(deps.tasks, body.watch, own))
    return wire_task(await deps.tasks.start(thread, ordered(body, deps.owner), options), whole=True)


async def _own_watch(tasks: Tasks, watch: WatchBody, own: str | None) -> WatchBody:
    """A caller that is bound to a thread watches nothing of another: what it names becomes the whole id of
    what was found there, as the same text may be the whole id of another thread's task."""
    if own is None:
        return watch
    if watch.batch is not None:
        await tasks.batch(watch.batch, own)
        raise InvalidInput("The token of a thread cannot watch a batch.", hint="Watch its thread, or a task.")
    if watch.thread is not None:
        scope(watch.thread, own)
    named = {name: ref for name in ("log", "task") if (ref := getattr(watch, name)) is not None}
    return replace(watch, **{name: (await tasks.get(ref, own)).id for name, ref in named.items()})


async def resume(deps: Dependencies, asked: RequestContext[None, ResumeBody]) -> WireTask:
    task = await find(deps.tasks, asked.subject, asked.thread)
    options = options_from(asked.body)
    return wire_task(await deps.tasks.resume(task.id, asked.thread, asked.body.prompt, options), whole=True)


async def fork(deps: Dependencies, asked: RequestContext[None, ForkBody]) -> WireTask:
    """A new task that goes on from all that this one knows; in its thread, and told as this one is."""
    body = asked.body
    source = await find(deps.tasks, asked.subject, asked.thread)
    if source.work.kind != "agent":
        what = f"{source.work.kind} tasks have no conversation to fork."
        raise InvalidInput(what, code="nothing_to_fork", hint="Start a new task.")
    parent = await _parent(deps.tasks, body.parent, asked.thread)
    options = options_from(body, notify=source.notify, fork=True, fork_of=source.id, parent=parent)
    order = Agent(source.work.name, body.prompt).order()
    return wire_task(await deps.tasks.start(source.thread, order, options), whole=True)


async def promote(deps: Dependencies, asked: RequestContext[None, PromoteBody]) -> WireTask:
    return wire_task(await deps.tasks.promote(asked.subject, asked.thread), whole=True)


async def _source(tasks: Tasks, ref: str | None, thread: str) -> str | None:
    return None if ref is None else (await tasks.get(ref, thread)).id


async def _parent(tasks: Tasks, id: str | None, own: str | None) -> str | None:
    """The new task counts for its parent: a caller that may see one thread alone cannot name another's.
    An agent's own thread has the id of its task, which is in the thread that started it."""
    return id if id is None or own is None or id == own else (await tasks.get(id, own)).id


def _tool_call(body: StartBody) -> str | None:
    if body.tool_call_id is not None and body.older_tool_call_id not in (None, body.tool_call_id):
        raise InvalidInput("toolCallID and toolCallId are not the same.", hint="Give toolCallID alone.")
    return body.older_tool_call_id if body.tool_call_id is None else body.tool_call_id


def ordered(body: StartBody, owner: Owner) -> Order:
    kinds = [kind for kind in _WORK if getattr(body, kind) is not None]
    if len(kinds) != 1:
        given = " and ".join(kinds) or "none of them"
        raise InvalidInput(f"A task is exactly one of command, tool, agent and watch, not {given}.")
    (kind,) = kinds
    for other, fields in _WORK.items():
        strange = [name for name in fields if name not in _WORK[kind] and getattr(body, name) is not None]
        if strange:
            raise InvalidInput(f"{_on_wire(strange[0])} belongs to {other}, not to {kind}.")
    given = {name: getattr(body, name) for name in _WORK[kind] if getattr(body, name) is not None}
    if body.command is not None:
        return owner.command(body.command, **given)
    if body.tool is not None:
        return owner.tool(body.tool, body.arguments or {})
    if body.watch is not None:
        return Watch(**msgspec.structs.asdict(body.watch)).order()
    where = {"cwd": body.cwd} if body.cwd is not None else {}
    return Agent(body.agent or "", body.prompt or "", **where).order()


def _on_wire(name: str) -> str:
    return next(field.encode_name for field in msgspec.structs.fields(StartBody) if field.name == name)
