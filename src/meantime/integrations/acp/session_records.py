"""Which sessions there are, and where they work: agents load a session only with its folder."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.integrations.agent_host.append_log import AppendLog


class SessionRecord(Struct, frozen=True, array_like=True):
    session: str
    agent: str
    cwd: str


class SessionRecords:
    """A file that only grows: a line per session, on disk before its first prompt."""

    def __init__(self, path: Path) -> None:
        self._log = AppendLog(path)
        self._known = {record.session: record for record in self._log.readable(SessionRecord)}

    def add(self, record: SessionRecord) -> None:
        if self._known.get(record.session) == record:
            return
        self._log.append(msgspec.json.encode(record))
        self._known[record.session] = record

    def get(self, session: str) -> SessionRecord | None:
        return self._known.get(session)
