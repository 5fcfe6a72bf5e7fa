"""`meantime prune`: deletes what ended long ago, for good."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import click

from meantime.surfaces.cli import finding
from meantime.surfaces.cli.asking import DURATION
from meantime.surfaces.cli.showing import ACTIVE, moment, span
from meantime.surfaces.cli.speaking import Daemon
from meantime.surfaces.cli.trouble import USAGE, Trouble
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb

PATIENCE = 300.0
AT_ONCE = 500


@verb("prune")
@click.option("--older-than", type=DURATION, default="7d", show_default=True, metavar="TIME")
@click.option("--status", metavar="WORDS", help="Only these: completed, failed, …")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
def command(older_than: float, status: str | None, yes: bool, as_json: bool) -> int | None:
    """Delete tasks that ended long ago, with their output. Notices of them that nobody was told go, too."""
    wanted = finding.states(status or "ended")
    if any(state in ACTIVE for state in wanted):
        raise Trouble("Only what has ended can be deleted.", "`meantime cancel` stops what runs.", USAGE)
    if not yes:
        if not sys.stdin.isatty():
            raise Trouble("This deletes for good.", "Say --yes.", USAGE)
        if not click.confirm(f"Delete what ended more than {span(older_than)} ago, for good?", err=True):
            return 1
    with_daemon = daemon()
    if status:
        answer = {"purged": _purged(with_daemon, wanted, time.time() - older_than)}
    else:
        answer = with_daemon.post("/v1/purge", {"endedBefore": older_than}, patience=PATIENCE)
    if as_json:
        say_json(answer)
    else:
        click.echo(f"deleted {answer['purged']} tasks")
    return None


def _purged(with_daemon: Daemon, wanted: Sequence[str], before: float) -> int:
    """One by one: the daemon's own words for statuses are coarser than a person's."""
    found = finding.tasks(with_daemon, wanted, cleared="true")
    ids = [task["id"] for task in found if (moment(task.get("completedAt")) or before) <= before]
    pieces = [ids[at : at + AT_ONCE] for at in range(0, len(ids), AT_ONCE)]
    return sum(with_daemon.post("/v1/purge", {"ids": piece}, patience=PATIENCE)["purged"] for piece in pieces)
