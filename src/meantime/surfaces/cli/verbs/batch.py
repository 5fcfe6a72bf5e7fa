"""`meantime batch`: how far a batch is."""

from __future__ import annotations

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.verb import argument, as_json, daemon, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import NOT_FOUND, CliError, DaemonRefused
from meantime.surfaces.terminal.progress_line import bar
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain


@verb("batch")
@argument("id")
@as_json
def command(id: str, as_json: bool) -> None:
    """How far a batch is, and its tasks."""
    with_daemon = daemon()
    unknown = CliError(f"No batch {plain(id)!r}.", "`meantime ps -a` lists tasks.", NOT_FOUND)
    try:
        count = with_daemon.get(f"/v1/batches/{part(id)}")
    except DaemonRefused as refused:
        raise unknown if refused.status == 404 else refused from refused
    if not count["total"]:
        raise unknown
    if as_json:
        say_json(count)
        return
    failed = f"  ✗{count['failed']}" if count["failed"] else ""
    echo(f"{plain(id)}  {bar(count['ended'], count['total'])} {count['ended']}/{count['total']}{failed}")
    for line in task_format.listing(
        list(task_search.searched(with_daemon, "", as_rows=True, batch=id, cleared="true"))
    ):
        echo(line)
