"""`meantime ps`: what runs, and on request what has ended."""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import Whole
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import Wire

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterable

RECENT = 50  # of those that ended last, how many are looked at for "done today"


@verb("ps")
@argument("words", nargs=-1, metavar="[QUERY]…")
@option("-a", "--all", "everything", is_flag=True, help="Show ended tasks, too.")
@option("-n", "--limit", type=Whole(0), default=50, show_default=True, help="Rows; 0 is all.")
@option("--status", metavar="WORDS", help="running, failed, …; several with commas.")
@option("--thread", metavar="ID", help="Only of one conversation.")
@option("-b", "--batch", metavar="ID", help="Only of one batch.")
@option("--search", metavar="TEXT", help="In descriptions.")
@option("-q", "--quiet", is_flag=True, help="Whole ids only, one a line.")
@as_json
def command(
    words: tuple[str, ...], everything: bool, limit: int, quiet: bool, as_json: bool, **given: str | None
) -> None:
    """List tasks: those that are active, or all that fit QUERY.

    QUERY is text, with qualifiers: status:failed agent:review kind:shell thread:main batch:b1 since:7d
    """
    status = given.pop("status", None)
    asked = {name: value for name, value in given.items() if value}
    q = task_search.query([*words, *([f"status:{status}"] if status else [])])
    with_daemon, as_rows = daemon(), not as_json
    running = _active(task_search.searched(with_daemon, f"{q} status:active", as_rows=as_rows, **asked))
    found = list(running)
    most = limit or None
    with_ended = everything or bool(q or asked)
    if with_ended and (most is None or len(found) <= most):
        rest = task_search.searched(with_daemon, f"{q} status:ended", as_rows=as_rows, **asked)
        found += rest if most is None else islice(rest, most + 1 - len(found))
    shown, more = found[:most], most is not None and len(found) > most
    if as_json:
        say_json({"tasks": shown, "more": more})
    elif quiet:
        echo("".join(f"{task['id']}\n" for task in shown), nl=False)
    else:
        # Of what is active all is known; of what has ended only what is shown.
        counts = _counts([*running, *shown[len(running) :]]) + (
            [] if with_ended else [done_today(with_daemon, _midnight())]
        )
        _show(shown, counts, "there are more: -n 0 shows all" if more else "")


def _active(found: Iterable[Wire]) -> list[Wire]:
    return sorted(found, key=lambda task: task["state"] == "queued")


def _show(tasks: list[Wire], counts: list[str], more: str) -> None:
    lines = task_format.listing(tasks)
    foot = " · ".join([*(counts or ["no tasks"]), *([more] if more else [])])
    echo("\n".join([*lines, task_format.coloured(foot, "2")]))


def _counts(tasks: list[Wire]) -> list[str]:
    found = Counter(str(task["state"]) for task in tasks)
    return [f"{found[state]} {state.replace('_', ' ')}" for state in task_format.LOOKS if found[state]]


def done_today(with_daemon: Daemon, midnight: float) -> str:
    """From one small page: a busy day is only `50+`."""
    asked = "completed,error,cancelled"
    page = with_daemon.get("/v1/tasks", status=asked, sort="updated", limit=RECENT)["tasks"]
    count = sum((task_format.moment(task.get("completedAt")) or 0) >= midnight for task in page)
    return f"{count}{'+' if count >= RECENT else ''} done today"


def _midnight() -> float:
    return time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1))
