"""An agent of LangChain that talks: it hands work off, is told once, and is woken when idle."""

# LangGraph's types are not complete.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

from langchain.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel

from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.framework_talk import FrameworkTalk
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice

from .background_middleware import TalkBackground
from .chat_messages import cut, ends_open, ids, told


class Talk(FrameworkTalk):
    """One conversation: `say` takes a turn, `woken` gives what the agent says by itself.

    agent: made with `background` among its middleware. Its checkpointer keeps the conversation: with a
        durable one, such as SQLite's, a restart goes on with it and tells nothing twice; without one it is
        in memory.
    thread_id: of the conversation in the checkpointer; the thread's name unless it is given.
    """

    def __init__(
        self, agent: Pregel[Any, Any, Any, Any], background: TalkBackground, *, thread_id: str | None = None
    ) -> None:
        _check(agent, background)
        super().__init__(background.work)
        self._background = background
        self._agent = agent if agent.checkpointer else agent.copy({"checkpointer": InMemorySaver()})
        self.config: RunnableConfig = {"configurable": {"thread_id": thread_id or background.work.thread.id}}
        self._messages: Sequence[AnyMessage] = ()

    async def _told(self) -> Collection[str]:
        state = await self._agent.aget_state(self.config)
        if state.tasks:  # it was cut off: what no checkpoint holds is dropped by the next run
            state = await self._agent.aget_state(state.config)
        self._messages = cast("Sequence[AnyMessage]", state.values.get("messages", ()))
        return ids(self._messages)

    async def _unanswered(self) -> bool:
        return ends_open(self._messages)

    async def _take(self, turn: Turn, fresh: Sequence[Notice], text: str | None, run: dict[str, Any]) -> Any:
        given: list[AnyMessage] = [*cut(self._messages), *told(fresh)]
        if text is not None:
            given.append(HumanMessage(text))
        config: dict[str, Any] = {**run.pop("config", {})}
        config["configurable"] = {**config.get("configurable", {}), **self.config.get("configurable", {})}
        self._background.begin(turn)
        try:
            agent = cast("Any", self._agent)
            return _output(await agent.ainvoke({"messages": given}, config, **run))
        finally:
            self._background.begin(None)


def _output(result: dict[str, Any]) -> Any:
    """The question to a person, the structured response, or the text."""
    if interrupts := result.get("__interrupt__"):
        return interrupts
    structured = result.get("structured_response")
    return result["messages"][-1].text if structured is None else structured


def _check(agent: object, background: object) -> None:
    if not isinstance(agent, Pregel):
        what = f"{agent!r:.100} is not an agent of LangChain."
        raise InvalidInput(what, hint="The agent comes first: Talk(agent, background).")
    if not isinstance(background, TalkBackground):
        what = f"{background!r:.100} is not a Background."
        raise InvalidInput(what, hint="Use Talk(agent, background), with the Background of its middleware.")
    if not _has(cast("Pregel[Any, Any, Any, Any]", agent), background):
        raise InvalidInput(
            "The agent has no Background.", hint="Make it with create_agent(model, middleware=[background])."
        )


def _has(agent: Pregel[Any, Any, Any, Any], background: TalkBackground) -> bool:
    """Middleware without steps of its own shows in a graph by its tools only."""
    tools = agent.nodes.get("tools")
    named: dict[str, Any] = getattr(None if tools is None else tools.bound, "tools_by_name", {})
    return all(named.get(tool.name) is tool for tool in background.tools)
