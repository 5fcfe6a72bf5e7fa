"""Processes of other programs, by what the kernel says of them: never by a pid alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from meantime.boot import boot

PROC = Path("/proc")


class Process(Struct, frozen=True):
    """One process of this boot of this machine."""

    pid: int
    started: int  # in ticks since the boot
    boot: str

    @property
    def is_alive(self) -> bool:
        state, started = _state(self.pid)
        return state not in ("", "Z") and started == self.started and self.boot == boot()

    def signal(self, number: signal.Signals) -> None:
        """To its group, which it leads."""
        if self.is_alive:
            _send(os.killpg, self.pid, number)


def process(pid: int) -> Process:
    return Process(pid, _state(pid)[1], boot())


def marked(mark: str) -> Iterator[Process]:
    """Those that were started with this in their environment."""
    wanted = mark.encode()
    for path in PROC.glob("[0-9]*"):
        try:
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                found = process(int(path.name))
                if found.is_alive:
                    yield found
        except OSError:
            continue


def end_marked(mark: str) -> int:
    """What a server has left running when it was killed; how many there were."""
    found = list(marked(mark))
    for each in found:
        _send(os.kill, each.pid, signal.SIGKILL)
    return len(found)


def _state(pid: int) -> tuple[str, int]:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return "", 0
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], int(fields[19])


def _send(send: Callable[[int, int], None], pid: int, number: signal.Signals) -> None:
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):
        return
