"""Turns of an agent of the OpenAI Agents SDK: what happens is kept, told and counted as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from agents.items import (
    ItemHelpers,
    MessageOutputItem,
    ModelResponse,
    ReasoningItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents.run import CallModelData, ModelInputData
from agents.stream_events import RawResponsesStreamEvent, RunItemStreamEvent, StreamEvent

from agents import Agent, RunConfig, RunHooks, Runner, RunResultStreaming
from meantime.integrations.agent_host.host_errors import model_failed, raised
from meantime.integrations.framework_talk.framework_turns import FrameworkTurn, FrameworkTurns
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.lines import Kind, Line
from meantime.kernel.payloads import as_text, jsonable
from meantime.kernel.questions import permission
from meantime.ports.session import Brief, Hearer, Prompt, Turned

from . import item_lines
from .item_log import ItemLog, copied
from .session_items import spoken, user


class OpenAITurns(FrameworkTurns["OpenAITurn"]):
    """Its sessions are files of items."""

    def fork(self, path: Path, copy: Path) -> None:
        copied(path, copy)

    def lines(self, path: Path) -> Sequence[Line]:
        return list(item_lines.lines(ItemLog(path).items))

    async def _turn(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> OpenAITurn:
        return OpenAITurn(agent, ItemLog(path), prompt, brief, hearer)


class OpenAITurn(FrameworkTurn, RunHooks[Any]):
    def __init__(
        self, agent: PythonAgent, record: ItemLog, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> None:
        super().__init__(prompt, hearer)
        self.record = record
        self._agent = _restricted(agent.agent, () if prompt.last else brief.settings.tools)
        self._deps = agent.deps(brief) if callable(agent.deps) else agent.deps
        self._config = RunConfig(
            model=brief.settings.model or None, call_model_input_filter=self._steer_next_request
        )
        self._tools: dict[str, str] = {}  # of calls, by their ids
        self._added: list[tuple[int, list[Any]]] = []  # what was said to it in the run, and where
        self._inside = False  # the gate

    def sync(self) -> None:
        self.record.log.sync()

    async def _whole(self) -> Turned:
        await self.record.close_calls()
        items = self.record.items
        repeated = self._prompt.again and items and spoken(items[-1]) == self._prompt.text
        given: Any = [] if repeated else [user(self._prompt.text)]
        while True:
            result = await self._streamed(given)
            if result.interruptions:
                given = await self._permitted(result)
            elif self.steered:  # too late for its last request
                given = [user(text) for text in self.steered]
                self.steered.clear()
            else:
                return self._result(result.final_output)

    async def _streamed(self, given: Any) -> RunResultStreaming:
        result = Runner.run_streamed(
            self._agent,
            given,
            context=self._deps,
            max_turns=None,  # the budget of the task is what limits it
            hooks=self,
            run_config=self._config,
            session=self.record,
        )
        try:
            async for event in result.stream_events():
                self._on_event(event)
            return result
        except BaseException:
            result.cancel()
            if result.run_loop_task is not None:
                with suppress(BaseException):
                    await asyncio.wait([result.run_loop_task], timeout=5)
            raise

    async def _permitted(self, result: RunResultStreaming) -> Any:
        """One after the other: a person is asked one thing at a time."""
        state = result.to_state()
        for item in result.interruptions:
            call = _field(item, "call_id")
            line = item_lines.called(item.tool_name or "", call, _field(item, "arguments"))
            asked = f"{self.record.session_id}.{len(self.record.items)}.allow.{call}"
            question = permission(asked, line.tool, verb="call", arguments=line.arguments)
            reply = await self._hearer.ask(question)
            if reply.allows is True:
                state.approve(item)
            else:
                state.reject(item, rejection_message=reply.text or "The call was not allowed.")
        return state

    # -- while it goes on

    def _on_event(self, event: StreamEvent) -> None:
        if isinstance(event, RawResponsesStreamEvent):
            piece = event.data.delta if event.data.type == "response.output_text.delta" else ""
            self._said += piece
            self._hearer.said(piece) if piece else self._hearer.alive()
        elif isinstance(event, RunItemStreamEvent):
            self._on_item(event.item)

    def _on_item(self, item: object) -> None:
        if isinstance(item, MessageOutputItem):
            self._said = ""
            text = ItemHelpers.text_message_output(item)
            if text:
                self._hearer.line(Line(role="assistant", text=text))
        elif isinstance(item, ReasoningItem):
            text = "\n".join(part.text for part in item.raw_item.summary)
            if text:
                self._hearer.line(Line(role="assistant", kind=Kind.THOUGHT, text=text))
        elif isinstance(item, ToolCallItem):
            call = _field(item, "call_id")
            self._tools[call] = item.tool_name or ""
            self._hearer.line(item_lines.called(self._tools[call], call, _field(item, "arguments")))
        elif isinstance(item, ToolCallOutputItem):
            call = _field(item, "call_id")
            self._hearer.line(item_lines.answered(self._tools.get(call, ""), call, item.output))

    async def _steer_next_request(self, data: CallModelData[Any]) -> ModelInputData:
        """The SDK forgets an edit of its input after one request, so each is made again; the session is given
        it once."""
        given = list(data.model_data.input)
        if self.steered:
            came = [user(text) for text in self.steered]
            self.steered.clear()
            await self.record.add_items(came)
            self._added.append((len(given), came))
        for place, items in reversed(self._added):
            given[place:place] = items
        return replace(data.model_data, input=given)

    async def on_llm_start(self, *args: Any, **more: Any) -> None:
        self._hearer.phase("thinking")
        await self._hearer.gate.enter()
        self._inside = True

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        self._leave()
        self._hearer.spent(turns=1, tokens=response.usage.total_tokens)

    def _leave(self) -> None:
        if self._inside:
            self._inside = False
            self._hearer.gate.leave()

    # -- the end

    def _result(self, output: object) -> Turned:
        if isinstance(output, str):
            return Turned(text=output)
        result = jsonable(output)
        return Turned(text=as_text(result.value), result=result)

    def _failed(self, problem: Exception) -> Turned:
        """An error of the provider may pass; one of the agent's own code is final."""
        lost = isinstance(problem, ConnectionError | TimeoutError)
        if lost or type(problem).__module__.partition(".")[0] in ("openai", "httpx", "httpx2"):
            return model_failed(problem)
        return raised(problem, "agent_error")


def _restricted(agent: Agent[Any], tools: tuple[str, ...] | None) -> Agent[Any]:
    if tools is None:
        return agent
    return agent.clone(tools=[tool for tool in agent.tools if tool.name in tools])


def _field(item: ToolCallItem | ToolCallOutputItem | ToolApprovalItem, name: str) -> Any:
    """A field of the provider's own item, which is a model or a mapping."""
    raw = cast("object", item.raw_item)
    found = cast("dict[str, Any]", raw).get(name) if isinstance(raw, dict) else getattr(raw, name, None)
    return "" if found is None else found
