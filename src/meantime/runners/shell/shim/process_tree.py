"""The processes below us: finding all of them, and stopping all of them.

`meantime.system.platform.tree` says how each system finds them.
"""

from __future__ import annotations

import os
import signal

from meantime.system.platform.tree import Found, alone, children, descendants, facts, marked, send, start_time

__all__ = ["Found", "alone", "children", "descendants", "facts", "marked", "send", "start_time"]

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module itself would be one more to share with every fork
    from collections.abc import Callable

FREEZES = 20  # passes in which we try to hold still what forks faster than we look


def left_below(of: int) -> Found:
    """Everything below a process that is not alone. A process that forks and ends while we look is looked for
    again.
    """
    found: Found = {}
    for _ in range(FREEZES):
        found = descendants(of)
        if found or alone():
            break
    return found


def terminate(of: int) -> None:
    for pid, (started, _) in descendants(of).items():
        send(pid, started, signal.SIGTERM)
        send(pid, started, signal.SIGCONT)  # one that is stopped would never hear it


def kill(of: int) -> Found:
    """Holds everything still, so that nothing can fork away from us, then kills it. Returns what was
    there: the caller looks again until nothing is."""
    return kill_all(lambda: descendants(of))


def kill_all(find: Callable[[], Found]) -> Found:
    held: Found = {}
    for _ in range(FREEZES):
        fresh = {pid: at for pid, at in find().items() if held.get(pid) != at}
        if not fresh:
            break
        _strike(fresh, signal.SIGSTOP)
        held |= fresh
    _strike(held, signal.SIGKILL)
    return held


def _strike(found: Found, number: int) -> None:
    """Whole groups at once: a signal to a group also meets those that are being forked. All groups
    below us were made below us, in sessions that began there."""
    ours = os.getpgrp()
    for group in {group for _, group in found.values()}:
        if group not in (ours, 0):
            try:
                os.killpg(group, number)
            except OSError:
                continue
    for pid, (started, _) in found.items():
        send(pid, started, number)
