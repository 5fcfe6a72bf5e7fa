"""Ctrl+C, a polite kill and a closed terminal all end the demo cleanly: commands stopped, folder gone."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


class Signals:
    """The first one cancels what runs in the loop. Later signals are ignored, to the very end of the
    process: cut short, the ending would leave commands running or files lying about.

    Not asyncio's own handlers: those are gone with the loop, and the folder is removed after that."""

    def __init__(self) -> None:
        self.heard = 0  # the first one's number
        self._cancel: Callable[[], object] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays what it is
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *problem: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_IGN if self.heard else before)

    def cancel_me(self) -> None:
        """From inside the loop: whoever calls this is the one to cancel."""
        me = asyncio.current_task()
        assert me is not None
        loop, cancel = asyncio.get_running_loop(), me.cancel
        self._cancel = lambda: loop.call_soon_threadsafe(cancel)
        if self.heard:
            self._cancel()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.heard:
            return
        self.heard = number
        if self._cancel is not None:
            with suppress(RuntimeError):  # the loop is closed: it was over anyway
                self._cancel()


@contextmanager
def keep_output() -> Generator[None]:
    """With each Ctrl+C a terminal drops output that it has not shown yet, our last words too: not in here."""
    is_changed = _set_drops(drops=False)
    try:
        yield
    finally:
        if is_changed:
            _set_drops(drops=True)


def _set_drops(*, drops: bool) -> bool:
    """Whether it was different, on a terminal that is ours: in the background, a change would stop us."""
    try:
        mode = termios.tcgetattr(1)
        if drops is not bool(mode[3] & termios.NOFLSH) or os.tcgetpgrp(1) != os.getpgrp():
            return False
        mode[3] ^= termios.NOFLSH
        termios.tcsetattr(1, termios.TCSANOW, mode)
    except (OSError, termios.error):  # stdout is no terminal, or it is gone
        return False
    return True
