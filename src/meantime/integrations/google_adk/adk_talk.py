"""An agent of the ADK that talks: it hands work off, is told once, and is woken when idle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.genai.types import Content

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.framework_talk import FrameworkTalk
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, Function
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .adk_plugin import Background
from .session_events import ends_open, of_notice, spoken, told, user

APP = "meantime"
USER = "user"


class Talk(FrameworkTalk):
    """One conversation: `say` takes a turn, `woken` gives what the agent says by itself.

    agent: an agent, or an App with its own plugins.
    functions: each, with `@background`, is a tool. It answers at once if it is done within `threshold`
        (seconds, or a text such as "5s"), and else goes on in the background, as the same run; with None it
        is always waited for.
    sessions: where the ADK keeps the conversation. With one in a database, a restart goes on with it and
        tells nothing twice; without one it is in memory.
    session_id: of the conversation there; the thread's name unless it is given.
    agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
        None is none.
    commands: `Shell`, where the agent may start commands; None is not.
    dialect: the words of the tools.
    """

    def __init__(
        self,
        agent: BaseAgent | App,
        thread: Thread,
        *functions: Function,
        sessions: BaseSessionService | None = None,
        session_id: str | None = None,
        user_id: str = USER,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        threshold: float | str | None = THRESHOLD,
        dialect: Wording = OWN,
    ) -> None:
        _check(agent)
        self._background = Background(
            thread, *functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect
        )
        super().__init__(self._background.work)
        app = agent if isinstance(agent, App) else App(name=APP, root_agent=agent)
        self._app = app.model_copy(update={"plugins": [*app.plugins, self._background]})
        self._services = InMemorySessionService() if sessions is None else sessions
        self._runner = Runner(app=self._app, session_service=self._services)
        self._user, self._id = user_id, session_id or thread.id
        self._session: Session | None = None  # as it was read at the beginning of a turn

    async def _told(self) -> Collection[str]:
        self._session = await self._services.get_session(
            app_name=self._app.name, user_id=self._user, session_id=self._id
        )
        return told(self._session.events) if self._session is not None else ()

    async def _unanswered(self) -> bool:
        return self._session is not None and self._can_go_on and ends_open(self._session.events)

    @property
    def _can_go_on(self) -> bool:
        """Other kinds of agents always need a message."""
        return isinstance(self._app.root_agent, LlmAgent)

    async def _take(self, turn: Turn, fresh: Sequence[Notice], text: str | None, run: dict[str, Any]) -> Any:
        session = self._session or await self._services.create_session(
            app_name=self._app.name, user_id=self._user, session_id=self._id
        )
        message = None if text is None else user(text)
        if message is None and not self._can_go_on:
            fresh, message = fresh[:-1], user(fresh[-1].message().text)
        for notice in fresh:
            await self._services.append_event(session=session, event=of_notice(notice, turn.id))
        self._background.begin(turn, session.id)
        try:
            return await self._answer(message, run)
        finally:
            self._background.begin(None)

    async def _answer(self, message: Content | None, run: dict[str, Any]) -> str:
        """The last thing that it said."""
        said = ""
        event: Event
        async for event in self._runner.run_async(
            user_id=self._user, session_id=self._id, new_message=message, **run
        ):
            if not event.partial and event.author != USER:
                said = spoken(event) or said
        return said


def _check(agent: object) -> None:
    if not isinstance(agent, BaseAgent | App):
        what = f"{agent!r:.100} is not an agent or an App of the ADK."
        raise InvalidInput(what, hint="The agent comes first: Talk(agent, thread, …).")
