"""Turns of a Pydantic AI agent: what happens in a run is kept, told and counted as it happens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, CallToolsNode
from pydantic_ai.exceptions import AgentRunError, ModelAPIError, UserError
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelResponse,
    TextPart,
)
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.usage import UsageLimits
from pydantic_core import to_json, to_jsonable_python

from meantime.execution.containment import Escape
from meantime.integrations.agent_host.host_errors import raised
from meantime.integrations.framework_talk.framework_turns import FrameworkTurn, FrameworkTurns
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.lines import Line
from meantime.kernel.payloads import jsonable
from meantime.ports.clock import Clock
from meantime.ports.session import Brief, Hearer, Prompt, Turned

from . import model_lines
from .message_log import Loaded, MessageLog, write
from .paced_model import RequestState
from .run_capability import RunCapability

UNLIMITED = UsageLimits(request_limit=None)  # the budget of the task is what limits it


class PydanticTurns(FrameworkTurns["PydanticTurn"]):
    """Its sessions are files of model messages."""

    def begin(self, path: Path) -> None:
        write(path, [])

    def fork(self, path: Path, copy: Path) -> None:
        write(copy, MessageLog(path).load().whole())

    def lines(self, path: Path) -> Sequence[Line]:
        return list(model_lines.lines(MessageLog(path).load().whole()))

    async def _turn(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> PydanticTurn:
        return PydanticTurn(agent, session, MessageLog(path), prompt, brief, hearer, self._clock)


class PydanticTurn(FrameworkTurn):
    def __init__(
        self,
        agent: PythonAgent,
        session: str,
        record: MessageLog,
        prompt: Prompt,
        brief: Brief,
        hearer: Hearer,
        clock: Clock,
    ) -> None:
        super().__init__(prompt, hearer)
        self.record = record
        self._agent: Agent[Any, Any] = agent.agent
        self._deps = agent.deps(brief) if callable(agent.deps) else agent.deps
        self._model = _model_name(brief.settings.model)
        tools = () if prompt.last else brief.settings.tools
        self._request = RequestState(
            hearer,
            clock,
            self._keep,
            lambda kind: tools is None or kind in tools,
            brief.settings.options,
        )
        self._ties = RunCapability(session, hearer, self._request, tools)
        self._messages: list[ModelMessage] = []  # those of the run, as they grow
        self._run: Any = None

    def sync(self) -> None:
        self.record.sync()

    async def _whole(self) -> Turned:
        text: str | None = self._prompt.text
        history, results = await self._answered(self.record.load())
        if results is not None or (self._prompt.again and _ends_with(history, text)):
            text = None
        async with self._agent.iter(
            text,
            message_history=history or None,
            deferred_tool_results=results,
            model=self._model,
            deps=self._deps,
            usage_limits=UNLIMITED,
            capabilities=[self._ties],
            infer_name=False,
        ) as run:
            self._run = run
            async for node in run:
                self._keep()
                if isinstance(node, CallToolsNode):
                    self._on_response(node.model_response)
                    await self._call_tools(run, node)
            self._keep()
        return self._result(run.result)

    async def _answered(self, loaded: Loaded) -> tuple[list[ModelMessage], DeferredToolResults | None]:
        """A prompt that brings the answer to a question from before a restart: the call that waited for it
        is made now, and the model need not make it again."""
        reply = self._prompt.reply
        if reply is not None:
            for call in loaded.open_calls:
                results = await self._ties.resolved(len(loaded.messages), call, reply)
                if results is not None:
                    return loaded.waiting_for(call.tool_call_id), results
        return loaded.whole(), None

    # -- while it goes on

    def _keep(self) -> None:
        if self._run is not None:
            self._messages = self._run.all_messages()
            self.record.grow(self._messages)

    def _on_response(self, response: ModelResponse) -> None:
        for line in model_lines.of_response(response):
            self._hearer.line(line)
        used = response.usage
        self._hearer.spent(turns=1, tokens=used.total_tokens, cost=float(used.cost or 0.0))

    async def _call_tools(self, run: Any, node: CallToolsNode[Any, Any]) -> None:
        async with node.stream(run.ctx) as events:
            async for event in events:
                if isinstance(event, FunctionToolCallEvent):
                    self._hearer.line(model_lines.of_call(event.part))
                elif isinstance(event, FunctionToolResultEvent):
                    self.record.answered(event.part)
                    self._hearer.line(model_lines.of_result(event.part))

    def steer(self, text: str) -> bool:
        if self._run is None:
            return False
        try:
            self._run.enqueue(text)
        except UserError:  # it has just ended
            return False
        self.record.steered(text)
        return True

    # -- the end

    def _result(self, result: Any) -> Turned:
        output = result.output
        if isinstance(output, str):
            return Turned(text=output)
        value = to_jsonable_python(output, fallback=str)
        text = to_json(value).decode()
        self._hearer.line(Line(role="assistant", text=text))
        return Turned(text=text, result=jsonable(value))

    def _stopped(self) -> Turned:
        """The text so far is kept, even of a response that did not end."""
        self._keep()
        said = self._request.partial
        if said:
            self._hearer.line(Line(role="assistant", text=said))
            cut = ModelResponse(parts=[TextPart(said)], state="interrupted")
            self.record.grow([*self._messages, cut])
        return Turned(text=said, stopped=True)

    def _failed(self, problem: Exception) -> Turned:
        self._keep()
        return raised(problem, _code(problem))


def _code(problem: Exception) -> str:
    if isinstance(problem, ModelAPIError):
        return "model_error"
    return "agent_error" if isinstance(problem, AgentRunError | UserError | Escape) else "error"


def _ends_with(history: list[ModelMessage], text: str) -> bool:
    last = history[-1] if history else None
    return last is not None and any(getattr(part, "content", None) == text for part in last.parts)


def _model_name(name: str) -> str | None:
    """Ours are "provider/model"; Pydantic AI's are "provider:model"."""
    return (name if ":" in name else name.replace("/", ":", 1)) or None
