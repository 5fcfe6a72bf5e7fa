"""An agent of the OpenAI Agents SDK that talks: it hands work off, is told once, and is woken when idle.

The SDK's own session is the conversation. A notice is a user item there, whose text names it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from agents.items import TResponseInputItem
from agents.memory import Session
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from agents import Agent, FunctionTool, RunConfig, Runner, SQLiteSession
from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.framework_talk import FrameworkTalk, told_in
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, DeclaredTool, Function, TalkTools
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .session_items import ends_open, spoken, user


class Talk(FrameworkTalk):
    """One conversation: `say` takes a turn, `woken` gives what the agent says by itself.

    functions: each, with `@background`, is a tool. It answers at once if it is done within `threshold`
        (seconds, or a text such as "5s"), and else goes on in the background, as the same run; with None it
        is always waited for.
    session: where the SDK keeps the conversation. With one in a file, a restart goes on with it and tells
        nothing twice; without one it is in memory.
    agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
        None is none.
    commands: `Shell`, where the agent may start commands; None is not.
    dialect: the words of the tools.
    """

    def __init__(
        self,
        agent: Agent[Any],
        thread: Thread,
        *functions: Function,
        session: Session | None = None,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        threshold: float | str | None = THRESHOLD,
        dialect: Wording = OWN,
    ) -> None:
        _check(agent)
        super().__init__(
            TalkTools(
                thread, functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect
            )
        )
        self._agent = agent
        self.session: Session = SQLiteSession(thread.id) if session is None else session

    async def _told(self) -> Collection[str]:
        return told_in(map(spoken, await self.session.get_items()))

    async def _unanswered(self) -> bool:
        return ends_open(await self.session.get_items(limit=1))

    async def _take(self, turn: Turn, fresh: Sequence[Notice], text: str | None, run: dict[str, Any]) -> Any:
        given = [user(notice.message().text) for notice in fresh]
        if text is not None:
            given.append(user(text))
        config: RunConfig = run.pop("run_config", None) or RunConfig()
        injected = InjectedNotices(self, turn, config.call_model_input_filter)
        result = await Runner.run(
            self._agent.clone(tools=[*self._agent.tools, *self._tools.made(function_tool)]),
            given,
            session=self.session,
            run_config=replace(config, call_model_input_filter=injected),
            **run,
        )
        return result.final_output


def _check(agent: object) -> None:
    if not isinstance(agent, Agent):
        what = f"{agent!r:.100} is not an agent of the OpenAI Agents SDK."
        raise InvalidInput(what, hint="The agent comes first: Talk(agent, thread, …).")


class InjectedNotices:
    """Notices that come in during a run. The SDK forgets an edit of its input after one request, so each is
    made again; the session is given it once, at the same place.
    """

    def __init__(self, talk: Talk, turn: Turn, then: Callable[[CallModelData[Any]], Any] | None) -> None:
        self._talk = talk
        self._turn = turn
        self._then = then  # the filter that the caller has
        self._added: list[tuple[int, list[TResponseInputItem]]] = []

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        given = list(data.model_data.input)
        came = [user(notice.message().text) for notice in await self._talk._came_in(self._turn)]  # pyright: ignore[reportPrivateUsage]
        if came:
            await self._talk.session.add_items(came)
            self._added.append((len(given), came))
        for place, items in reversed(self._added):
            given[place:place] = items
        reminder = await self._turn.reminder()
        instructions = "\n\n".join(filter(None, (data.model_data.instructions, reminder)))
        edited = ModelInputData(input=given, instructions=instructions or None)
        if self._then is None:
            return edited
        filtered = self._then(replace(data, model_data=edited))
        return await filtered if isawaitable(filtered) else filtered


def function_tool(tool: DeclaredTool, tools: TalkTools) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return (await tools.answer(tool.name, arguments, context.tool_call_id)).text

    return FunctionTool(tool.name, tool.description, tool.schema, invoke, strict_json_schema=False)
