"""Background work for an app of the ADK, as a plugin: its tools, what ended, and a reminder of what runs.

The ADK's own session is the conversation. A notice is an event of the user there, whose id is the notice's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.tools import BaseTool, ToolContext
from google.genai.types import Content, FunctionDeclaration

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, DeclaredTool, Function, TalkTools
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .session_events import of_notice, told, user

# Seconds. The event of an answer has its time before the model is asked, and databases give events by time: a
# notice with a time of its own would stand behind the answer to it.
JUST_AFTER = 1e-6


class Background(BasePlugin):
    """`App(name="app", root_agent=agent, plugins=[Background(thread, build)])`

    It belongs to one conversation, as the thread does: one session of the app.

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
        super().__init__(name="background")
        self.work = TalkTools(
            thread, functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect
        )
        self._tools: list[BaseTool] = [AdkTool(tool, self.work) for tool in self.work.declare()]
        self._turn: Turn | None = None
        self._run = ""  # the session that the turn is in; a tool that is an agent runs in one of its own
        self._has_owner = False

    # -- turns: a run is one, unless a Talk takes them

    def begin(self, turn: Turn | None, session: str = "") -> None:
        """The caller acknowledges this turn; None is that it is over."""
        self._turn, self._run, self._has_owner = turn, session, turn is not None

    async def _opened(self, context: InvocationContext) -> Turn | None:
        """None is that it is not about this conversation."""
        if self._turn is None:
            self._turn, self._run = await self.work.thread.turn().open(), context.session.id
            self.work.verbs.begin(self._turn)
        return self._turn if context.session.id == self._run else None

    async def _over(self, context: InvocationContext, *, failed: bool) -> None:
        if self._turn is None or self._has_owner or context.session.id != self._run:
            return
        turn, self._turn = self._turn, None
        if not failed:
            await turn.ack()
        await turn.close(failed=failed)

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: Content
    ) -> Content | None:
        await self._over(invocation_context, failed=True)  # one that was never ended
        turn = await self._opened(invocation_context)
        is_answer = any(part.function_response for part in user_message.parts or ())
        if turn is not None and not self._has_owner and not is_answer:
            await self._tell(invocation_context, turn)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        context = callback_context.get_invocation_context()
        turn = await self._opened(context)
        if turn is None:
            return
        await turn.boundary()
        came = await self._tell(context, turn)
        llm_request.contents += [user(notice.message().text) for notice in came]
        llm_request.append_tools(self._tools)
        reminder = await turn.reminder()
        if reminder:
            llm_request.append_instructions([reminder])

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        await self._over(invocation_context, failed=False)

    async def on_run_error_callback(
        self, *, invocation_context: InvocationContext, error: BaseException
    ) -> None:
        await self._over(invocation_context, failed=True)

    async def _tell(self, context: InvocationContext, turn: Turn) -> list[Notice]:
        came = turn.fresh(told(context.session.events))
        before = context.session.events[-1].timestamp if context.session.events else None
        for place, notice in enumerate(came, 1):
            event = of_notice(notice, context.invocation_id)
            if before is not None:
                event.timestamp = before + place * JUST_AFTER
            await context.session_service.append_event(session=context.session, event=event)
        return came


class AdkTool(BaseTool):
    def __init__(self, tool: DeclaredTool, work: TalkTools) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._schema = tool.schema
        self._work = work

    def _get_declaration(self) -> FunctionDeclaration | None:
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return {"result": (await self._work.answer(self.name, args, tool_context.function_call_id)).text}
