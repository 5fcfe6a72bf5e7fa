"""`meantime threads`: the conversations."""

from __future__ import annotations

import time

from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain


@verb("threads")
@as_json
def command(as_json: bool) -> None:
    """The conversations that have tasks or notices."""
    answer = daemon().get("/v1/threads")
    if as_json:
        say_json(answer)
        return
    rows = [
        (
            plain(thread["id"]), str(thread["active"]), str(thread["unread"]), str(thread["parked"]),
            _ago(thread.get("lastEventAt")),
        )
        for thread in answer["threads"]
    ]  # fmt: skip
    if not rows:
        echo("no threads")
        return
    echo("\n".join(task_format.table(("THREAD", "ACTIVE", "UNREAD", "PARKED", "LAST"), rows, shrink=0)))


def _ago(iso: object) -> str:
    moment = task_format.moment(iso)
    return "" if moment is None else f"{task_format.span(max(0.0, time.time() - moment))} ago"
