"""An agent of agent-framework that talks: it hands work off, is told once, and is woken when idle.

The framework's own history is the conversation. A notice is a message of the user there, with its own id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Any, Protocol

from agent_framework import (
    AgentSession,
    ContextProvider,
    HistoryProvider,
    Message,
    RawAgent,
    SessionContext,
    SupportsAgentRun,
)

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.framework_talk import FrameworkTalk
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, Function, TalkTools
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .background_provider import SOURCE, NoticeMiddleware, equip
from .history_messages import TalkHistory, interrupted, kept_messages, message_ids, notice_message


class SessionStore(Protocol):
    """The framework's own SessionStore has it."""

    async def get(self, session_id: str) -> AgentSession | None: ...

    async def set(self, session_id: str, session: AgentSession) -> None: ...


class Talk(FrameworkTalk):
    """One conversation: `say` takes a turn, `woken` gives what the agent says by itself.

    `say` gives the agent's value where it has a response_format, and else its text. If a tool needs approval,
    it gives the framework's response; pass its answer to the next `say` as a Message.

    functions: each, with `@background`, is a tool. It answers at once if it is done within `threshold`
        (seconds, or a text such as "5s"), and else goes on in the background, as the same run; with None it
        is always waited for.
    store: where the session is saved, under the thread's id: with a `FileSessionStore`, a restart goes on
        with it and tells nothing twice. An agent with a `FileHistoryProvider` needs none.
    agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
        None is none.
    commands: `Shell`, where the agent may start commands; None is not.
    dialect: the words of the tools.
    """

    _sayable = (str, Message)

    def __init__(
        self,
        agent: RawAgent[Any],
        thread: Thread,
        *functions: Function,
        store: SessionStore | None = None,
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
        self._agent = per_request(agent)
        self._store = store
        self._session: AgentSession | None = None

    async def session(self) -> AgentSession:
        """The framework's session of this conversation."""
        if self._session is None:
            saved = None if self._store is None else await self._store.get(self._thread.id)
            self._session = saved or self._agent.create_session(session_id=self._thread.id)
        return self._session

    async def _reread(self) -> None:
        if self._store is not None:
            self._session = None

    async def _kept(self) -> list[Message]:
        return await kept_messages(self._agent, await self.session())

    async def _told(self) -> Collection[str]:
        return message_ids(await self._kept())

    async def _unanswered(self) -> bool:
        return bool(interrupted(await self._kept()))

    async def _take(
        self, turn: Turn, fresh: Sequence[Notice], text: str | Message | None, run: dict[str, Any]
    ) -> Any:
        given = [*interrupted(await self._kept()), *map(notice_message, fresh)]
        if text is not None:
            given.append(Message("user", [text]) if isinstance(text, str) else text)
        for provider in self._agent.context_providers:
            if isinstance(provider, TalkHistory):
                provider.begin_turn()
        agent = copy(self._agent)
        agent.context_providers = [*agent.context_providers, TurnProvider(self, self._tools, turn)]
        try:
            response = await agent.run(given, session=await self.session(), **run)
        finally:
            if self._store is not None:  # what was said so far is kept, however it ended
                await self._store.set(self._thread.id, await self.session())
        if response.user_input_requests:
            return response
        return response.text if response.value is None else response.value


class TurnProvider(ContextProvider):
    """The tools and the notices of one turn of a Talk."""

    def __init__(self, talk: Talk, tools: TalkTools, turn: Turn) -> None:
        super().__init__(SOURCE)
        self._talk = talk
        self._tools = tools
        self._turn = turn

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        async def came_in() -> Sequence[Notice]:
            return await self._talk._came_in(self._turn)  # pyright: ignore[reportPrivateUsage]

        equip(context, self._tools, NoticeMiddleware(self._turn, came_in))


def per_request(agent: RawAgent[Any]) -> RawAgent[Any]:
    """The same agent, whose history is kept with each answer of the model, so that a notice between two
    requests keeps its place."""
    made = copy(agent)
    made.require_per_service_call_history_persistence = True
    made.context_providers = list(agent.context_providers)
    if not any(isinstance(provider, HistoryProvider) for provider in made.context_providers):
        stored = agent.default_options.get("store")
        elsewhere = getattr(agent.client, "STORES_BY_DEFAULT", False) if stored is None else stored
        # A service that keeps the conversation is not given it again; then this is what tells who was told.
        made.context_providers.append(TalkHistory(load_messages=not elsewhere))
    return made


def _check(agent: object) -> None:
    if not isinstance(agent, RawAgent):
        what = f"{agent!r:.100} is not an Agent of agent-framework."
        raise InvalidInput(what, hint="The agent comes first: Talk(agent, thread, …).")
