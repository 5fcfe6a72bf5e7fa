"""Processes of other programs: finding those of ours among them, and ending them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

from meantime.system.platform import environments
from meantime.system.process import Process, process


def signal_group(of: Process, number: signal.Signals) -> None:
    """To its group, which it leads."""
    if of.is_alive:
        _send(os.killpg, of.pid, number)


def marked(name: str) -> Iterator[tuple[Process, str]]:
    """Processes that were started with this variable in their environment, and its values."""
    for found, variables in started_with(name):
        yield found, variables[name]


def started_with(name: str) -> Iterator[tuple[Process, dict[str, str]]]:
    """The same, with all variables of their environment."""
    wanted = f"{name}=".encode()
    for pid, environment in environments():
        if environment.startswith(wanted) or b"\0" + wanted in environment:
            entries = (entry.partition(b"=") for entry in environment.split(b"\0"))
            variables = {os.fsdecode(variable): os.fsdecode(value) for variable, _, value in entries}
            if (found := process(pid)).is_alive:
                yield found, variables


def end_marked(name: str, value: str) -> int:
    """Ends the processes that a killed server has left running; returns how many there were."""
    return kill_all([found for found, of in marked(name) if of == value])


def kill_all(processes: list[Process]) -> int:
    for each in processes:
        _send(os.kill, each.pid, signal.SIGKILL)
    return len(processes)


def _send(send: Callable[[int, int], None], pid: int, number: signal.Signals) -> None:
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):
        return
