"""`meantime watch`: looks at something, and tells a conversation what it finds."""

from __future__ import annotations

import os

from meantime.surfaces.caller.caller_thread import own_task, own_thread
from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import DURATION, FilePath, Whole
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import title

from .run import here, new_id, started

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from typing import Any

SOURCES = ("file", "port", "url", "poll", "pid", "task", "of_thread", "of_batch")
EXAMPLE = "For example: meantime watch t_2qx --match 'ERROR|panic', or meantime watch --port 8080 --once"
_NAMES = {"poll": "command", "of_thread": "thread", "of_batch": "batch"}


@verb("watch")
@argument("ref", required=False, metavar="[TASK]")
@option("--file", type=FilePath(), metavar="PATH", help="A file or a folder: it appears, changes, goes.")
@option("--port", metavar="[HOST:]PORT", help="A port that opens.")
@option("--url", metavar="URL", help="An http or https address: its status.")
@option("--value", metavar="PATH", help="With --url: a value of its JSON, such as jobs.0.state.")
@option("--poll", metavar="TEXT", help="A line for /bin/sh, run again and again: exit code and output.")
@option("--pid", type=Whole(1), metavar="PID", help="A process that is not a task.")
@option("--task", metavar="ID", help="The status of a task.")
@option("--of-thread", metavar="ID", help="How many tasks of a conversation are active.")
@option("--of-batch", metavar="ID", help="How many tasks of a batch have ended.")
@option("-m", "--match", metavar="RE2", help="The lines, or the states, that are told.")
@option("-C", "--context", type=Whole(0, 20), metavar="N", help="Lines to tell around a match.")
@option("--new", is_flag=True, help="Only what comes from now on, of output or a file.")
@option("--once", is_flag=True, help="The first match ends the watch.")
@option("--until", metavar="RE2", help="A line or a state that ends the watch.")
@option("--every", type=DURATION, metavar="TIME", help="How often to look, and to tell, at most.")
@option(
    "--deadline", type=DURATION, metavar="TIME", help="When it ends, whatever was found; 0: after one look."
)
@option("-n", "--name", metavar="TEXT", help="Its name.")
@option("--thread", metavar="ID", help="The conversation that is told; by default that of this agent.")
@option("-q", "--quiet", is_flag=True, help="Print the id and nothing else.")
@as_json
def command(ref: str | None, **given: Any) -> int:
    """Tell a conversation each line of TASK's output that --match fits, or what becomes of something else.

    A watch is a task: ps lists it, cancel stops it, and it goes on over a restart of the daemon.
    """
    named = [name for name in SOURCES if given[name] is not None]
    if len(named) + (ref is not None) != 1:
        raise CliError("Name one thing to watch.", EXAMPLE, USAGE)
    if given["file"] == "":
        raise CliError("--file is empty.", "Name a file or a folder: --file PATH.", USAGE)
    if given["poll"] is not None and not given["poll"].strip():
        raise CliError("--poll is empty.", "Give a line for /bin/sh: --poll 'curl -s URL'.", USAGE)
    if ref is not None and not given["match"] and not given["until"]:
        raise CliError("Say which lines are told: --match; or which one ends it: --until.", EXAMPLE, USAGE)
    with_daemon = daemon()
    if ref is not None:
        watch: dict[str, Any] = {"log": task_search.task(with_daemon, ref)["id"]}
    elif given["task"] is not None:
        watch = {"task": task_search.task(with_daemon, given["task"])["id"]}
    else:
        (name,) = named
        watch = {_NAMES.get(name, name): given[name]}
    if "file" in watch:
        watch["file"] = _whole(watch["file"])
    if "command" in watch:
        watch["cwd"] = here("Go elsewhere.")
    more = ("match", "context", "until", "every", "deadline", "value")
    watch |= {name: given[name] for name in more if given[name] is not None}
    watch |= {name: True for name in ("new", "once") if given[name]}
    order = {
        "id": new_id("t_"),
        "thread": own_thread() if given["thread"] is None else given["thread"],
        "parent": own_task(),
        "description": given["name"],
        "watch": watch,
    }
    task = started(with_daemon, {name: value for name, value in order.items() if value is not None})
    if given["as_json"]:
        say_json(task)
    else:
        echo(task["id"] if given["quiet"] else f"watching {task['id']} ({title(task)})")
    return 0


def _whole(path: str) -> str:
    """The slash at its end says that it is, or will be, a folder."""
    whole = os.path.abspath(path)
    return whole + "/" if path.endswith("/") and whole != "/" else whole
