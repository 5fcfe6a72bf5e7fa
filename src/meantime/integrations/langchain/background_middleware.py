"""Background work for an agent of LangChain, as middleware: tools, what ended, a reminder of what runs.

The agent's own state is the conversation. A notice is a message there whose id is the notice's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.messages import SystemMessage
from langchain.tools import BaseTool, ToolException
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, Function, TalkTools
from meantime.kernel.errors import InvalidInput
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .chat_messages import ids, placed, told

_call_id: ContextVar[str | None] = ContextVar("call_id", default=None)


class TalkBackground(AgentMiddleware[AgentState[Any], Any, Any]):
    """Middleware of an agent whose turns a `Talk` takes: `Talk(create_agent(model, middleware=[it]), it)`;
    `create_deep_agent` takes it, too.

    It belongs to one conversation, as the thread does. The agent runs by `ainvoke` or `astream`.

    functions: each, with `@background`, is a tool. It answers at once if it is done within `threshold`
        (seconds, or a text such as "5s"), and else goes on in the background, as the same run; with None it
        is always waited for.
    agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
        None is none.
    commands: `Shell`, where the agent may start commands; None is not.
    dialect: the words of the tools.
    """

    def __init__(
        self,
        thread: Thread,
        *functions: Function,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        threshold: float | str | None = THRESHOLD,
        dialect: Wording = OWN,
    ) -> None:
        super().__init__()
        self.work = TalkTools(
            thread, functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect
        )
        self.tools = [
            LangChainTool(
                name=tool.name, description=tool.description, args_schema=tool.schema, work=self.work
            )
            for tool in self.work.declare()
        ]
        self._turn: Turn | None = None
        self._has_owner = False

    def begin(self, turn: Turn | None) -> None:
        """The caller acknowledges this turn; None is that it is over."""
        self._turn, self._has_owner = turn, turn is not None

    async def _opened(self) -> Turn:
        if self._turn is None:
            raise InvalidInput(
                "Nobody has begun a turn of this agent.",
                hint="Use talk.say(…), or Background in place of TalkBackground.",
            )
        return self._turn

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Tells what came in since the last request with this one; the answer is kept behind it. As a hook of
        its own, before the model, that would be one more step of the graph for each request."""
        turn = await self._opened()
        await turn.boundary()
        came = told(turn.fresh(ids(request.state["messages"]))) if turn.notices else []
        if came:
            request = request.override(messages=[*request.messages, *came])
        reminder = await turn.reminder()
        if reminder:
            request = request.override(system_message=_extended(request.system_message, reminder))
        response = await handler(request)
        return replace(response, result=[*came, *response.result]) if came else response


class Background(TalkBackground):
    """`create_agent(model, middleware=[Background(thread, build)])`; `create_deep_agent` takes it, too.

    A run is a turn, unless a `Talk` takes them. Its beginning and its end are steps of the graph, which cost
    as much as any other step; a `Talk` does not need them, so `TalkBackground` is without. The arguments are
    the same.
    """

    async def _opened(self) -> Turn:
        if self._turn is None:
            self._turn = await self.work.thread.turn().open()
            self.work.verbs.begin(self._turn)
        return self._turn

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        if self._turn is not None and not self._has_owner:  # of a run that failed
            await self._turn.close(failed=True)
            self._turn = None
        turn = await self._opened()
        messages = state["messages"]
        update = placed(messages, told(turn.fresh(ids(messages))))
        return {"messages": update} if update else None

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        if self._turn is not None and not self._has_owner:
            turn, self._turn = self._turn, None
            await turn.ack()
            await turn.close()


class LangChainTool(BaseTool):
    work: Any  # TalkTools
    handle_tool_error: Any = True

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Keeps the id of the call, which is not among its arguments. A hook of the middleware around each
        call of a tool, of whatever tool, would be two changes of the thread for each of them."""
        call = cast("dict[str, Any]", input) if isinstance(input, dict) else {}
        is_call = call.get("type") == "tool_call"  # otherwise these are the arguments alone
        before = _call_id.set(call.get("id") if is_call else None)
        try:
            return await super().ainvoke(cast("Any", input), config, **kwargs)
        finally:
            _call_id.reset(before)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Background work is asynchronous: use ainvoke or astream.")

    async def _arun(self, /, **arguments: Any) -> str:
        answer = await self.work.answer(self.name, arguments, _call_id.get())
        if answer.is_error:
            raise ToolException(answer.text)  # the framework marks the answer as an error
        return answer.text


def _extended(message: SystemMessage | None, reminder: str) -> SystemMessage:
    if message is None:
        return SystemMessage(reminder)
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n\n{reminder}"})
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": reminder}]})
