"""Which sessions there are, and where they work: agents load a session only with its folder."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct


class SessionRecord(Struct, frozen=True, array_like=True):
    session: str
    agent: str
    cwd: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SessionRecord).decode


class Records:
    """A file that only grows: a line per session, on disk before its first prompt."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, SessionRecord] = {}
        for line in path.read_bytes().splitlines() if path.exists() else []:
            try:
                record = _decode(line)
            except msgspec.MsgspecError:
                continue  # cut by a crash: that session was never used
            self._known[record.session] = record

    def add(self, record: SessionRecord) -> None:
        if self._known.get(record.session) == record:
            return
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(
                fd, b"\n" + _encode(record) + b"\n"
            )  # a line that was cut before does not spoil this one
        finally:
            os.close(fd)
        self._known[record.session] = record

    def get(self, session: str) -> SessionRecord | None:
        return self._known.get(session)
