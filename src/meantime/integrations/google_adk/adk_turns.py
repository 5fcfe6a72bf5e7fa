"""Turns of an agent of the ADK: what happens in a run is kept, told and counted as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode  # pyright: ignore[reportPrivateImportUsage]
from google.adk.apps import App
from google.adk.events import Event
from google.adk.runners import Runner
from google.genai.types import Content, FunctionCall

from meantime.integrations.agent_host.append_log import INTERRUPTED
from meantime.integrations.agent_host.host_errors import failed, model_failed, raised
from meantime.integrations.agent_host.json_values import mapping
from meantime.integrations.framework_talk.framework_turns import FrameworkTurn, FrameworkTurns
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lines import Line
from meantime.kernel.model import Failed
from meantime.kernel.provider_errors import judge
from meantime.kernel.questions import permission
from meantime.ports.session import Brief, Hearer, Prompt, Turned

from . import event_lines
from .event_log import APP, SESSION, USER, EventLog, copied
from .session_events import CONFIRMATION, answered, ends_open, open_calls, spoken, user
from .turn_plugin import TurnPlugin

STREAMED = RunConfig(streaming_mode=StreamingMode.SSE, max_llm_calls=0)  # the budget of the task limits it


class AdkTurns(FrameworkTurns["AdkTurn"]):
    """Its sessions are files of events."""

    def fork(self, path: Path, copy: Path) -> None:
        copied(path, copy)

    def lines(self, path: Path) -> Sequence[Line]:
        return list(event_lines.lines(EventLog(path).events))

    async def _turn(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> AdkTurn:
        record = await asyncio.to_thread(EventLog, path)
        return AdkTurn(agent, session, record, prompt, brief, hearer)


class AdkTurn(FrameworkTurn):
    def __init__(
        self, agent: PythonAgent, session: str, record: EventLog, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> None:
        super().__init__(prompt, hearer)
        self._ties = TurnPlugin(hearer, () if prompt.last else brief.settings.tools, self.steered)
        self._given = agent
        self._session = session
        self._record = record
        self._brief = brief
        self._text = ""  # the last thing that was said whole
        self._error: Event | None = None  # of the provider, in place of a response

    def sync(self) -> None:
        self._record.log.sync()

    async def _whole(self) -> Turned:
        root = _with_model(self._given.agent, self._brief.settings.model)
        app = App(name=APP, root_agent=root, plugins=[self._ties])
        runner = Runner(app=app, session_service=self._record)
        message = await self._first(root)
        while True:
            await self._streamed(runner, message)
            if self._error is not None:
                text = self._error.error_message or str(self._error.error_code)
                return failed(Failed(text, "model_error"), judge(text, 0))
            if waiting := self._confirmations():
                message = await self._confirmed(waiting)
            elif self.steered:  # too late for its last request
                message = user("\n\n".join(self.steered))
                self.steered.clear()
            else:
                return Turned(text=self._text)

    async def _first(self, root: BaseAgent) -> Content | None:
        """The prompt; an answer to a question from before a restart; or nothing, if the session holds it."""
        waiting = self._confirmations()
        if waiting and self._prompt.reply is not None:
            return await self._confirmed(waiting)
        await self._close_calls(root.name)
        events = self._record.events
        spoken_last = next((spoken(one) for one in reversed(events) if one.author == "user"), None)
        again = self._prompt.again and spoken_last == self._prompt.text and ends_open(events)
        return None if again and isinstance(root, LlmAgent) else user(self._prompt.text)

    async def _close_calls(self, agent: str) -> None:
        """Answers the calls that a crash or a stop cut off: a provider refuses a call without its result."""
        cut = [answered(call, {"error": INTERRUPTED}) for call in open_calls(self._record.events)]
        if cut:
            invocation = self._record.events[-1].invocation_id
            event = Event(invocation_id=invocation, author=agent, content=Content(role="user", parts=cut))
            session = await self._record.get_session(app_name=APP, user_id=USER, session_id=SESSION)
            assert session is not None
            await self._record.append_event(session, event)

    # -- permissions

    def _confirmations(self) -> list[FunctionCall]:
        return [call for call in open_calls(self._record.events) if call.name == CONFIRMATION]

    async def _confirmed(self, waiting: Sequence[FunctionCall]) -> Content:
        """One after the other: a person is asked one thing at a time."""
        parts = [answered(call, {"confirmed": await self._allowed(call)}) for call in waiting]
        return Content(role="user", parts=parts)

    async def _allowed(self, call: FunctionCall) -> bool:
        asked = mapping(call.args, "originalFunctionCall")
        question = permission(
            f"{self._session}.{call.id}",
            str(asked.get("name")),
            verb="call",
            detail=str(mapping(call.args, "toolConfirmation").get("hint") or ""),
            arguments=asked.get("args"),
        )
        reply = self._prompt.reply
        if reply is not None and reply.question == question.id and reply.allows is not True:
            return False
        # What was allowed once waits to be asked for again: so it is, or the next call would be let through.
        return (await self._hearer.ask(question)).allows is True

    # -- while it goes on

    async def _streamed(self, runner: Runner, message: Content | None) -> None:
        deps = self._given.deps(self._brief) if callable(self._given.deps) else self._given.deps
        running = runner.run_async(
            user_id=USER,
            session_id=SESSION,
            new_message=message,
            state_delta=_state(deps),
            run_config=STREAMED,
        )
        async with aclosing(running) as events:
            async for event in events:
                self._on_event(event)

    def _on_event(self, event: Event) -> None:
        if event.partial:
            piece = spoken(event)
            self._said += piece
            self._hearer.said(piece) if piece else self._hearer.alive()
            return
        self._said = ""
        self._error = event if event.error_code and not event.content else None
        if event.author != USER:
            self._text = spoken(event) or self._text
            for line in event_lines.of_agent(event):
                self._hearer.line(line)

    # -- the end

    def _failed(self, problem: Exception) -> Turned:
        if problem is self._ties.problem:
            return model_failed(problem)
        return raised(problem, "agent_error")

    def _leave(self) -> None:
        self._ties.leave_all()


def _with_model(agent: BaseAgent, model: str) -> BaseAgent:
    """Ours are "provider/model"; the ADK knows Google's by the second part."""
    if not model:
        return agent
    if not isinstance(agent, LlmAgent):
        raise InvalidInput(f"{agent.name} has no model of its own.", hint="Leave model out.")
    return agent.clone({"model": model.removeprefix("google/")})


def _state(deps: object) -> dict[str, Any] | None:
    if deps is None or isinstance(deps, Mapping):
        return None if deps is None else dict(cast("Mapping[str, Any]", deps))
    raise InvalidInput("deps of an ADK agent is what its session's state begins with: a mapping.")
