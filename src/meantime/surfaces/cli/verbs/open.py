"""`meantime open`: what the HTTP API says of a task, in the browser."""

from __future__ import annotations

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import TASK
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal.errors import CliError
from meantime.surfaces.terminal.std_streams import echo


@verb("open")
@argument("ref", type=TASK, required=False, metavar="[ID]")
@option("--print", "only_print", is_flag=True, help="Print the address, open nothing.")
@as_json
def command(ref: str | None, only_print: bool, as_json: bool) -> None:
    """Open a task in the browser: the JSON of the HTTP API. Without ID, the address of the API."""
    with_daemon = daemon()
    url = with_daemon.get("/v1/info").get("url")
    if not url:
        raise CliError("The daemon has no address for browsers.", "See `meantime config`, http.enabled.")
    where = url if ref is None else f"{url}/v1/tasks/{part(task_search.task(with_daemon, ref)['id'])}"
    if as_json:
        say_json({"url": where})
        return
    echo(where)
    if not only_print:
        import webbrowser

        if not webbrowser.open(where):
            raise CliError("No browser could be started.", "Open the address above yourself.")
