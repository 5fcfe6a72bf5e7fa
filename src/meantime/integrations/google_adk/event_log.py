"""A session of the ADK in a file that only grows: whole after a crash, copied by a fork."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic import ValidationError

from meantime.integrations.agent_host.append_log import AppendLog

APP, USER, SESSION = (
    "meantime",
    "user",
    "session",
)  # the same in every file, so that a copy is another session


class EventLog(BaseSessionService):
    """The ADK's session service, of one session. Its state is what its events have made of it."""

    def __init__(self, path: Path) -> None:
        self.log = AppendLog(path)
        self._session = Session(id=SESSION, app_name=APP, user_id=USER)
        for event in _events(self.log):
            self._commit_event_to_session(self._session, event)

    @property
    def events(self) -> list[Event]:
        return self._session.events

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        return self._session

    async def append_event(self, session: Session, event: Event) -> Event:
        if not event.partial:
            event = await super().append_event(session, event)
            self.log.append(event.model_dump_json(exclude_none=True).encode())
        return event

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        raise NotImplementedError("A file is one session.")

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        return ListSessionsResponse(sessions=[self._session])

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        raise NotImplementedError("The task that it belongs to removes it.")


def copied(path: Path, copy: Path) -> None:
    """All that was said until now, from a session that may be at work."""
    copy.touch(0o600)
    records = AppendLog(path).records()
    if records:
        AppendLog(copy).append(*records)


def _events(log: AppendLog) -> Iterator[Event]:
    for record in log.records():
        with suppress(ValidationError):  # a crash may have cut it
            yield Event.model_validate_json(record)
