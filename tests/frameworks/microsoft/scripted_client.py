"""An agent of agent-framework whose model follows a script, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FileSessionStore,
    FunctionInvocationLayer,
    Message,
)

from meantime import Meantime, Thread
from meantime.integrations.agent_framework import Talk
from meantime.testing.talk import ModelRequest, ToolCall, next_step


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Any] = []
        self.requests: list[ModelRequest] = []
        self.models: list[str] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Any:
        if not stream:
            return self._answer(messages, options)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            answer = await self._answer(messages, options)
            for message in answer.messages:
                yield ChatResponseUpdate(role="assistant", contents=message.contents)
            yield ChatResponseUpdate(contents=[Content.from_usage(answer.usage_details or {})])

        return self._build_response_stream(updates())

    async def _answer(self, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatResponse:
        contents = [content for message in messages for content in message.contents]
        self.models.append(options.get("model") or "")
        self.requests.append(
            ModelRequest(
                prompts=[message.text for message in messages if message.role == "user"],
                results=[str(content.result) for content in contents if content.type == "function_result"],
                tools=[tool.name for tool in options.get("tools") or ()],
                instructions=options.get("instructions") or "",
            )
        )
        step = await next_step(self.steps)
        if isinstance(step, Exception):
            raise step
        said = _call(step) if isinstance(step, ToolCall) else Content.from_text(step)
        return ChatResponse(
            messages=[Message("assistant", [said])],
            usage_details={"input_token_count": 6, "output_token_count": 4, "total_token_count": 10},
        )


def _call(step: ToolCall) -> Content:
    return Content.from_function_call(step.id, step.tool, arguments=step.arguments)


class AgentFrameworkSite:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.client = ScriptedClient()
        self.requests = self.client.requests

    def opened(self, **options: Any) -> AbstractAsyncContextManager[Meantime]:
        return Meantime.open(self._folder / "talk.db", **options)

    def script(self, *steps: Any) -> None:
        self.client.steps += steps

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
        agent = Agent(self.client, "Be helpful.")
        return Talk(agent, thread, *functions, store=FileSessionStore(self._folder), **options)
