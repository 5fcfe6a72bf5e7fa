"""`meantime logs`: what a command said, from its files; of other work, its history."""

from __future__ import annotations

import sys

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.output_sinks import Copy, Sink, follow, sink
from meantime.surfaces.cli.parameter_types import ChoiceType, Whole, one_task, reconnect
from meantime.surfaces.cli.verb import as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.daemon_client.reconnection import patiently
from meantime.surfaces.terminal.errors import DaemonRefused

PIECE = 1 << 20


@verb("logs")
@one_task
@option("-f", "--follow", "followed", is_flag=True, help="Go on until the task has ended.")
@option("-n", "--tail", type=Whole(0), metavar="LINES", help="Only the last lines.")
@option("--stream", type=ChoiceType("both", "stdout", "stderr"), default="both", show_default=True)
@option("--offset", type=Whole(0), metavar="BYTES", help="From here on.")
@option(
    "--raw", is_flag=True, help="Every byte, even on a terminal; the default there is text and colours only."
)
@reconnect
@as_json
def command(
    ref: str, followed: bool, tail: int | None, stream: str, offset: int | None, raw: bool,
    reconnect: float, as_json: bool,
) -> None:  # fmt: skip
    """The output of a command, even while it runs."""
    with_daemon = daemon()
    id = task_search.task(with_daemon, ref)["id"]
    path = f"/v1/tasks/{part(id)}/output"
    if as_json:
        say_json(with_daemon.get(path, stream=stream, offset=offset, tail=tail, limit=PIECE))
        return
    if followed:
        from meantime.surfaces.cli.first_interrupt import interrupt_once

        interrupt_once()
    to = sink(sys.stdout, raw=raw)
    copy = Copy(to, offset or 0)
    try:
        _so_far(with_daemon, path, stream, copy, tail)
        if followed:
            patiently(with_daemon, lambda: follow(with_daemon, id, stream, copy), reconnect)
    except DaemonRefused as refused:
        if refused.code != "no_log":
            raise
        _history(with_daemon, id, to)
    finally:
        copy.end()


def _so_far(daemon: Daemon, path: str, stream: str, copy: Copy, tail: int | None) -> None:
    """Everything that is there now. Gaps are reported, beside the output."""
    if tail is not None:
        copy.offset = daemon.get(path, stream=stream, limit=1)["total"]
        if tail:
            last = daemon.get(path, stream=stream, encoding="base64", tail=tail, limit=PIECE)
            copy.take(last, silent=True)
    while True:
        piece = daemon.get(path, stream=stream, encoding="base64", offset=copy.offset, limit=PIECE)
        copy.take(piece)
        if piece["next"] >= piece["total"] or not (piece["dataBase64"] or piece["lostBytes"]):
            return


def _history(daemon: Daemon, id: str, to: Sink) -> None:
    for message in daemon.get(f"/v1/tasks/{part(id)}/logs"):
        name = f"{message['name']}: " if message["type"] == "emitted" else ""
        to.write(f"[{message['role']}] {name}{message['text']}\n".encode(errors="replace"))
