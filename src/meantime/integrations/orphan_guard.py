"""Ends the agents that a kill -9 of their owner leaves running: `main(<lifeline>, <variable>, <mark>)`.

The lifeline is a pipe of which the owner holds the other end. An owner that ends by itself says so first; its
agents have ended then, or are another's to end. Otherwise each process is killed in whose environment the
variable begins with the owner's mark, and with it what it holds: an agent without its owner asks its provider
again and again for minutes, and keeps the terminal's pipe.

Commands of Meantime that were started from inside go on: they have another command's mark than the owner.

Runs in a bare Python: it must start fast.
"""

from __future__ import annotations

import os
import time

from meantime.system.platform import environments, stat
from meantime.system.process_marks import COMMAND

TYPE_CHECKING = False  # `signal` and `typing` load more than all of this
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

# Seconds before each look: an owner is gone a moment after its end of the pipe is, and an agent shows its
# mark a moment after it was started.
LOOKS = (0.0, 0.05, 0.2, 1.0)


def main(lifeline: int, variable: str, mark: str) -> int:
    if not os.read(lifeline, 1):
        for pause in LOOKS:
            time.sleep(pause)
            if _is_gone(mark):
                _end(os.fsencode(f"{variable}={mark}"))
    return 0


def _is_gone(mark: str) -> bool:
    """It may have closed its files, and live."""
    pid, started, _ = mark.split(" ", 2)
    found = stat(int(pid))
    return found is None or found.state == "Z" or found.started != int(started)


def _end(marked: bytes) -> None:
    for pid, environment in environments():
        entries = environment.split(b"\0")
        if any(entry.startswith(marked) for entry in entries) and _command(entries) == _command(_own()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue


def _own() -> list[bytes]:
    """The variables of the owner, which this process was started with."""
    return [b"%b=%b" % pair for pair in os.environb.items()]


def _command(entries: list[bytes]) -> bytes:
    name = os.fsencode(f"{COMMAND}=")
    return next((entry for entry in entries if entry.startswith(name)), name)
