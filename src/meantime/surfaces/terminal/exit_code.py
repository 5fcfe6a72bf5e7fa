"""How a task ended, as an exit code."""

from __future__ import annotations

from .errors import CANCELLED, OK, STILL_RUNNING, TASK_FAILED, TIMED_OUT
from .task_format import ACTIVE, Wire

_KILLED = "It was killed by "


def has_ended(task: Wire) -> bool:
    return task["state"] not in ACTIVE


def exit_code(task: Wire) -> int:
    """For those who ask about a task."""
    if not has_ended(task):
        return STILL_RUNNING
    return {"completed": OK, "cancelled": CANCELLED}.get(task["state"], TASK_FAILED)


def own_code(task: Wire) -> int:
    """The command's own, as a shell would give it: 128 and the number of the signal that killed it."""
    if task.get("exitCode") is not None:
        return task["exitCode"]
    if task["state"] == "timed_out":
        return TIMED_OUT
    number = task.get("signal") or _signal_of(str(task.get("error") or ""))
    return 128 + number if number else exit_code(task)


def _signal_of(error: str) -> int:
    """Where the answer has the signal in words only."""
    if not error.startswith(_KILLED):
        return 0
    import signal

    name = error.removeprefix(_KILLED).rstrip(".")
    if name.startswith("signal ") and name[7:].isdigit():
        return int(name[7:])
    return int(signal.Signals[name]) if name in signal.Signals.__members__ else 0


def worst(tasks: list[Wire]) -> int:
    """The exit code for several tasks: the first failure counts, then a cancel."""
    codes = {exit_code(task) for task in tasks}
    return next((code for code in (TASK_FAILED, CANCELLED, STILL_RUNNING) if code in codes), OK)
