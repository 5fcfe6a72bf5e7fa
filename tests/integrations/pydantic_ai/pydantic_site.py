"""A Pydantic AI agent whose model follows a script, and keeps what it was asked."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from meantime import Meantime, Thread
from meantime.integrations.pydantic_ai import Talk
from meantime.testing.talk import ModelRequest, ToolCall, next_step


class PydanticSite:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.steps: list[Any] = []
        self.requests: list[ModelRequest] = []

    def opened(self, **options: Any) -> AbstractAsyncContextManager[Meantime]:
        return Meantime.open(self._folder / "talk.db", **options)

    def script(self, *steps: Any) -> None:
        self.steps += steps

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
        agent = Agent(FunctionModel(self.answer), instructions="Be helpful.")
        return Talk(agent, thread, *functions, history=self._folder / f"{thread.id}.messages", **options)

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        self.requests.append(
            ModelRequest(
                prompts=[str(part.content) for part in parts if isinstance(part, UserPromptPart)],
                results=[part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)],
                tools=[tool.name for tool in info.function_tools],
                instructions=info.instructions or "",
            )
        )
        step = await next_step(self.steps)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, ToolCall):
            return ModelResponse(parts=[ToolCallPart(step.tool, step.arguments, tool_call_id=step.id)])
        return ModelResponse(parts=[TextPart(step)])
