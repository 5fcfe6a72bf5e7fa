"""`meantime fork`: another agent that goes on from what one knows."""

from __future__ import annotations

from meantime.surfaces.caller.caller_thread import own_task
from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import DURATION, one_task
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo


@verb("fork")
@one_task
@argument("words", nargs=-1, required=True, metavar="PROMPT…")
@option("-n", "--name", metavar="TEXT", help="Its name.")
@option("-t", "--timeout", type=DURATION, metavar="TIME", help="Stop it after 90, 90s, 5m, 1h30m.")
@as_json
def command(ref: str, words: tuple[str, ...], name: str | None, timeout: float | None, as_json: bool) -> None:
    """Start a new task with all that an agent knows: it has its own conversation from here on."""
    with_daemon = daemon()
    id = task_search.task(with_daemon, ref)["id"]
    given = {"prompt": " ".join(words), "description": name, "timeout": timeout, "parent": own_task()}
    body = {key: value for key, value in given.items() if value is not None}
    task = with_daemon.post(f"/v1/tasks/{part(id)}/fork", body)
    if as_json:
        say_json(task)
    else:
        echo(f"forked {task_format.short(id)}: started {task['id']} ({task_format.title(task)})")
