"""The transcript of a thread: at most one entry a notice."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from meantime.ports.store import Entry


class Transcript:
    __slots__ = ("entries", "notices")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.notices: set[str] = set()

    def append(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.notice is not None:
                if entry.notice in self.notices:
                    continue
                self.notices.add(entry.notice)
            self.entries.append(replace(entry, position=len(self.entries) + 1))
