"""A session of agent-framework in a file that only grows: whole after a crash, copied by a fork."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from agent_framework import AgentSession, HistoryProvider, Message

from meantime.integrations.agent_host.append_log import AppendLog

from .history_messages import interrupted

_encode = msgspec.json.Encoder(enc_hook=str).encode


class HistoryLog(HistoryProvider):
    """The framework's history. A record is a message, or the state that its providers keep with a session."""

    def __init__(self, path: Path, heard: Callable[[Message], None] = lambda message: None) -> None:
        super().__init__("meantime_history")
        self._log = AppendLog(path)
        self._heard = heard
        self.session = AgentSession(session_id=path.stem)
        self.messages: list[Message] = []
        for record in self._log.readable(dict[str, Any]):
            if "message" in record:
                self.messages.append(Message.from_dict(record["message"]))
            elif "session" in record:
                self.session = AgentSession.from_dict({**record["session"], "session_id": path.stem})
        self._saved = self._state()

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **more: Any
    ) -> list[Message]:
        return list(self.messages)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        self.add(messages)
        for message in messages:
            self._heard(message)

    def add(self, messages: Sequence[Message]) -> None:
        if messages:
            self._log.append(*(_encode({"message": message.to_dict()}) for message in messages))
            self.messages += messages

    def close_calls(self) -> None:
        """Answers the calls that a crash or a stop cut off: a provider refuses a call without its result."""
        self.add(interrupted(self.messages))

    def sync(self) -> None:
        state = self._state()
        if state != self._saved:
            self._log.append(state)
            self._saved = state
        self._log.sync()

    def _state(self) -> bytes:
        return _encode({"session": self.session.to_dict()})


def copied(path: Path, copy: Path) -> None:
    """All that was said until now, and what its providers know."""
    copy.touch(0o600)
    records = AppendLog(path).records()
    if records:
        AppendLog(copy).append(*records)
