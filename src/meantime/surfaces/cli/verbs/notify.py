"""`meantime notify`: from inside a command or an agent, a word to its conversation before it ends."""

from __future__ import annotations

import os

from meantime.surfaces.caller.caller_thread import TASK
from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.verb import argument, daemon, option, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo

SAID = {
    "sent": "sent: the conversation is told with its next turn",
    "waiting": "waiting: it is told together with the next ones",
}


@verb("notify")
@argument("words", nargs=-1, required=True, metavar="TEXT…")
@option("--task", "ref", metavar="ID", help="The task it is about; by default the one that this runs in.")
def command(words: tuple[str, ...], ref: str | None) -> None:
    """Tell the conversation of a running task TEXT, once, in the order of all that it is told.

    A command or an agent that is a task uses it without --task.
    """
    ref = ref or os.environ.get(TASK)
    if not ref:
        raise CliError(
            "No task is named, and this is not inside one.", "Name it: meantime notify --task ID TEXT", USAGE
        )
    with_daemon = daemon()
    id = task_search.task(with_daemon, ref)["id"]
    text = " ".join(words).encode(errors="surrogateescape").decode(errors="replace")
    answer = with_daemon.post(f"/v1/tasks/{part(id)}/notify", {"text": text})
    echo(SAID[answer["notified"]])
