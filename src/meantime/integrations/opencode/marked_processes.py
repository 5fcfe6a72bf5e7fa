"""Processes of other programs: finding those of ours among them, and ending them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from meantime.system.process import Process, process


def signal_group(of: Process, number: signal.Signals) -> None:
    """To its group, which it leads."""
    if of.is_alive:
        _send(os.killpg, of.pid, number)


def marked(mark: str) -> Iterator[Process]:
    """Processes that were started with this in their environment."""
    wanted = mark.encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                found = process(int(path.name))
                if found.is_alive:
                    yield found
        except OSError:
            continue


def end_marked(mark: str) -> int:
    """Ends the processes that a killed server has left running; returns how many there were."""
    found = list(marked(mark))
    for each in found:
        _send(os.kill, each.pid, signal.SIGKILL)
    return len(found)


def _send(send: Callable[[int, int], None], pid: int, number: signal.Signals) -> None:
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):
        return
