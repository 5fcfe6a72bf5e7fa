"""`wait --tell`: telling a conversation on stdout, for an agent that reads what its own command printed."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from meantime.surfaces.caller.caller_thread import PERSON
from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.daemon_client.reconnection import patiently
from meantime.surfaces.daemon_client.unread_wait import ThreadClient, wait_unread
from meantime.surfaces.terminal.errors import (
    BROKEN_PIPE,
    FAILED,
    NOT_FOUND,
    OK,
    TIMED_OUT,
    CliError,
    DaemonGone,
    DaemonRefused,
)
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain, plain_lines
from meantime.system.output_reader import is_read

from .confirmation import line_typed
from .first_interrupt import interrupt_once
from .verb import say_json

LEASE = 60.0  # seconds in which it is printed; a reader that hangs longer is told again
MOST = 20  # notices at once: the rest comes with the next call


class PrintOptions(NamedTuple):
    """How it is told, and whether somebody confirms it."""

    quiet: bool
    as_json: bool
    confirm: bool
    settle: float  # seconds in which further endings are told with the first


def told(daemon: Daemon, id: str, timeout: float | None, reconnect: float, to: PrintOptions) -> int:
    """Blocks, prints, and counts as told what was printed whole. Where the reader is gone, nothing is."""
    interrupt_once()
    thread = ThreadClient(daemon, id)
    until = None if timeout is None else time.monotonic() + timeout
    if patiently(daemon, thread.is_over, reconnect):
        what = f"Nothing runs in {plain(id)}, and there is nothing unread."
        named = "`meantime run --thread ID` names the conversation that is told."
        hint = named if id == PERSON else "`meantime threads` lists the conversations."
        raise CliError(what, hint, NOT_FOUND)
    while True:
        ended = patiently(daemon, lambda: wait_unread(thread, until, is_read), reconnect, silent=to.quiet)
        if ended is None:
            return OK  # somebody else was told: another turn took what there was
        if not ended:
            return TIMED_OUT if is_read() else BROKEN_PIPE
        settle = partial(thread.settle, _at_most(to.settle, until))
        patiently(daemon, settle, reconnect, silent=to.quiet)
        if _tell(daemon, id, to):
            return OK


def _at_most(seconds: float, until: float | None) -> float:
    return seconds if until is None else min(seconds, until - time.monotonic())


def _tell(daemon: Daemon, id: str, to: PrintOptions) -> bool:
    """Whether there was something. A notice that could not be printed is given back at once; one that nobody
    confirms counts as a failed delivery, and five of those park a notice.
    """
    opened = daemon.post(f"/v1/threads/{part(id)}/turns", {"lease": LEASE, "limit": MOST})
    turn, notices = f"/v1/turns/{part(opened['turn'])}", opened["notices"]
    refused = False
    try:
        if notices:
            _print(notices, to)
            # Afterwards it may have been told to somebody else.
            refused = to.confirm and not line_typed(within=LEASE)
            if refused:
                raise CliError("Nobody confirmed what was told.", "It is unread again.", FAILED)
            _acknowledge(daemon, turn, [notice["id"] for notice in notices])
    finally:
        with suppress(DaemonRefused, DaemonGone):
            daemon.post(f"{turn}/release", {"failed": refused})
    return bool(notices)


def _print(notices: list[Any], to: PrintOptions) -> None:
    if to.as_json:
        say_json({"notices": notices})
    elif not to.quiet:
        texts = ["\n".join(part["text"] for part in notice["message"]["parts"]) for notice in notices]
        echo("\n\n".join(map(plain_lines, texts)))
    sys.stdout.flush()


def _acknowledge(daemon: Daemon, turn: str, ids: list[str]) -> None:
    """Again where no answer came: it is answered the same."""
    try:
        daemon.post(f"{turn}/ack", {"notices": ids})
    except DaemonGone:
        with suppress(DaemonRefused, DaemonGone):
            daemon.post(f"{turn}/ack", {"notices": ids})
