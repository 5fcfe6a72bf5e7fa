"""Clients that know tasks: by the extension, through the SDK's own seam, and by 2025-11-25, as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import mcp_types as types
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel
from tests.waiting import until_async

EXTENSION = "io.modelcontextprotocol/tasks"
ANY: Any = TypeAdapter(dict[str, Any])
OVER = ("completed", "failed", "cancelled")


class PlainRequest(types.Request[dict[str, Any], str]):
    pass


class TaskRequest(PlainRequest):
    name_param = "taskId"


class CreatedTask(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int | None = None


class Told(types.NotificationParams):
    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    task_id: str
    status: str


class Following(ClientExtension):
    """Polls to the end, as a host would."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        return [NotificationBinding(method="notifications/tasks", params_type=Told, handler=self._hear)]

    async def _hear(self, told: Told) -> None:
        await self.heard.put(told.model_dump(by_alias=True))

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self._resolve)]

    async def _resolve(self, created: CreatedTask, context: ClaimContext) -> types.CallToolResult:
        request = TaskRequest(method="tasks/get", params={"taskId": created.task_id})

        async def ended() -> dict[str, Any]:
            state = await context.session.send_request(request, ANY)
            return state if state["status"] in OVER else {}

        state = await until_async(ended, "the task has ended")
        return types.CallToolResult.model_validate(state["result"])


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    kind = TaskRequest if "taskId" in params else PlainRequest
    return await client.session.send_request(kind(method=method, params=params), ANY)


async def call_as_task(client: Client, era: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The task that the server answered with."""
    if era == "legacy":
        params = {"name": name, "arguments": arguments, "task": {}}
        answer = await client.session._dispatcher.send_raw_request("tools/call", params)
        return answer["task"]
    params = types.CallToolRequestParams(name=name, arguments=arguments)
    answer = await client.session.send_request(types.CallToolRequest(params=params), ANY)
    assert answer["resultType"] == "task", answer
    return answer


async def over(client: Client, id: str) -> dict[str, Any]:
    """Its state when it has ended."""

    async def ended() -> dict[str, Any]:
        state = await ask(client, "tasks/get", taskId=id)
        return state if state["status"] in OVER else {}

    return await until_async(ended, "the task has ended")


async def result(client: Client, era: str, id: str) -> dict[str, Any]:
    """Of the call that it was made for."""
    if era == "legacy":
        return await ask(client, "tasks/result", taskId=id)
    return (await over(client, id))["result"]
