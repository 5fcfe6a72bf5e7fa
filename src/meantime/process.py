"""Processes by what the kernel says of them: never by a pid alone, which will be another's one day."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from meantime.boot import boot

PROC = Path("/proc")


class Stat(NamedTuple):
    name: str
    state: str
    parent: int
    started: int  # in ticks since the boot


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


def stat(pid: int) -> Stat | None:
    """None where it is gone, or where this system shows none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    end = text.rindex(")")  # a name may hold anything
    fields = text[end + 2 :].split()
    return Stat(text[text.index("(") + 1 : end], fields[0], int(fields[1]), int(fields[19]))
