"""An agent of the ADK whose model follows a script, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, FunctionCall, GenerateContentResponseUsageMetadata, Part
from pydantic import PrivateAttr

from meantime import Meantime, Thread
from meantime.integrations.google_adk import Talk
from meantime.testing.talk import ModelRequest, ToolCall, next_step

USED = GenerateContentResponseUsageMetadata(total_token_count=10)


class ScriptedModel(BaseLlm):
    _steps: list[Any] = PrivateAttr(default_factory=list)
    _requests: list[ModelRequest] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._requests.append(asked(llm_request))
        step = await next_step(self._steps)
        if isinstance(step, Exception):
            raise step
        part = _call(step) if isinstance(step, ToolCall) else Part(text=step)
        yield LlmResponse(content=Content(role="model", parts=[part]), usage_metadata=USED)


def asked(request: LlmRequest) -> ModelRequest:
    parts = [part for content in request.contents if content.role == "user" for part in content.parts or ()]
    answers = [part.function_response.response for part in parts if part.function_response]
    return ModelRequest(
        prompts=[part.text for part in parts if part.text],
        results=[str((answer or {}).get("result")) for answer in answers],
        tools=list(request.tools_dict),
        instructions=str(request.config.system_instruction),
    )


def _call(step: ToolCall) -> Part:
    given: Any = step.arguments  # the ADK's are always an object
    return Part(function_call=FunctionCall(name=step.tool, args=given, id=step.id))


class AdkSite:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.model = ScriptedModel(model="scripted")
        self.requests = self.model._requests

    def opened(self, **options: Any) -> AbstractAsyncContextManager[Meantime]:
        return Meantime.open(self._folder / "talk.db", **options)

    def script(self, *steps: Any) -> None:
        self.model._steps += steps

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
        agent = LlmAgent(name="agent", model=self.model, instruction="Be helpful.")
        sessions = SqliteSessionService(str(self._folder / "sessions.db"))
        return Talk(agent, thread, *functions, sessions=sessions, **options)
