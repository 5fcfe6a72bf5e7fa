"""Ctrl+C at a verb that waits: the first one interrupts it. Further ones do not cut off its last words, and
do not change its exit code.
"""

from __future__ import annotations

import signal


def interrupt_once() -> None:
    """From here on. A signal that is ignored, as by nohup, stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    signal.pthread_sigmask(
        signal.SIG_BLOCK, [number]
    )  # Python complains of one that comes with the next line
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
