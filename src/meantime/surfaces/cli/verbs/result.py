"""`meantime result`: what a completed task gave, whole."""

from __future__ import annotations

import json
import sys

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.output_sinks import sink
from meantime.surfaces.cli.parameter_types import one_task
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal.errors import STILL_RUNNING, DaemonRefused
from meantime.surfaces.terminal.task_format import short


@verb("result")
@one_task
@as_json
def command(ref: str, as_json: bool) -> None:
    """The result of a completed task. Text is printed as it is, all else as JSON.

    Exit 8: it still runs. 6: it failed. 7: it was cancelled.
    """
    with_daemon = daemon()
    id = task_search.task(with_daemon, ref)["id"]
    try:
        answer = with_daemon.get(f"/v1/tasks/{part(id)}/result")
    except DaemonRefused as refused:
        refused.hint = _next_step(refused, short(id))
        raise
    if as_json:
        say_json(answer)
        return
    result = answer["result"]
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2)
    to = sink(sys.stdout, raw=False)
    to.write((text if text.endswith("\n") or not text else text + "\n").encode(errors="replace"))
    to.end()


def _next_step(refused: DaemonRefused, id: str) -> str:
    if refused.exit_code == STILL_RUNNING:
        return f"`meantime wait {id}` blocks until it has ended."
    return f"`meantime logs {id}` shows what it said." if refused.status == 409 else refused.hint
