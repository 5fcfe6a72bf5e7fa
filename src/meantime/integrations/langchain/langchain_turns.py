"""Turns of an agent of LangChain, LangGraph or deepagents: kept, told and counted as they happen."""

# LangGraph's types are not complete.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from langchain.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.pregel import Pregel
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from meantime.integrations.agent_host.host_errors import model_failed, raised
from meantime.integrations.framework_talk.framework_turns import FrameworkTurn, FrameworkTurns
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lines import Line
from meantime.kernel.payloads import as_text, jsonable
from meantime.ports.session import Brief, Hearer, Prompt, Turned

from . import chat_lines
from .chat_messages import cut, ends_open, ids
from .checkpoint_log import SESSION, CheckpointLog, copied
from .graph_questions import GraphQuestions
from .model_pace import ModelPace

GO_ON, OVER = None, object()  # in place of something to give to the graph
UNLIMITED = 10_000  # steps of a graph: the budget of the task is what limits it


class LangChainTurns(FrameworkTurns["LangChainTurn"]):
    """Its sessions are files of checkpoints."""

    def fork(self, path: Path, copy: Path) -> None:
        copied(path, copy)

    def lines(self, path: Path) -> Sequence[Line]:
        return list(chat_lines.lines(CheckpointLog(path).messages()))

    async def _turn(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> LangChainTurn:
        record = await asyncio.to_thread(_compacted, path)
        return LangChainTurn(agent, session, record, prompt, brief, hearer)


def _compacted(path: Path) -> CheckpointLog:
    record = CheckpointLog(path)
    record.compact()
    return record


class LangChainTurn(FrameworkTurn):
    def __init__(
        self,
        agent: PythonAgent,
        session: str,
        record: CheckpointLog,
        prompt: Prompt,
        brief: Brief,
        hearer: Hearer,
    ) -> None:
        super().__init__(prompt, hearer)
        graph: Pregel[Any, Any, Any, Any] = agent.agent
        self._record = record
        self._graph = graph.copy({"checkpointer": record})
        self._deps = agent.deps(brief) if callable(agent.deps) else agent.deps
        self._pace = ModelPace(hearer)
        self._questions = GraphQuestions(session, hearer, prompt.reply)
        self._config: RunnableConfig = {
            "configurable": {"thread_id": SESSION},
            "recursion_limit": UNLIMITED,
            "callbacks": [self._pace],
        }
        self._control = RunControl()
        self._seen: set[str] = set()  # ids of messages that have their lines

    def sync(self) -> None:
        self._record.sync()

    def steer(self, text: str) -> bool:
        """Said at the end of this step: what runs in it ends first."""
        self._control.request_drain("steered")
        return super().steer(text)

    async def _whole(self) -> Turned:
        if "messages" not in self._graph.channels:
            raise InvalidInput("This graph has no messages.", hint="Give one whose state has messages.")
        state = await self._state()
        self._seen = ids(_messages(state))
        given = await self._first(state)
        while given is not OVER:
            await self._streamed(given)
            state = await self._state()
            given = await self._next(state)
        return self._result(state)

    async def _first(self, state: StateSnapshot) -> Any:
        """The prompt, unless the session holds it already: its id says so."""
        messages = _messages(state)
        if state.interrupts and self._prompt.reply is not None:
            return Command(resume=await self._questions.resume(state.interrupts))
        if self._prompt.key in self._seen and not ends_open(messages):
            return OVER  # only its end was not heard
        given: list[AnyMessage] = list(cut(messages))
        if self._prompt.key not in self._seen:
            given.append(HumanMessage(self._prompt.text, id=self._prompt.key))
        return {"messages": given}

    async def _next(self, state: StateSnapshot) -> Any:
        if state.interrupts:
            return Command(resume=await self._questions.resume(state.interrupts))
        if self._prompt.last:
            return OVER
        if not self.steered:
            return GO_ON if state.next else OVER
        if cut(_messages(state)):  # the agent has just called tools: they are let run
            return GO_ON
        said = [HumanMessage(text) for text in self.steered]
        self.steered.clear()
        return {"messages": said}

    async def _state(self) -> StateSnapshot:
        return await self._graph.aget_state(self._config)

    async def _streamed(self, given: Any) -> None:
        self._control = RunControl()
        stream = self._graph.astream(
            given,
            self._config,
            context=self._deps,
            stream_mode=["messages", "updates"],
            durability="sync",
            control=self._control,
        )
        try:
            async with aclosing(cast("Any", stream)) as events:
                async for mode, data in events:
                    self._on_piece(data[0]) if mode == "messages" else self._on_update(data)
        except GraphDrained:
            pass  # something was said in the middle

    # -- while it goes on

    def _on_piece(self, message: object) -> None:
        if isinstance(message, AIMessageChunk) and message.text:
            self._said += message.text
            self._hearer.said(message.text)
        else:
            self._hearer.alive()

    def _on_update(self, update: Mapping[str, Any]) -> None:
        if self.steered:  # not before a step has ended: a run that is drained from its start does nothing
            self._control.request_drain("steered")
        for change in update.values():
            added = cast("Mapping[str, Any]", change).get("messages") if isinstance(change, Mapping) else None
            for message in cast("Sequence[Any]", added) if isinstance(added, list) else ():
                self._on_message(message)

    def _on_message(self, message: Any) -> None:
        if message.id in self._seen:
            return
        self._seen.add(message.id)
        if self._prompt.last and isinstance(message, AIMessage):
            self._control.request_drain(
                "last"
            )  # a graph has its tools fixed: those that it calls are not run
            message = message.model_copy(update={"tool_calls": []})
        for line in chat_lines.of_agent(message):
            self._said = ""
            self._hearer.line(line)

    # -- the end

    def _result(self, state: StateSnapshot) -> Turned:
        structured = state.values.get("structured_response")
        if structured is None:
            messages = _messages(state)
            return Turned(text=messages[-1].text if messages else "")
        dump = getattr(structured, "model_dump", None)
        result = jsonable(dump(mode="json") if dump is not None else structured)
        return Turned(text=as_text(result.value), result=result)

    def _failed(self, problem: Exception) -> Turned:
        if problem is self._pace.problem:
            return model_failed(problem)
        return raised(problem, "agent_error")

    def _leave(self) -> None:
        self._pace.leave_all()


def _messages(state: StateSnapshot) -> Sequence[AnyMessage]:
    return cast("Sequence[AnyMessage]", state.values.get("messages", ()))
