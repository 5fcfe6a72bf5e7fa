"""A model without a provider: it answers from a script, streams what it says, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from tests.waiting import until_async

from meantime import Handle, Meantime, Status, Thread


class Asked:
    """One request to the model."""

    def __init__(self, messages: list[ModelMessage], info: AgentInfo) -> None:
        self.messages = list(messages)
        self.tools = [tool.name for tool in info.function_tools]
        self.instructions = info.instructions

    def parts(self, kind: type[Any]) -> list[Any]:
        return [part for message in self.messages for part in message.parts if isinstance(part, kind)]

    @property
    def prompts(self) -> list[str]:
        return [part.content for part in self.parts(UserPromptPart)]

    @property
    def results(self) -> list[str]:
        return [part.model_response_str() for part in self.parts(ToolReturnPart)]

    @property
    def is_valid(self) -> bool:
        """Every call has one result, and the other way round: providers refuse anything else."""
        calls = sorted(part.tool_call_id for part in self.parts(ToolCallPart))
        return calls == sorted(part.tool_call_id for part in self.parts(ToolReturnPart))


class Script:
    """Each step is a text, a call or several, an exception to raise, or an event to wait for."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.asked: list[Asked] = []
        self.model = FunctionModel(self._answer, stream_function=self._stream)
        self.waits = asyncio.Event()  # it has come to an event that is not set

    async def _step(self, messages: list[ModelMessage], info: AgentInfo) -> Any:
        self.asked.append(Asked(messages, info))
        assert self.asked[-1].is_valid
        step = self.steps.pop(0) if self.steps else f"ECHO {self.asked[-1].prompts[-1]}"
        while isinstance(step, asyncio.Event):
            self.waits.set()
            await step.wait()
            step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return [step] if isinstance(step, ToolCallPart) else step

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = await self._step(messages, info)
        return ModelResponse(parts=[TextPart(step)] if isinstance(step, str) else step)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        step = await self._step(messages, info)
        if isinstance(step, str):
            for place, word in enumerate(step.split(" ")):
                yield f" {word}" if place else word
            return
        for place, call in enumerate(step):
            yield {
                place: DeltaToolCall(
                    name=call.tool_name, json_args=call.args_as_json_str(), tool_call_id=call.tool_call_id
                )
            }


def call(tool: str, id: str = "c1", **arguments: Any) -> ToolCallPart:
    return ToolCallPart(tool, arguments, tool_call_id=id)


async def until_waiting(mt: Meantime, id: str) -> None:
    async def waits() -> bool:
        return (await mt.get(id)).status is Status.WAITING

    await until_async(waits, "the task waits for an answer", lambda: mt.get(id))


async def until_said(thread: Thread, task: Handle, text: str) -> None:
    async def said() -> bool:
        return any(text in (line.text, line.tool) for line in await thread.lines(task))

    await until_async(said, f"it says {text!r}", lambda: thread.lines(task))
