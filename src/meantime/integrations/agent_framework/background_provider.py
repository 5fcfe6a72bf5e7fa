"""Background work for an agent of agent-framework: tools, and notices before each request to the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    RawAgent,
    SessionContext,
    SupportsAgentRun,
)

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, DeclaredTool, Function, TalkTools
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .history_messages import interrupted, kept_messages, message_ids, notice_message

SOURCE = "meantime"


class Background(ContextProvider):
    """`Agent(client, context_providers=[Background(thread, crawl)],
    require_per_service_call_history_persistence=True)`

    A run tells what has ended meanwhile, in order, once. Its notices are acknowledged when it has ended: the
    history must hold them by then, so keep it in a `FileHistoryProvider`, or take a `Talk`, which saves the
    session first. The arguments are those of `Talk`.
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
        super().__init__(SOURCE)
        self._tools = TalkTools(
            thread, functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect
        )
        self._turn: Turn | None = None

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        owner = _keeping(agent)
        await self._leave(failed=True)  # a run that raised an error does not come to its end
        turn = self._turn = await self._tools.thread.turn().open()
        self._tools.verbs.begin(turn)
        kept = await kept_messages(owner, session)
        fresh = turn.fresh(message_ids(kept))
        context.input_messages[:0] = [*interrupted(kept), *map(notice_message, fresh)]

        async def came_in() -> Sequence[Notice]:
            came = await turn.boundary()
            held = message_ids(await kept_messages(owner, session)) if came else set[str]()
            return [notice for notice in came if notice.id not in held]

        equip(context, self._tools, NoticeMiddleware(turn, came_in))

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        if self._turn is not None:
            await self._turn.ack()
        await self._leave()

    async def _leave(self, *, failed: bool = False) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            self._tools.verbs.begin(None)
            await turn.close(failed=failed)


class NoticeMiddleware(ChatMiddleware):
    """Adds the notices that came in since the last request to the next one; its history keeps them."""

    def __init__(self, turn: Turn, came_in: Callable[[], Awaitable[Sequence[Notice]]]) -> None:
        self._turn = turn
        self._came_in = came_in

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        came = await self._came_in()
        if came:
            context.messages = [*context.messages, *map(notice_message, came)]
        reminder = await self._turn.reminder()
        if reminder:
            options = dict(context.options or {})
            options["instructions"] = "\n\n".join(filter(None, (options.get("instructions"), reminder)))
            context.options = options
        await call_next()


def _keeping(agent: object) -> RawAgent[Any]:
    if isinstance(agent, RawAgent) and agent.require_per_service_call_history_persistence:
        return cast("RawAgent[Any]", agent)
    raise InvalidInput(
        "This agent would not keep what it is told between two requests to its model.",
        hint="Give it require_per_service_call_history_persistence=True.",
    )


def equip(context: SessionContext, tools: TalkTools, middleware: NoticeMiddleware) -> None:
    context.extend_tools(SOURCE, tools.made(function_tool))
    context.extend_middleware(SOURCE, middleware)


def function_tool(tool: DeclaredTool, tools: TalkTools) -> FunctionTool:
    async def invoke(*, meantime_call: FunctionInvocationContext, **arguments: Any) -> str:
        answer = await tools.answer(tool.name, arguments, meantime_call.metadata.get("call_id"))
        return answer.text

    return FunctionTool(name=tool.name, description=tool.description, input_model=tool.schema, func=invoke)
