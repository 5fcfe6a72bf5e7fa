"""`meantime notify`: from inside a command or an agent, a word to its conversation before it ends."""

from __future__ import annotations

import os
import time
from pathlib import Path

from meantime.surfaces.caller.caller_thread import TASK
from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.verb import argument, daemon, option, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.system import event_spool

PATIENCE, LOOK_AGAIN = 10.0, 0.05  # seconds that a worker's answer is waited for, and between two looks
SAID = {
    "sent": "sent: the conversation is told with its next turn",
    "waiting": "waiting: it is told together with the next ones",
}


@verb("notify")
@argument("words", nargs=-1, required=True, metavar="TEXT…")
@option("--task", "ref", metavar="ID", help="The task it is about; by default the one that this runs in.")
@option("-q", "--quiet", is_flag=True, help="Print nothing, as it does about its own task.")
def command(words: tuple[str, ...], ref: str | None, quiet: bool) -> None:
    """Tell the conversation of a running task TEXT, once, in the order of all that it is told.

    A command or an agent that is a task uses it without --task; nothing is printed there, because a model
    reads that output.
    """
    own = os.environ.get(TASK)
    ref = ref or own
    if not ref:
        raise CliError(
            "No task is named, and this is not inside one.", "Name it: meantime notify --task ID TEXT", USAGE
        )
    text = " ".join(words).encode(errors="surrogateescape").decode(errors="replace")
    folder = os.environ.get(event_spool.VARIABLE)
    if folder and ref == own:
        _hand_to_worker(Path(folder), text)
        return
    with_daemon = daemon()
    id = task_search.task(with_daemon, ref)["id"]
    answer = with_daemon.post(f"/v1/tasks/{part(id)}/notify", {"text": text})
    if not quiet and id != own:
        echo(SAID[answer["notified"]])


def _hand_to_worker(folder: Path, text: str) -> None:
    """Through the worker that runs this command: the daemon is on another machine."""
    try:
        name = event_spool.leave(folder, text)
    except BlockingIOError:
        raise CliError(
            f"{event_spool.MOST_WAITING} events of this command wait for its worker.",
            "Tell less, or wait: they are told when the worker reaches its owner.",
        ) from None
    except OSError as problem:
        raise CliError(f"The worker of this command takes no event: {problem}.") from None
    over = time.monotonic() + PATIENCE
    while (answer := event_spool.answer_to(folder, name)) is None:
        if time.monotonic() > over:
            return  # it is told when the worker reaches its owner
        time.sleep(LOOK_AGAIN)
    if "error" in answer:
        raise CliError(answer["error"], answer["hint"])
