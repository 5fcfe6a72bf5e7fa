"""`meantime clear`, `promote` and `unpark`: small actions on tasks and notices."""

from __future__ import annotations

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import TASK
from meantime.surfaces.cli.verb import argument, as_json, daemon, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo


@verb("clear")
@argument("refs", nargs=-1, required=True, type=TASK, metavar="ID…")
@as_json
def clear(refs: tuple[str, ...], as_json: bool) -> None:
    """Hide ended tasks from lists. They are kept, and an untold ending is still told."""
    with_daemon = daemon()
    found = [task_search.task(with_daemon, ref) for ref in refs]
    cleared = 0
    for task in found:
        body = {"thread": task["parentSessionID"], "ids": [task["id"]]}
        cleared += with_daemon.post("/v1/clear", body)["cleared"]
    if as_json:
        say_json({"cleared": cleared})
    else:
        echo(f"cleared {cleared} of {len(found)} tasks")


@verb("promote")
@argument("ref", metavar="CALL")
@as_json
def promote(ref: str, as_json: bool) -> None:
    """Send a call that a conversation waits for to the background."""
    task = daemon().post(f"/v1/tasks/{part(ref)}/promote", {})
    if as_json:
        say_json(task)
    else:
        echo(f"promoted {task['id']} ({task_format.title(task)})")


@verb("unpark")
@argument("thread", metavar="THREAD")
@argument("notices", nargs=-1, metavar="[NOTICE]…")
@as_json
def unpark(thread: str, notices: tuple[str, ...], as_json: bool) -> None:
    """Put parked notices of THREAD back into its inbox: all, or these."""
    body = {"notices": list(notices)} if notices else {}
    answer = daemon().post(f"/v1/threads/{part(thread)}/unpark", body)
    if as_json:
        say_json(answer)
    else:
        echo(f"put back {answer['unparked']} notices")
