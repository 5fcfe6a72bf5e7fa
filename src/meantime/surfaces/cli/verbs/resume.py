"""`meantime resume`: a follow-up for an agent that has ended."""

from __future__ import annotations

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import DURATION, one_task
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo


@verb("resume")
@one_task
@argument("words", nargs=-1, required=True, metavar="PROMPT…")
@option("-t", "--timeout", type=DURATION, metavar="TIME", help="Stop it after 90, 90s, 5m, 1h30m.")
@as_json
def command(ref: str, words: tuple[str, ...], timeout: float | None, as_json: bool) -> None:
    """Give an ended agent a follow-up: the same task, its next run."""
    with_daemon = daemon()
    id = task_search.task(with_daemon, ref)["id"]
    body = {"prompt": " ".join(words), **({} if timeout is None else {"timeout": timeout})}
    task = with_daemon.post(f"/v1/tasks/{part(id)}/resume", body)
    if as_json:
        say_json(task)
    else:
        echo(f"resumed {task['id']} ({task_format.title(task)}), run {task['resumeCount'] + 1}")
