"""Going on where one was when the daemon goes away and comes back."""

from __future__ import annotations

import time

from meantime.surfaces.terminal.errors import DaemonGone
from meantime.surfaces.terminal.std_streams import echo

from .daemon_client import Daemon

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

PAUSE = 0.1  # seconds between two looks
SETTLED = 2.0  # seconds: whoever was answered for so long had found it again


def patiently(daemon: Daemon, ask: Callable[[], T], seconds: float, *, silent: bool = False) -> T:
    """Calls `ask` until it has its answer; it must go on from where it was. A daemon that goes away in
    the middle is waited for, and nobody is told twice while it is still closing."""
    until, told = 0.0, silent
    while True:
        began = time.monotonic()
        try:
            return ask()
        except DaemonGone as gone:
            what = gone.what
        if not until or time.monotonic() - began > SETTLED:
            until = time.monotonic() + seconds
        if not told:
            echo(f"meantime: {what} Waiting for it to come back.", err=True)
            told = True
        if _was_away(daemon, until) and not silent:
            echo("meantime: It is back.", err=True)
            told = False


def _was_away(daemon: Daemon, until: float) -> bool:
    """Returns when it answers: whether there was a time when nobody did."""
    away = False
    while time.monotonic() < until:
        time.sleep(PAUSE)
        try:
            daemon.get("/v1/health")
            return away
        except DaemonGone:
            away = True
    hint = "The work keeps running. `meantime up` starts a daemon."
    raise DaemonGone("The daemon did not come back.", hint)
