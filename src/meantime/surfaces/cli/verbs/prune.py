"""`meantime prune`: deletes what ended long ago, for good."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.confirmation import confirmed
from meantime.surfaces.cli.parameter_types import DURATION, TASK
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal.errors import NOT_ALLOWED, USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import ACTIVE, Wire, moment, short, span

PATIENCE = 300.0
AT_ONCE = 500


@verb("prune")
@argument("refs", nargs=-1, type=TASK, metavar="[ID]…")
@option("--older-than", type=DURATION, default="7d", show_default=True, metavar="TIME")
@option("--status", metavar="WORDS", help="Only these: completed, failed, …")
@option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
def command(
    refs: tuple[str, ...], older_than: float, status: str | None, yes: bool, as_json: bool
) -> int | None:
    """Delete the named tasks, or those that ended long ago, with their output.

    Notices of them that nobody was told go, too.
    """
    if refs:
        return _named(refs, yes, as_json)
    wanted = task_search.states(status or "ended")
    if any(state in ACTIVE for state in wanted):
        raise CliError("Only what has ended can be deleted.", "`meantime cancel` stops what runs.", USAGE)
    with_daemon = daemon()
    before = time.time() - older_than
    if not yes:
        if not sys.stdin.isatty():
            raise CliError("This deletes for good.", "Say --yes.", USAGE)
        many = len(_old(with_daemon, wanted, before))
        if not many:
            _say({"purged": 0}, as_json)
            return None
        what = f"{many} task{'s' if many > 1 else ''} that ended more than {span(older_than)} ago"
        if not confirmed(f"Delete {what}, for good?"):
            return 1
    if status:
        answer = {"purged": _purged(with_daemon, wanted, before)}
    else:
        answer = with_daemon.post("/v1/purge", {"endedBefore": older_than}, patience=PATIENCE)
    _say(answer, as_json)
    return None


def _named(refs: tuple[str, ...], yes: bool, as_json: bool) -> int | None:
    with_daemon = daemon()
    found = [task_search.task(with_daemon, ref) for ref in refs]
    active = [task for task in found if task["state"] in ACTIVE]
    if active:
        raise CliError(
            f"{short(active[0]['id'])} has not ended.", "`meantime cancel` stops what runs.", NOT_ALLOWED
        )
    if not yes:
        if not sys.stdin.isatty():
            raise CliError("This deletes for good.", "Say --yes.", USAGE)
        if not confirmed(f"Delete {len(found)} task{'s' if len(found) > 1 else ''}, for good?"):
            return 1
    ids = [task["id"] for task in found]
    _say(with_daemon.post("/v1/purge", {"ids": ids}, patience=PATIENCE), as_json)
    return None


def _say(answer: Wire, as_json: bool) -> None:
    if as_json:
        say_json(answer)
    else:
        echo(f"deleted {answer['purged']} tasks")


def _purged(with_daemon: Daemon, wanted: Sequence[str], before: float) -> int:
    """One by one: the daemon's own words for statuses are coarser than a person's."""
    ids = _old(with_daemon, wanted, before)
    pieces = [ids[at : at + AT_ONCE] for at in range(0, len(ids), AT_ONCE)]
    return sum(with_daemon.post("/v1/purge", {"ids": piece}, patience=PATIENCE)["purged"] for piece in pieces)


def _old(with_daemon: Daemon, wanted: Sequence[str], before: float) -> list[str]:
    found = task_search.tasks(with_daemon, wanted, cleared="true")
    return [task["id"] for task in found if (moment(task.get("completedAt")) or before) <= before]
