"""Which session of Claude Code a session of ours is, and where Claude Code keeps its transcript."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from meantime.system.platform import sync_file

from .session_transcript import entries


class ClaudeSession(Struct, omit_defaults=True):
    """The content of our file."""

    id: str = field(default_factory=lambda: str(uuid4()))
    config: str = ""  # the folder of Claude Code's own files; empty before the first turn
    cwd: str = ""  # a session belongs to the folder in which it began
    source: str = ""  # the session that this one forks at its first turn,
    at: str = ""  # and the entry of its transcript up to which it does
    cost: float = 0.0  # in all, as Claude Code said last

    @property
    def transcript(self) -> Path | None:
        return self._transcript(self.id)

    @property
    def begun(self) -> Path | None:
        """The transcript to read: its source's, for a fork that has taken no turn yet."""
        return self.transcript or (self._transcript(self.source) if self.source else None)

    def _transcript(self, id: str) -> Path | None:
        return next(Path(self.config).glob(f"projects/*/{id}.jsonl"), None) if self.config else None


def read_record(path: Path) -> ClaudeSession:
    return msgspec.json.decode(path.read_bytes(), type=ClaudeSession)


def write_record(path: Path, record: ClaudeSession) -> None:
    """Whole or not at all."""
    fresh = path.with_name(f".{path.name}.new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        sync_file(file.fileno())
    fresh.replace(path)


def forked(record: ClaudeSession) -> ClaudeSession:
    """Another session, with all that was said in this one until now."""
    if record.transcript is None:
        return replace(record, id=str(uuid4()))
    said = entries(record.transcript)
    last = next((entry["uuid"] for entry in reversed(said) if entry.get("uuid")), "")
    return replace(record, id=str(uuid4()), source=record.id, at=last)
