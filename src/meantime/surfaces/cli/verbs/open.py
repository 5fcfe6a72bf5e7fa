"""`meantime open`: the page for browsers, by a link that works once."""

from __future__ import annotations

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import TASK, Whole
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.terminal.errors import NOT_FOUND, USAGE, CliError, DaemonRefused
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain
from meantime.system import platform

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from typing import Any


@verb("open")
@argument("ref", type=TASK, required=False, metavar="[TASK|THREAD]")
@option("--read-only", is_flag=True, help="The page can look, and change nothing.")
@option("--thread", metavar="ID", help="The page sees this conversation only.")
@option("--question", is_flag=True, help="The page can read TASK and answer its question, nothing else.")
@option("--print", "only_print", is_flag=True, help="Print the link, open nothing.")
@option(
    "--minutes", type=Whole(1, 1_440), default=2, show_default=True, help="How long the link can be used."
)
@option("--base", is_flag=True, help="Print the address of the HTTP API, without a code.")
@as_json
def command(
    ref: str | None,
    read_only: bool,
    thread: str | None,
    question: bool,
    only_print: bool,
    minutes: int,
    base: bool,
    as_json: bool,
) -> None:
    """Open the page with all tasks in the browser, or at one TASK or THREAD.

    The link works once. `--print` prints it, for a browser elsewhere or for somebody else. A system that
    does not say which user is behind a connection, such as macOS, always prints it.
    """
    with_daemon = daemon()
    address = with_daemon.get("/v1/info").get("url")
    if not address:
        hint = "Set http.enabled to true, then restart the daemon; `meantime config` shows the file."
        raise CliError("The daemon has no address for browsers.", hint)
    if base:
        echo(address)
        return
    place, task = _place(with_daemon, ref)
    if ref is None and thread is not None:
        place = f"/threads/{part(thread)}"
    if question and task is None:
        raise CliError(
            "--question needs a task.", "Name the task that asks: meantime open TASK --question", USAGE
        )
    scope = {"thread": thread, "question": task if question else None}
    if not platform.KNOWS_TCP_PEERS:  # a browser would show the link to other users, in its arguments
        only_print = True
    shared = only_print or as_json
    wish = {"access": "read" if read_only else "write", "minutes": minutes, "sameUser": not shared, **scope}
    made = _code(with_daemon, wish)
    url = made["url"] + (f"&go={place}" if place else "")
    if as_json:
        say_json({"url": url, "base": address, "expiresAt": made["expiresAt"]})
    elif only_print:
        echo(url)
    else:
        _show(url, address)


def _place(with_daemon: Daemon, ref: str | None) -> tuple[str, str | None]:
    """Where the page begins, and the task that it is about."""
    if ref is None:
        return "", None
    try:
        task = task_search.task(with_daemon, ref)["id"]
    except CliError as no:
        if no.exit_code != NOT_FOUND:
            raise
        if not with_daemon.get("/v1/tasks", thread=ref, cleared="true", limit=1)["total"]:
            hint = "`meantime ps -a` lists tasks, `meantime threads` conversations."
            raise CliError(f"No task or thread {plain(ref)!r}.", hint, NOT_FOUND) from no
        return f"/threads/{part(ref)}", None
    return f"/tasks/{part(task)}", task


def _code(with_daemon: Daemon, wish: dict[str, Any]) -> dict[str, str]:
    try:
        return with_daemon.post("/v1/codes", wish)
    except DaemonRefused as refused:
        if refused.status == 404 and not wish["question"]:
            text = "The daemon is of an older version, which has no page."
            raise CliError(text, "Restart it: `meantime down`, then `meantime up`.") from refused
        raise


def _show(url: str, address: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        echo(url)
        raise CliError("No browser could be started.", "Open the link above yourself; it works once.")
    echo(f"opened {address}")
