"""Processes by what the kernel says of them: never by a pid alone, which will be another's one day."""

from __future__ import annotations

from msgspec import Struct

from meantime.system.platform import boot, stat


class Process(Struct, frozen=True):
    """One process of this boot of this machine."""

    pid: int
    started: int
    boot: str

    @property
    def is_alive(self) -> bool:
        found = stat(self.pid)
        is_it = found is not None and found.state != "Z" and found.started == self.started
        return is_it and self.boot == boot()


def process(pid: int) -> Process:
    found = stat(pid)
    return Process(pid, found.started if found else 0, boot())
