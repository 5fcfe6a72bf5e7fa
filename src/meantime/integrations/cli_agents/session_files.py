"""The known facts of each session: how its program names it, and which turn it is at."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.system.atomic_file import replace_file

KEPT = 90 * 86_400.0  # seconds for which a session is remembered whose task is gone
_encode = msgspec.json.Encoder().encode


class CliSession(Struct, frozen=True, omit_defaults=True):
    id: str  # ours
    program: str
    cwd: str  # programs find their sessions by the folder that they were begun in
    native: str = ""  # the program's own id
    begun: bool = False  # the program has said that it has it
    source: str = ""  # the program's id of the session that this one begins as a copy of
    folder: str = ""  # of the task that works in it
    key: str = ""  # of the prompt of its last turn,
    number: int = 0  # and which turn that is
    used: int = 0  # tokens before it,
    total: int = 0  # and with it; for programs that count whole sessions

    @property
    def turn(self) -> str:
        """The name of its last turn's command."""
        return f"{self.id}.{self.number}"


class SessionFiles:
    """A file for each, replaced as a whole: who is killed leaves the old one or the new one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _path(self, id: str) -> Path:
        return self._folder / f"{hashlib.sha256(id.encode()).hexdigest()[:32]}.json"

    def get(self, id: str) -> CliSession | None:
        return _read(self._path(id))

    def put(self, session: CliSession) -> CliSession:
        path = self._path(session.id)
        replace_file(path, _encode(session), synced=False, draft=f"{path.stem}.new")
        return session

    def has_turn(self, turn: str) -> bool:
        """Whether it is the last one of a session whose task is there."""
        session = self.get(turn.rpartition(".")[0])
        return session is not None and session.turn == turn and os.path.isdir(session.folder)

    def tidy(self) -> None:
        """Sessions outlive their tasks for a while: another may go on in them."""
        for path in list(self._folder.glob("*.json")):
            session = _read(path)
            with contextlib.suppress(OSError):
                old = time.time() - path.stat().st_mtime > KEPT
                if old and (session is None or not os.path.isdir(session.folder)):
                    path.unlink()


def _read(path: Path) -> CliSession | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=CliSession)
    except (OSError, msgspec.MsgspecError):
        return None
