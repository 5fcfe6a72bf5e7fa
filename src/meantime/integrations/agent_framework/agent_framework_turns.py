"""Turns of an agent of agent-framework: what happens is kept, told and counted as it happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from agent_framework import (
    AgentResponse,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionMiddleware,
    HistoryProvider,
    Message,
    RawAgent,
    SessionContext,
    SupportsAgentRun,
)
from agent_framework.exceptions import ChatClientException

from meantime.integrations.agent_host.host_errors import failed, model_failed, raised
from meantime.integrations.framework_talk.framework_turns import FrameworkTurn, FrameworkTurns
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lines import Line
from meantime.kernel.model import Failed
from meantime.kernel.payloads import as_text, jsonable
from meantime.kernel.provider_errors import judge
from meantime.kernel.questions import permission
from meantime.ports.session import Brief, Hearer, Prompt, Turned

from . import history_lines
from .history_log import HistoryLog, copied


class AgentFrameworkTurns(FrameworkTurns["AgentFrameworkTurn"]):
    """Its sessions are files of messages."""

    def fork(self, path: Path, copy: Path) -> None:
        copied(path, copy)

    def lines(self, path: Path) -> Sequence[Line]:
        return list(history_lines.lines(HistoryLog(path).messages))

    async def _turn(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> AgentFrameworkTurn:
        return AgentFrameworkTurn(agent, path, prompt, brief, hearer)


class AgentFrameworkTurn(FrameworkTurn):
    def __init__(self, agent: PythonAgent, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer) -> None:
        super().__init__(prompt, hearer)
        self.record = HistoryLog(path, self._on_message)
        self.hearer = hearer
        self.tools = () if prompt.last else brief.settings.tools
        self._agent = _kept_here(agent.agent, self.record, self)
        self._deps = _deps(agent.deps(brief) if callable(agent.deps) else agent.deps)
        self._model = brief.settings.model
        self._inside = False  # the gate

    def sync(self) -> None:
        self.record.sync()

    async def _whole(self) -> Turned:
        self.record.close_calls()
        last = self.record.messages[-1].text if self.record.messages else None
        if not (self._prompt.again and last == self._prompt.text):
            self.record.add([Message("user", [self._prompt.text])])
        given: list[Message] = []
        while True:
            response = await self._streamed(given)
            if response.user_input_requests:
                given = [await self._permitted(request) for request in response.user_input_requests]
            elif self.steered:  # too late for its last request
                given = self.taken()
            else:
                return _result(response)

    async def _streamed(self, given: list[Message]) -> AgentResponse[Any]:
        options: dict[str, Any] = {"model": self._model} if self._model else {}
        if getattr(self._agent.client, "STORES_BY_DEFAULT", False):
            options["store"] = False  # a fork copies what is kept here
        stream = self._agent.run(
            given,
            stream=True,
            session=self.record.session,
            options=options or None,  # pyright: ignore[reportArgumentType]
            function_invocation_kwargs=self._deps,
        )
        async for update in stream:
            if update.text:
                self._said += update.text
                self.hearer.said(update.text)
            else:
                self.hearer.alive()
        return await stream.get_final_response()

    async def _permitted(self, request: Content) -> Message:
        """One after the other: a person is asked one thing at a time."""
        call = request.function_call
        if call is None:
            raise InvalidInput(
                f"The agent asks for {request.type}, which a task cannot answer.",
                hint="Only calls of functions can be approved.",
            )
        line = history_lines.called(call)
        asked = f"{self.record.session.session_id}.{len(self.record.messages)}.allow.{line.call}"
        question = permission(asked, line.tool, verb="call", arguments=line.arguments)
        reply = await self.hearer.ask(question)
        return Message("user", [request.to_function_approval_response(approved=reply.allows is True)])

    # -- while it goes on

    def taken(self) -> list[Message]:
        """The messages that came for it in the meantime."""
        given = [Message("user", [text]) for text in self.steered]
        self.steered.clear()
        return given

    async def enter_gate(self) -> None:
        self.hearer.phase("thinking")
        await self.hearer.gate.enter()
        self._inside = True

    def _leave(self) -> None:
        if self._inside:
            self._inside = False
            self.hearer.gate.leave()

    def on_response(self, response: ChatResponse[Any]) -> None:
        self._leave()
        used = (response.usage_details or {}).get("total_token_count")
        self.hearer.spent(turns=1, tokens=used or 0)

    def _on_message(self, message: Message) -> None:
        """One that the history has just been given."""
        if message.role == "assistant":
            self._said = ""
            for line in history_lines.spoken_lines(message):
                self.hearer.line(line)

    def _failed(self, problem: Exception) -> Turned:
        """An error of the provider may pass; one of the agent's own code is final."""
        if isinstance(problem, ConnectionError | TimeoutError):
            return model_failed(problem)
        if isinstance(problem, ChatClientException):  # its cause has the status
            status = int(getattr(problem.__cause__, "status_code", 0) or 0)
            return failed(Failed(str(problem), "model_error"), judge(str(problem), status))
        return raised(problem, "agent_error")


class TurnEvents(ContextProvider):
    """Puts a turn between the agent and its model, and between the agent and its functions."""

    def __init__(self, turn: AgentFrameworkTurn) -> None:
        super().__init__("meantime_turn")
        self._turn = turn

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        context.extend_middleware(self.source_id, [RequestEvents(self._turn), CallEvents(self._turn)])


class RequestEvents(ChatMiddleware):
    def __init__(self, turn: AgentFrameworkTurn) -> None:
        self._turn = turn

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        turn = self._turn
        context.messages = [*context.messages, *turn.taken()]
        if turn.tools is not None and context.options is not None:
            offered = [tool for tool in context.options.get("tools") or () if _name(tool) in turn.tools]
            context.options = {**context.options, "tools": offered}
        await turn.enter_gate()
        context.stream_result_hooks.append(turn.on_response)
        await call_next()


class CallEvents(FunctionMiddleware):
    def __init__(self, turn: AgentFrameworkTurn) -> None:
        self._turn = turn

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        name, call = context.function.name, str(context.metadata.get("call_id") or "")
        if self._turn.tools is not None and name not in self._turn.tools:  # it was not offered
            context.result = f"{name} cannot be called here."
        else:
            try:
                await call_next()
            except Exception as problem:
                self._turn.hearer.line(history_lines.answered(name, call, str(problem), failed=True))
                raise
        self._turn.hearer.line(history_lines.answered(name, call, context.result))


def _kept_here(agent: RawAgent[Any], record: HistoryLog, turn: AgentFrameworkTurn) -> RawAgent[Any]:
    """The same agent, whose history is the session's file, kept with each answer of the model."""
    made = copy(agent)
    made.require_per_service_call_history_persistence = True
    others = [one for one in agent.context_providers if not isinstance(one, HistoryProvider)]
    made.context_providers = [record, *others, TurnEvents(turn)]
    return made


def _deps(given: object) -> Mapping[str, Any] | None:
    if given is None or isinstance(given, Mapping):
        return given  # pyright: ignore[reportUnknownVariableType]
    raise InvalidInput(
        f"deps={given!r:.100} is not a mapping.",
        hint="agent-framework gives a function arguments by name: deps={'user': user}.",
    )


def _name(tool: object) -> object:
    return getattr(tool, "name", None)


def _result(response: AgentResponse[Any]) -> Turned:
    if response.value is not None:
        result = jsonable(response.value)
        return Turned(text=as_text(result.value), result=result)
    said = [message.text for message in response.messages if message.role == "assistant"]
    return Turned(text=said[-1] if said else "")
