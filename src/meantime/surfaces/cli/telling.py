"""`wait --unread`: telling a conversation on stdout, for an agent that reads what its own command printed."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

import click

from .following import patiently
from .safe import plain, plain_lines
from .speaking import Daemon, part
from .trouble import BROKEN_PIPE, NOT_FOUND, OK, TIMED_OUT, Gone, Refused, Trouble
from .unread import Thread, is_read, wait_unread
from .verb import say_json

LEASE = 60.0  # seconds in which it is printed; a reader that hangs longer is told again
MOST = 20  # notices at once: the rest comes with the next call


def told(
    daemon: Daemon, id: str, timeout: float | None, reconnect: float, *, quiet: bool, as_json: bool
) -> int:
    """Blocks, prints, and counts as told what was printed whole. Where the reader is gone, nothing is."""
    thread = Thread(daemon, id)
    until = None if timeout is None else time.monotonic() + timeout
    if patiently(daemon, thread.is_over, reconnect):
        what = f"Nothing runs in {plain(id)}, and there is nothing unread."
        raise Trouble(what, "`meantime threads` lists the conversations.", NOT_FOUND)
    while True:
        ended = patiently(daemon, lambda: wait_unread(thread, until, is_read), reconnect, silent=quiet)
        if ended is None:
            return OK  # somebody else was told: another turn took what there was
        if not ended:
            return TIMED_OUT if is_read() else BROKEN_PIPE
        if _tell(daemon, id, quiet=quiet, as_json=as_json):
            return OK


def _tell(daemon: Daemon, id: str, *, quiet: bool, as_json: bool) -> bool:
    """Whether there was something. What could not be printed is given back at once."""
    opened = daemon.post(f"/v1/threads/{part(id)}/turns", {"lease": LEASE, "limit": MOST})
    turn, notices = f"/v1/turns/{part(opened['turn'])}", opened["notices"]
    try:
        if notices:
            _print(notices, quiet=quiet, as_json=as_json)
            _acknowledge(daemon, turn, [notice["id"] for notice in notices])
    finally:
        with suppress(Refused, Gone):
            daemon.post(f"{turn}/release", {})
    return bool(notices)


def _print(notices: list[Any], *, quiet: bool, as_json: bool) -> None:
    if as_json:
        say_json({"notices": notices})
    elif not quiet:
        texts = ["\n".join(part["text"] for part in notice["message"]["parts"]) for notice in notices]
        click.echo("\n\n".join(map(plain_lines, texts)))
    sys.stdout.flush()


def _acknowledge(daemon: Daemon, turn: str, ids: list[str]) -> None:
    """Again where no answer came: it is answered the same."""
    try:
        daemon.post(f"{turn}/ack", {"notices": ids})
    except Gone:
        with suppress(Refused, Gone):
            daemon.post(f"{turn}/ack", {"notices": ids})
