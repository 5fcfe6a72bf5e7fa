"""An agent of the OpenAI Agents SDK whose model follows a script, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from openai.types.responses import ResponseCompletedEvent

from agents import Agent, ModelResponse, SQLiteSession, Usage
from meantime import Meantime, Thread
from meantime.integrations.openai_agents import Talk
from meantime.integrations.openai_agents.session_items import spoken
from meantime.testing.talk import ModelRequest, ToolCall


class ScriptedModel(Model):
    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.requests: list[ModelRequest] = []

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: Any,
        *rest: Any,
        **more: Any,
    ) -> ModelResponse:
        items: list[Any] = [{"role": "user", "content": input}] if isinstance(input, str) else input
        self.requests.append(
            ModelRequest(
                prompts=[spoken(item) for item in items if item.get("role") == "user"],
                results=[str(item["output"]) for item in items if item.get("type") == "function_call_output"],
                tools=[tool.name for tool in tools],
                instructions=system_instructions or "",
            )
        )
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        output = _call(step) if isinstance(step, ToolCall) else assistant_message(step)
        return ModelResponse(output=[output], usage=Usage(requests=1, total_tokens=10), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[ResponseCompletedEvent]:
        raise NotImplementedError("nothing here streams")


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

    def opened(self) -> AbstractAsyncContextManager[Meantime]:
        return Meantime.open(self._folder / "talk.db")

    def script(self, *steps: Any) -> None:
        self._model.steps += steps

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
        agent = Agent("agent", instructions="Be helpful.", model=self._model)
        session = SQLiteSession(thread.id, self._folder / "sessions.db")
        return Talk(agent, thread, *functions, session=session, **options)
