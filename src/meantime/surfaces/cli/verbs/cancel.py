"""`meantime cancel`: stops tasks, and everything that they started."""

from __future__ import annotations

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import TASK
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import Wire

STOPPING = 90.0  # seconds for an answer that waits until everything is gone


@verb("cancel")
@argument("refs", nargs=-1, type=TASK, metavar="[ID]…")
@option("-b", "--batch", metavar="ID", help="All of a batch.")
@option("--thread", metavar="ID", help="All of a conversation; with -b, only that batch's.")
@option("--reason", default="", metavar="TEXT", help="Is kept with the task.")
@option("-w", "--wait", is_flag=True, help="Return when they are gone.")
@as_json
def command(
    refs: tuple[str, ...], batch: str | None, thread: str | None, reason: str, wait: bool, as_json: bool
) -> None:
    """Stop tasks: TERM, five seconds, KILL, for everything that they started."""
    if not (refs or batch or thread):
        raise CliError("Nothing to cancel.", "Name tasks, or use -b or --thread.", USAGE)
    with_daemon = daemon()
    ids = [task_search.task(with_daemon, ref)["id"] for ref in refs]  # all are known before one is stopped
    if batch or thread:
        ids += _members(with_daemon, batch, thread)
    answers = [
        with_daemon.post(f"/v1/tasks/{part(id)}/cancel", {"reason": reason, "wait": wait}, patience=STOPPING)
        for id in dict.fromkeys(ids)
    ]
    if as_json:
        say_json({"answers": answers})
        return
    for answer in answers:
        echo(_said(answer))
    if not answers:
        echo("Nothing of it is active.")


def _members(with_daemon: Daemon, batch: str | None, thread: str | None) -> list[str]:
    found = task_search.tasks(with_daemon, task_format.ACTIVE, batch=batch, thread=thread)
    return [task["id"] for task in found]


def _said(answer: Wire) -> str:
    task = answer["task"]
    name = f"{task_format.short(task['id'])} ({task_format.title(task)})"
    killed = answer.get("killed") or 0
    left = f"; ended {killed} processes that it had left running" if killed else ""
    if answer["disposition"] == "already_ended":
        return f"{name} had ended already: {task_format.status(task)}{left}"
    return f"{name} {task_format.paint(task_format.status(task), task)}{left}"
