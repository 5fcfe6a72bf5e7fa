"""`meantime send`: more for the stdin of a running command, or a word to a running agent."""

from __future__ import annotations

import base64
import os

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import one_task
from meantime.surfaces.cli.verb import argument, daemon, option, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo

PIECE = 1 << 19
SAID = {
    "steered": "sent: it reaches the agent in its turn",
    "queued": "queued: it is what runs next, when this run has ended",
}


@verb("send")
@one_task
@argument("words", nargs=-1, metavar="[TEXT]…")
@option("--eof", is_flag=True, help="Close it afterwards.")
@option("-n", "--no-newline", is_flag=True, help="No new line after TEXT.")
def command(ref: str, words: tuple[str, ...], eof: bool, no_newline: bool) -> None:
    """Write TEXT and a new line to a running command; without TEXT, or with -, what stdin gives.

    A command must have been started with --stdin-open. An agent receives it in its turn, if it can; otherwise
    it is the follow-up that runs next.
    """
    with_daemon = daemon()
    path = f"/v1/tasks/{part(task_search.task(with_daemon, ref)['id'])}/send"
    piped = words in ((), ("-",))
    if piped and eof and not words and os.isatty(0):
        with_daemon.post(path, {"data": "", "eof": True})
        return
    if not piped:
        text = " ".join(words) + ("" if no_newline else "\n")
        sent = with_daemon.post(
            path, {"dataBase64": _packed(text.encode(errors="surrogateescape")), "eof": eof}
        )
        if sent["sent"] in SAID:
            echo(SAID[sent["sent"]])
        return
    while data := _read():
        with_daemon.post(path, {"dataBase64": _packed(data)})
    if eof:
        with_daemon.post(path, {"data": "", "eof": True})


def _read() -> bytes:
    """The available input, without waiting for more: a person types line by line."""
    try:
        return os.read(0, PIECE)
    except OSError as problem:
        raise CliError(f"stdin cannot be read: {problem.strerror}.", "Give TEXT.", USAGE) from problem


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode()
