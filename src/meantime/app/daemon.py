"""`python -m meantime.app.daemon`: the process that owns the ledger of a home and serves everyone.

Started twice, the second one waits until the first answers and leaves. This file needs the standard
library alone, so that leaving is quick; the rest is loaded by the one that stays.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from meantime.daemon.daemon_autostart import DIED
from meantime.daemon.home import BadHome, Home, home
from meantime.daemon.owner_process import READY, served_by_another
from meantime.system import process_marks
from meantime.system.platform import close_files
from meantime.system.service_notify import SOCKET

from .reaper import step_aside


def main() -> int:
    """Exit code 0: the home is served, by us or by another."""
    if not {"--foreground", "--log-file"}.issuperset(sys.argv[1:]):
        sys.stderr.write("usage: python -m meantime.app.daemon [--foreground [--log-file]]\n")
        return 2
    if os.getpid() == 1:
        step_aside()
    for name in ("MEANTIME_TASK", "MEANTIME_THREAD", "MEANTIME_EVENTS", process_marks.CLAUDE):
        os.environ.pop(name, None)  # of whoever started us: what we start is not theirs
    try:
        ours = home()
        ours.make()
    except BadHome as problem:
        return _say(f"{problem.message}\n{problem.hint}")
    found = served_by_another(ours)
    if found == "" and SOCKET in os.environ:  # a service manager waits for a process of its own to be ready
        found = f"Another daemon serves {ours.folder} already.\nLet this one serve it: meantime down --keep"
    if found is not None:
        return _say(found) if found else 0
    return _lead(ours, StartReport(None)) if "--foreground" in sys.argv else _detached(ours)


class StartReport:
    """The daemon's report to the process that started it: READY, or why not. Once; nobody need listen."""

    def __init__(self, place: int | None) -> None:
        self._place = place

    def __call__(self, said: str) -> None:
        place, self._place = self._place, None
        if place is None:
            return
        with suppress(OSError):
            os.write(place, said.encode("utf-8", "replace"))
        os.close(place)


def _say(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1


def _detached(ours: Home) -> int:
    """Waits until the daemon answers, or says why it does not."""
    hears, says = os.pipe()
    if os.fork() == 0:
        _step_aside(ours, says)
    os.close(says)
    with os.fdopen(hears, "rb") as ear:
        said = ear.read().decode("utf-8", "replace")  # ends when the daemon has spoken, or is gone
    os.wait()
    if not said:
        _say("The daemon was killed while it started.")
        return DIED
    return 0 if said == READY else _say(said)


def _step_aside(ours: Home, says: int) -> NoReturn:
    """A session of its own, and then no leader of it: no terminal can become ours, or take us with it."""
    code = 1
    try:
        os.setsid()
        if os.fork() == 0:
            _close_others(says)
            code = _lead(ours, StartReport(says))
        else:
            code = 0
    finally:
        os._exit(code)


def _close_others(kept: int) -> None:
    """Files that our starter had open are not ours to keep open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    close_files(kept)


def _lead(ours: Home, report: StartReport) -> int:
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # a mask is inherited, and would make us deaf
    umask = os.umask(0o077)
    os.chdir("/")
    from .daemon_lifecycle import lead

    log_file = "--foreground" not in sys.argv or "--log-file" in sys.argv
    return lead(ours, report, umask, log_file=log_file)


if __name__ == "__main__":
    sys.exit(main())
