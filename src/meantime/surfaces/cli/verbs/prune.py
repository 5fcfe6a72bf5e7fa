"""`meantime prune`: deletes what ended long ago, for good."""

from __future__ import annotations

import sys

import click

from meantime.surfaces.cli import finding
from meantime.surfaces.cli.asking import DURATION
from meantime.surfaces.cli.showing import ACTIVE, span
from meantime.surfaces.cli.trouble import USAGE, Trouble
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb


@verb("prune")
@click.option("--older-than", type=DURATION, default="7d", show_default=True, metavar="TIME")
@click.option("--status", metavar="WORDS", help="Only these: completed, failed, …")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
def command(older_than: float, status: str | None, yes: bool, as_json: bool) -> int | None:
    """Delete tasks that ended long ago, with their output. What was never told is kept."""
    wanted = finding.states(status or "ended")
    if any(state in ACTIVE for state in wanted):
        raise Trouble("Only what has ended can be deleted.", "`meantime cancel` stops what runs.", USAGE)
    if not yes:
        if not sys.stdin.isatty():
            raise Trouble("This deletes for good.", "Say --yes.", USAGE)
        if not click.confirm(f"Delete what ended more than {span(older_than)} ago, for good?", err=True):
            return 1
    body = {"endedBefore": older_than, **({"statuses": list(wanted)} if status else {})}
    answer = daemon().post("/v1/purge", body, patience=300)
    if as_json:
        say_json(answer)
    else:
        click.echo(f"deleted {answer['purged']} tasks")
    return None
