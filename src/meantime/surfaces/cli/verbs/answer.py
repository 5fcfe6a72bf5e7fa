"""`meantime answer`: for a task that waits for input."""

from __future__ import annotations

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import one_task
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo


@verb("answer")
@one_task
@argument("words", nargs=-1, required=True, metavar="TEXT…")
@option("--task", "scope", flag_value="task", help="For all of this task, not only this once.")
@option("--once", "scope", flag_value="once", help="Only this once.")
@as_json
def command(ref: str, words: tuple[str, ...], scope: str | None, as_json: bool) -> None:
    """Answer a task that waits for input: one of the offered answers, or a text.

    `meantime show` says what it asks. A permission takes allow, always (for this task) and reject;
    "reject: why" tells the agent why.
    """
    with_daemon = daemon()
    id = task_search.task(with_daemon, ref)["id"]
    task = with_daemon.post(
        f"/v1/tasks/{part(id)}/answer", {"answer": " ".join(words), **({"scope": scope} if scope else {})}
    )
    if as_json:
        say_json(task)
    else:
        echo(f"answered {task_format.short(id)}")
