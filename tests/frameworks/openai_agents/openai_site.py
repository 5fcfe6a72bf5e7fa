"""An agent of the OpenAI Agents SDK whose model follows a script, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from agents.models.interface import Model
from agents.testing import assistant_message, function_call

from agents import Agent, ModelResponse, SQLiteSession, Usage, testing
from meantime import Meantime, Thread
from meantime.integrations.openai_agents import Talk
from meantime.integrations.openai_agents.session_items import spoken
from meantime.testing.talk import ModelRequest, ToolCall, next_step

USED = Usage(requests=1, input_tokens=6, output_tokens=4, total_tokens=10)


class ScriptedModel(Model):
    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.requests: list[ModelRequest] = []

    async def _answer(self, instructions: str | None, given: Any, tools: Any) -> Any:
        items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        self.requests.append(
            ModelRequest(
                prompts=[spoken(item) for item in items if item.get("role") == "user"],
                results=[str(item["output"]) for item in items if item.get("type") == "function_call_output"],
                tools=[tool.name for tool in tools],
                instructions=instructions or "",
            )
        )
        step = await next_step(self.steps)
        if isinstance(step, Exception):
            raise step
        return _call(step) if isinstance(step, ToolCall) else assistant_message(step)

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: Any,
        *rest: Any,
        **more: Any,
    ) -> ModelResponse:
        output = await self._answer(system_instructions, input, tools)
        return ModelResponse(output=[output], usage=USED, response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: Any,
        *rest: Any,
        **more: Any,
    ) -> AsyncIterator[Any]:
        output = await self._answer(system_instructions, input, tools)
        streamed = testing.ScriptedModel([[output]], default_usage=USED)
        async for event in streamed.stream_response(
            system_instructions, input, model_settings, tools, *rest, **more
        ):
            yield event


def _call(step: ToolCall) -> Any:
    made: Any = function_call(step.tool, {}, call_id=step.id)
    if isinstance(step.arguments, str):
        made.arguments = step.arguments
        return made
    return function_call(step.tool, step.arguments, call_id=step.id)


class OpenAISite:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._model = ScriptedModel()
        self.requests = self._model.requests

    def opened(self, **options: Any) -> AbstractAsyncContextManager[Meantime]:
        return Meantime.open(self._folder / "talk.db", **options)

    def script(self, *steps: Any) -> None:
        self._model.steps += steps

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
        agent = Agent("agent", instructions="Be helpful.", model=self._model)
        session = SQLiteSession(thread.id, self._folder / "sessions.db")
        return Talk(agent, thread, *functions, session=session, **options)
