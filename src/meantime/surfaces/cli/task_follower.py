"""Staying with one task until it has ended: its output, live, and how it ended."""

from __future__ import annotations

import sys

from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.daemon_client.reconnection import patiently
from meantime.surfaces.terminal.errors import CliError, DaemonRefused
from meantime.surfaces.terminal.exit_code import has_ended
from meantime.surfaces.terminal.task_format import Wire

from .output_sinks import Copy, Sink, follow, one_place, sink

STEP = 30  # seconds that the daemon is asked to wait at once
RETURN = 30.0  # seconds that a daemon which went away is waited for


def live(daemon: Daemon, id: str, *, raw: bool) -> None:
    """Its output goes where it would go if it ran here."""
    if one_place():
        _copied(daemon, id, "both", sink(sys.stdout, raw=raw))
        return
    import threading

    troubles: list[CliError] = []

    def errors() -> None:
        try:
            _copied(Daemon(daemon.home, start=False), id, "stderr", sink(sys.stderr, raw=raw), silent=True)
        except CliError as trouble:
            troubles.append(trouble)

    beside = threading.Thread(target=errors, daemon=True)  # Ctrl+C does not wait for it
    beside.start()
    _copied(daemon, id, "stdout", sink(sys.stdout, raw=raw))
    beside.join()
    if troubles:
        raise troubles[0]


def ended(daemon: Daemon, id: str) -> Wire:
    """The task, when it has ended."""
    path = f"/v1/tasks/{part(id)}/wait"
    while True:
        task = patiently(daemon, lambda: daemon.get(path, timeout=STEP, patience=STEP + 30.0), RETURN)
        if has_ended(task):
            return task


def _copied(daemon: Daemon, id: str, stream: str, to: Sink, *, silent: bool = False) -> None:
    copy = Copy(to)
    try:
        patiently(daemon, lambda: follow(daemon, id, stream, copy), RETURN, silent=silent)
    except DaemonRefused as refused:
        if refused.code != "no_log":
            raise
    finally:
        copy.end()
