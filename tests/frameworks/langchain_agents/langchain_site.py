"""An agent of LangChain whose model follows a script, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import PrivateAttr

from meantime import Meantime, Thread
from meantime.integrations.langchain import Background, Talk, TalkBackground
from meantime.testing.talk import ModelRequest, ToolCall, next_step

USED = {"input_tokens": 6, "output_tokens": 4, "total_tokens": 10}


class ScriptedModel(BaseChatModel):
    _steps: list[Any] = PrivateAttr(default_factory=list)
    _requests: list[ModelRequest] = PrivateAttr(default_factory=list)
    _tools: list[str] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        self._tools = [tool["name"] if isinstance(tool, dict) else tool.name for tool in tools]
        return self

    def _generate(self, messages: Any, *rest: Any, **more: Any) -> ChatResult:
        self._requests.append(self._asked(messages))
        return self._said(self._steps.pop(0))

    async def _agenerate(self, messages: Any, *rest: Any, **more: Any) -> ChatResult:
        self._requests.append(self._asked(messages))
        return self._said(await next_step(self._steps))

    def _asked(self, messages: Any) -> ModelRequest:
        return ModelRequest(
            prompts=[message.text for message in messages if isinstance(message, HumanMessage)],
            results=[message.text for message in messages if isinstance(message, ToolMessage)],
            tools=self._tools,
            instructions="".join(message.text for message in messages if isinstance(message, SystemMessage)),
        )

    @staticmethod
    def _said(step: Any) -> ChatResult:
        if isinstance(step, Exception):
            raise step
        message = (
            step
            if isinstance(step, AIMessage)
            else _call(step)
            if isinstance(step, ToolCall)
            else AIMessage(step)
        )
        message = message.model_copy(update={"usage_metadata": USED})
        return ChatResult(generations=[ChatGeneration(message=message)])


def _call(step: ToolCall) -> AIMessage:
    if isinstance(step.arguments, str):
        wrong: Any = {"name": step.tool, "args": step.arguments, "id": step.id, "error": "not JSON"}
        return AIMessage("", invalid_tool_calls=[wrong])
    return AIMessage("", tool_calls=[{"name": step.tool, "args": step.arguments, "id": step.id}])


class LangChainSite:
    def __init__(self, folder: Path, saver: AsyncSqliteSaver, create: Callable[..., Any]) -> None:
        self._folder = folder
        self._saver = saver
        self._create = create
        self.model = ScriptedModel()
        self.requests = self.model._requests

    def opened(self, **options: Any) -> AbstractAsyncContextManager[Meantime]:
        return Meantime.open(self._folder / "talk.db", **options)

    def script(self, *steps: Any) -> None:
        self.model._steps += steps

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
        # A Talk takes both: one of them is exercised with each kind of agent.
        kind = TalkBackground if self._create is create_agent else Background
        background = kind(thread, *functions, **options)
        agent = self._create(
            self.model, middleware=[background], system_prompt="Be helpful.", checkpointer=self._saver
        )
        return Talk(agent, background)


@asynccontextmanager
async def langchain_site(
    folder: Path, create: Callable[..., Any] = create_agent
) -> AsyncIterator[LangChainSite]:
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        yield LangChainSite(folder, saver, create)
