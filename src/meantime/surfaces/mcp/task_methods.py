"""tasks/get and its like, by both protocols. The ledger is the only list of them, so they outlive us."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from meantime.kernel.errors import Ambiguous, InvalidInput, MeantimeError, NotFound
from meantime.kernel.model import Task

from . import mcp_tasks
from .client_conversation import ClientConversation, shown
from .elicitation import answer_of

Context = ServerRequestContext[Any, Any]
OLDER = "2025-11-25"  # the one version that has tasks of its own
LOOK = 20.0  # seconds of one wait for a result


class TaskParams(types.RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any] = Field(default_factory=dict)


def declares(ctx: Context) -> bool:
    """Whether this request's client knows the extension."""
    found = ctx.session.client_capabilities
    return found is not None and mcp_tasks.EXTENSION in (found.extensions or {})


class TaskMethods:
    def __init__(self, conversation: Callable[[Context], Awaitable[ClientConversation]]) -> None:
        self._conversation = conversation

    def serve(self, server: Server[Any]) -> None:
        for name in ("get", "cancel", "result"):
            server.add_request_handler(f"tasks/{name}", TaskParams, getattr(self, f"_{name}"))
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/list", types.PaginatedRequestParams, self._list)

    async def calls_of_2025(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """A call that asks for a task. The SDK would take our answer to it for a broken result."""
        given: Any = (ctx.params or {}).get("task")
        if ctx.method != "tools/call" or ctx.protocol_version != OLDER or not isinstance(given, Mapping):
            return await call_next(ctx)
        if ctx.session.client_params is None:  # it has not shaken hands: that is said further in
            return await call_next(ctx)
        params = types.CallToolRequestParams.model_validate(dict(ctx.params or {}), by_name=False)
        conversation = await self._conversation(ctx)
        try:
            starts = conversation.takes_tasks and await conversation.toolset.starts(params.name)
            task = await conversation.start(params.name, params.arguments) if starts else None
        except MeantimeError as problem:
            raise _refused(problem) from None
        if task is None:
            raise MCPError(types.METHOD_NOT_FOUND, f"{params.name} cannot be called as a task.")
        return {"task": mcp_tasks.state_2025(task)}

    async def _get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        conversation, task = await self._task_of(ctx, params)
        if not _is_modern(ctx):
            return mcp_tasks.state_2025(task)
        found = await mcp_tasks.whole_state(conversation.tasks, task)
        conversation.gave(task)
        return found

    async def _result(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        """Waits for it, as 2025-11-25 says."""
        if _is_modern(ctx):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", "tasks/result")
        conversation, task = await self._task_of(ctx, params)
        while not task.ended:
            (task,) = await conversation.tasks.wait([task.id], conversation.thread, timeout=LOOK)
            conversation.inbox.follows(task.id)
        found = await mcp_tasks.result(conversation.tasks, task)
        conversation.gave(task)
        return {**found, "_meta": {mcp_tasks.RELATED: {"taskId": task.id}}}

    async def _cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        conversation, task = await self._task_of(ctx, params)
        if not task.ended:
            answer = await conversation.tasks.cancel(
                task.id, conversation.thread, by="agent", reason="cancelled through MCP"
            )
            task = answer.task
        elif not _is_modern(ctx):
            raise MCPError(types.INVALID_PARAMS, f"The task has ended: it is {task.status}.")
        return {} if _is_modern(ctx) else mcp_tasks.state_2025(task)

    async def _update(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        """Answers to what it asks. An elicitation is answered by a person, by the protocol's own rule. One
        to a question that is not open any more is passed over: the client may be late."""
        if not _is_modern(ctx):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", "tasks/update")
        conversation, task = await self._task_of(ctx, params)
        question = task.question
        if question is None or question.id not in params.input_responses:
            return {}
        answer = answer_of(question, params.input_responses[question.id])
        if answer is not None:
            try:
                await conversation.tasks.answer(task.id, conversation.thread, answer, by="user")
            except MeantimeError as problem:
                raise _refused(problem) from None
        return {}

    async def _list(self, ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        if _is_modern(ctx):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", "tasks/list")
        conversation = await self._conversation(ctx)
        return {"tasks": [mcp_tasks.state_2025(task) for task in await conversation.made()]}

    async def _task_of(self, ctx: Context, params: TaskParams) -> tuple[ClientConversation, Task]:
        if _is_modern(ctx) and not declares(ctx):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {mcp_tasks.EXTENSION: {}}}}
            text = f"This needs the extension {mcp_tasks.EXTENSION} among the client's capabilities."
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, text, needed)
        conversation = await self._conversation(ctx)
        try:
            return conversation, await conversation.task(params.task_id)
        except (NotFound, Ambiguous, InvalidInput):  # all the same to those who guess
            raise MCPError(types.INVALID_PARAMS, "Task not found.") from None
        except MeantimeError as problem:
            raise _refused(problem) from None


def _is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _refused(problem: MeantimeError) -> MCPError:
    code = types.INVALID_PARAMS if isinstance(problem, InvalidInput) else types.INTERNAL_ERROR
    return MCPError(code, shown(problem), {"code": problem.code})
