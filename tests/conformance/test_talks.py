"""A Pydantic AI agent that talks passes every check of the public suite. The other frameworks are in an
environment of their own: tests/frameworks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
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
from meantime.testing import exercise_talk
from meantime.testing.talk import TALK_CHECKS, Check, ModelRequest, TalkFixture, ToolCall

pytestmark = pytest.mark.anyio


class PydanticSite:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._steps: list[Any] = []
        self.requests: list[ModelRequest] = []

    def opened(self, **options: Any) -> AbstractAsyncContextManager[Meantime]:
        return Meantime.open(self._folder / "talk.db", **options)

    def script(self, *steps: Any) -> None:
        self._steps += steps

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
        agent = Agent(FunctionModel(self._answer), instructions="Be helpful.")
        return Talk(agent, thread, *functions, history=self._folder / f"{thread.id}.messages", **options)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        self.requests.append(
            ModelRequest(
                prompts=[str(part.content) for part in parts if isinstance(part, UserPromptPart)],
                results=[part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)],
                tools=[tool.name for tool in info.function_tools],
                instructions=info.instructions or "",
            )
        )
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, ToolCall):
            return ModelResponse(parts=[ToolCallPart(step.tool, step.arguments, tool_call_id=step.id)])
        return ModelResponse(parts=[TextPart(step)])


@pytest.mark.parametrize("check", TALK_CHECKS, ids=lambda check: check.__name__)
async def test_an_agent_of_pydantic_ai(check: Check, tmp_path: Path):
    await check(TalkFixture(PydanticSite(tmp_path)))


async def test_a_talk_that_forgets_to_ack_is_named_with_its_check(tmp_path: Path):
    class Forgetful(Talk):
        async def _settle(self, turn: object) -> None: ...

    class Site(PydanticSite):
        def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
            return Forgetful(Agent(FunctionModel(self._answer)), thread, *functions, **options)

    @asynccontextmanager
    async def made() -> AsyncIterator[PydanticSite]:
        yield Site(tmp_path)

    with pytest.raises(AssertionError, match=r"^a_slow_one_goes_on_and_the_agent_is_woken_and_told_once: "):
        await exercise_talk(made)
