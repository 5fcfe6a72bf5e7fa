"""The methods of A2A, for one agent."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

from meantime.kernel.errors import NotFound
from meantime.kernel.ids import check_id
from meantime.kernel.model import Json
from meantime.ports.store import Query
from meantime.surfaces.agent_runs.conversations import STOP_SECONDS, AgentConversations, AgentMessage
from meantime.surfaces.agent_runs.numbered_run import NumberedRun
from meantime.surfaces.agent_runs.run_follower import RunFollower
from meantime.surfaces.http.dependencies import Dependencies
from meantime.surfaces.http.protocol_endpoint import PUSHES
from meantime.surfaces.http.task_lookup import own_thread, place_of

from .a2a_encoding import (
    STATES,
    Wire,
    artifact_update,
    line_message,
    result_artifact,
    status,
    status_update,
    wire_a2a_task,
)
from .message_params import A2aTaskParams, ListParams, PushConfig, PushParams, SendParams
from .push_sender import PushSender
from .rpc_messages import INVALID_PARAMS, NOT_CANCELABLE, UNSUPPORTED, RpcRefusal

PAGE_SIZE = 50
MOST_RUNS = 1_000


class A2aSite:
    """The parts that all methods share."""

    def __init__(self, deps: Dependencies) -> None:
        self.deps = deps
        self.tasks = deps.tasks
        self.conversations = AgentConversations(deps.tasks, deps.owner)
        self.follower = RunFollower(deps.tasks, self.conversations, deps.clock, deps.settings.heartbeat)
        folder = deps.settings.folder
        path = None if folder is None else folder / PUSHES
        self.pushes = PushSender(self.conversations, self.follower, deps.clock, path)


class A2aCall(NamedTuple):
    """One request, checked."""

    site: A2aSite
    agent: str
    own: str | None  # the one thread that the caller may see; None is every thread
    params: Any

    @property
    def by(self) -> str:
        return "user" if self.own is None else "agent"

    async def run(self, id: str) -> NumberedRun:
        found = await self.site.conversations.run(id, self.own)
        if found.task.work.name != self.agent:
            raise NotFound(f"The agent {self.agent} has no task {id[:128]!r}.")
        return found

    async def task(self, run: NumberedRun, history: int | None = None) -> Wire:
        page = await self.site.follower.lines(run)
        lines = [one for one in page.lines if one.line.run == run.number]
        return wire_a2a_task(run, lines, history)


async def _sent(call: A2aCall) -> NumberedRun:
    """The run that the message began, or answered."""
    given: SendParams = call.params
    message, push = given.message, given.configuration.task_push_notification_config
    text = message.text
    if message.task_id:
        run = await _continued(call, message.task_id, message.context_id, text)
    else:
        context = message.context_id or call.own or str(uuid.uuid4())
        thread = own_thread(check_id(context, "contextId"), call.own)
        run = await call.site.conversations.say(thread, call.agent, AgentMessage(text))
    if push is not None:
        await call.site.pushes.add(run, push)
    return run


async def _continued(call: A2aCall, id: str, context: str, text: str) -> NumberedRun:
    run = await call.run(id)
    if context not in ("", run.thread):
        raise RpcRefusal(INVALID_PARAMS, f"The task {run.id} is in the context {run.thread}.")
    if run.waits:
        return await call.site.conversations.answer(run, text, call.by)
    if run.ended:
        hint = "Send the message with its contextId, and without a taskId."
        raise RpcRefusal(UNSUPPORTED, f"The task {run.id} has ended.", hint, "task_ended")
    return await call.site.conversations.say(run.thread, call.agent, AgentMessage(text))


async def send_message(call: A2aCall) -> AsyncGenerator[Json]:
    """Waits until the task has ended or needs an answer, unless the client wants to have it at once."""
    run = await _sent(call)
    yield None
    given: SendParams = call.params
    if not given.configuration.return_immediately:
        async for step in call.site.follower.follow(run):
            run = step.run
            yield None
    yield {"task": await call.task(run, given.configuration.history_length)}


async def stream_message(call: A2aCall) -> AsyncGenerator[Json]:
    run = await _sent(call)
    async for event in _events(call, run):
        yield event


async def subscribe(call: A2aCall) -> AsyncGenerator[Json]:
    run = await call.run(call.params.id)
    if run.ended:
        text = f"The task {run.id} has ended."
        raise RpcRefusal(UNSUPPORTED, text, "Get it with GetTask.", "task_ended")
    async for event in _events(call, run):
        yield event


async def _events(call: A2aCall, run: NumberedRun) -> AsyncIterator[Json]:
    """The task as it is, then what its agent says, its result, and its state whenever that changes."""
    page = await call.site.follower.lines(run)
    lines = [one for one in page.lines if one.line.run == run.number]
    yield {"task": wire_a2a_task(run, lines)}
    state = run.status
    async for step in call.site.follower.follow(run, page.next):
        run = step.run
        told = [line_message(run, one) for one in step.lines]
        for message in told:
            if message is not None and message["role"] == "ROLE_AGENT":
                yield status_update(run, {"state": "TASK_STATE_WORKING", "message": message})
        artifact = result_artifact(run)
        if artifact is not None:
            yield artifact_update(run, artifact)
        if run.status is not state or run.stands:
            state = run.status
            yield status_update(run, status(run))
        yield None


async def get_task(call: A2aCall) -> Json:
    return await call.task(await call.run(call.params.id), call.params.history_length)


async def cancel_task(call: A2aCall) -> Json:
    run = await call.run(call.params.id)
    if run.ended:
        raise RpcRefusal(NOT_CANCELABLE, f"The task {run.id} has ended.", code="task_ended")
    await call.site.conversations.cancel(run, call.by)
    await call.site.tasks.wait([run.task.id], None, timeout=STOP_SECONDS)
    return await call.task(await call.run(run.id))


async def list_tasks(call: A2aCall) -> Json:
    """The tasks of a context; without one, the newest of every conversation with this agent."""
    given: ListParams = call.params
    size = given.page_size or PAGE_SIZE
    if given.context_id:
        thread = own_thread(check_id(given.context_id, "contextId"), call.own)
        runs = await call.site.conversations.runs(thread, MOST_RUNS, 0)
        found = [run for run in runs if run.task.work.name == call.agent]
        start = place_of(given.page_token or None) or 0
        total, following = len(found), start + size if len(found) > start + size else None
        found = found[start : start + size]
    else:
        before = place_of(given.page_token or None)
        query = Query(call.own, agent=call.agent, hidden=True, limit=size, before=before)
        page = await call.site.tasks.page(query, most=10_000)
        found = [NumberedRun(task, task.run.number) for task in page.tasks if task.work.kind == "agent"]
        total, following = page.total, page.next
    shown = [run for run in found if given.status in ("", STATES[run.status])]
    tasks = [await call.task(run, given.history_length or 0) for run in shown]
    if not given.include_artifacts:
        tasks = [{name: value for name, value in one.items() if name != "artifacts"} for one in tasks]
    token = "" if following is None else f"p{following}"
    return {"tasks": tasks, "nextPageToken": token, "pageSize": size, "totalSize": total}


async def create_push(call: A2aCall) -> Json:
    given: PushConfig = call.params
    return await call.site.pushes.add(await call.run(given.task_id), given)


async def get_push(call: A2aCall) -> Json:
    return call.site.pushes.find(await call.run(call.params.task_id), call.params.id)


async def list_pushes(call: A2aCall) -> Json:
    found = call.site.pushes.of(await call.run(call.params.task_id))
    return {"configs": list(found), "nextPageToken": ""}


async def delete_push(call: A2aCall) -> Json:
    await call.site.pushes.remove((await call.run(call.params.task_id)).id, call.params.id)
    return {}


class Method(NamedTuple):
    """One of both: an answer, or a generator of answers, in which None says that it is not ready yet."""

    params: type[Any]
    answer: Callable[[A2aCall], Awaitable[Json]] | None = None
    parts: Callable[[A2aCall], AsyncGenerator[Json]] | None = None
    streams: bool = False  # each part is an event; otherwise the last one is the answer
    writes: bool = False


METHODS = {
    "SendMessage": Method(SendParams, parts=send_message, writes=True),
    "SendStreamingMessage": Method(SendParams, parts=stream_message, streams=True, writes=True),
    "GetTask": Method(A2aTaskParams, get_task),
    "ListTasks": Method(ListParams, list_tasks),
    "CancelTask": Method(A2aTaskParams, cancel_task, writes=True),
    "SubscribeToTask": Method(A2aTaskParams, parts=subscribe, streams=True),
    "CreateTaskPushNotificationConfig": Method(PushConfig, create_push, writes=True),
    "GetTaskPushNotificationConfig": Method(PushParams, get_push, writes=True),
    "ListTaskPushNotificationConfigs": Method(PushParams, list_pushes, writes=True),
    "DeleteTaskPushNotificationConfig": Method(PushParams, delete_push, writes=True),
}
