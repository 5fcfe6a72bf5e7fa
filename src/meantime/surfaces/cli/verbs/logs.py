"""`meantime logs`: what a command said, from its files; of other work, its history."""

from __future__ import annotations

import base64
import sys

import click

from meantime.surfaces.cli import finding
from meantime.surfaces.cli.asking import one_task, reconnect
from meantime.surfaces.cli.following import patiently
from meantime.surfaces.cli.output import Position, Sink, follow, sink
from meantime.surfaces.cli.speaking import Daemon, part
from meantime.surfaces.cli.trouble import Refused
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb

PIECE = 1 << 20


@verb("logs")
@one_task
@click.option("-f", "--follow", "followed", is_flag=True, help="Go on until the task has ended.")
@click.option("-n", "--tail", type=click.IntRange(0), metavar="LINES", help="Only the last lines.")
@click.option("--stream", type=click.Choice(["both", "stdout", "stderr"]), default="both", show_default=True)
@click.option("--offset", type=click.IntRange(0), metavar="BYTES", help="From here on.")
@click.option("--raw", is_flag=True, help="On a terminal too, every byte; else text and colours only.")
@reconnect
@as_json
def command(
    ref: str, followed: bool, tail: int | None, stream: str, offset: int | None, raw: bool,
    reconnect: float, as_json: bool,
) -> None:  # fmt: skip
    """What a command said, also while it runs."""
    with_daemon = daemon()
    id = finding.task(with_daemon, ref)["id"]
    path = f"/v1/tasks/{part(id)}/output"
    if as_json:
        say_json(with_daemon.get(path, stream=stream, offset=offset, tail=tail, limit=PIECE))
        return
    to = sink(sys.stdout, raw=raw)
    at = Position(offset or 0)
    try:
        _so_far(with_daemon, path, stream, at, tail, to)
        if followed:
            patiently(with_daemon, lambda: follow(with_daemon, id, stream, at, to), reconnect)
    except Refused as refused:
        if refused.code != "no_log":
            raise
        _history(with_daemon, id, to)
    finally:
        to.end()


def _so_far(daemon: Daemon, path: str, stream: str, at: Position, tail: int | None, to: Sink) -> None:
    """Everything that is there now. What was not kept is said, beside the output."""
    if tail is not None:
        at.offset = daemon.get(path, stream=stream, limit=1)["total"]
        if tail:
            last = daemon.get(path, stream=stream, encoding="base64", tail=tail, limit=PIECE)
            _told(last, at, to, silent=True)
    while True:
        piece = daemon.get(path, stream=stream, encoding="base64", offset=at.offset, limit=PIECE)
        _told(piece, at, to)
        if piece["next"] >= piece["total"] or not (piece["dataBase64"] or piece["lostBytes"]):
            return


def _told(piece: dict[str, object], at: Position, to: Sink, *, silent: bool = False) -> None:
    lost, after = piece["lostBytes"], piece["next"]
    if lost and not silent:
        click.echo(f"meantime: {lost} bytes were not kept here.", err=True)
    to.write(base64.b64decode(str(piece["dataBase64"])))
    if isinstance(after, int):
        at.offset = after


def _history(daemon: Daemon, id: str, to: Sink) -> None:
    for message in daemon.get(f"/v1/tasks/{part(id)}/logs"):
        to.write(f"[{message['role']}] {message['text']}\n".encode(errors="replace"))
