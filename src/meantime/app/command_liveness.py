"""Signs of life of a command, from the files that its shim keeps. Only looked at."""

from __future__ import annotations

import os
import time
from pathlib import Path

from meantime.kernel.model import Task
from meantime.runners.shell.command_paths import Places
from meantime.runners.shell.output_ring import look
from meantime.runners.shell.provenance import this_boot
from meantime.runners.shell.shim import cells, process_tree

FRESH = 60.0  # seconds in which an owner may still be about to start it, or to record its ending


def last_output(commands: Path, task: Task) -> float:
    """When it last said something; 0 for never."""
    base = Places(commands).of(task)
    return max(_touched(f"{base}{ending}") for ending in (cells.OUT_FILE, cells.ERR_FILE))


def has_live_run(commands: Path, task: Task, now: float) -> bool:
    """Whether a shim looks after it. One that has just begun or ended gets the benefit of the doubt."""
    if now - (task.run.started_at or task.run.queued_at) < FRESH:
        return True
    state = look(Places(commands).of(task))
    if state is None or state[cells.BOOT] not in (0, this_boot()):  # 0: an older shim did not say
        return False  # clocks and start times are those of another boot
    if state[cells.PHASE] == cells.ENDED:
        return time.monotonic_ns() - state[cells.ENDED_AT] < FRESH * 1e9
    return process_tree.start_time(state[cells.SHIM_PID]) == state[cells.SHIM_START]


def _touched(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
