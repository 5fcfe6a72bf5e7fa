"""Being told at a shell: what a conversation was not told yet, printed, and then counted as told."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote

from .following import patiently
from .safe import plain_lines
from .speaking import Daemon
from .trouble import OK, TIMED_OUT, Trouble

STEP = 30.0  # seconds that the daemon is asked to wait at once
LEASE = 60.0  # seconds that printing may take


def tell(with_daemon: Daemon, thread: str, timeout: float | None, patience: float) -> int:
    """Returns when something was told, or the time is over. Printed comes first: who is killed in
    between is told again, and who was not told is."""
    until = None if timeout is None else time.monotonic() + timeout
    path = f"/v1/threads/{quote(thread, safe='')}"
    while True:
        turn = patiently(with_daemon, lambda: with_daemon.post(f"{path}/turns", {"lease": LEASE}), patience)
        if turn["notices"]:
            return _told(with_daemon, turn)
        with_daemon.post(f"/v1/turns/{turn['turn']}/release")
        left = STEP if until is None else min(STEP, until - time.monotonic())
        if left <= 0:
            return TIMED_OUT
        wake = partial(with_daemon.get, f"{path}/wake", timeout=left, patience=left + 30)
        patiently(with_daemon, wake, patience)


def _told(with_daemon: Daemon, turn: dict[str, Any]) -> int:
    told: list[str] = []
    try:
        for notice in turn["notices"]:
            text = "\n".join(part["text"] for part in notice["message"]["parts"])
            sys.stdout.write(f"{plain_lines(text)}\n")
            sys.stdout.flush()
            told.append(notice["id"])
    finally:
        with suppress(Trouble):  # what could not be acknowledged is told again
            if told:
                with_daemon.post(f"/v1/turns/{turn['turn']}/ack", {"notices": told})
            with_daemon.post(f"/v1/turns/{turn['turn']}/release")
    return OK
