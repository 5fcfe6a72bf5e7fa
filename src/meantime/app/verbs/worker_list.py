"""`meantime workers`: the workers on other machines, by their last message; join lines and logins."""

from __future__ import annotations

import time

from meantime.surfaces.cli.parameter_types import ChoiceType, Duration
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from meantime.carriers.nats.join_line import JoinLine
    from meantime.daemon.home import Home

COLUMNS = ("WORKER", "HOST", "POOL", "SLOTS", "RUNNING", "VERSION", "HEARD")


@verb("workers")
@argument("action", type=ChoiceType("list", "join-line", "add", "logins", "revoke"), required=False)
@argument("names", nargs=-1, metavar="[NAME]…")
@option("--pool", "pools", multiple=True, metavar="NAME", help="join-line, add: a pool that it may work for.")
@option("--address", default="", metavar="HOST[:PORT]", help="join-line: where workers reach this machine.")
@option("--expires", type=Duration(), metavar="TIME", help="join-line: how long it is good; default: 15m.")
@as_json
def command(
    action: str | None,
    names: tuple[str, ...],
    pools: tuple[str, ...],
    address: str,
    expires: float | None,
    as_json: bool,
) -> None:
    """The workers on other machines, and the key that they pin.

    `workers join-line` prints a line that lets one worker join the server of `--carrier local`. `workers
    logins` lists those that joined, `workers revoke NAME…` disconnects them for good. `workers add NAME`
    makes a login at a server of your own: a role in PostgreSQL, or the lines for the configuration of NATS.
    """
    if action in ("add", "revoke") and not names:
        raise CliError("Which worker?", f"meantime workers {action} NAME", USAGE)
    if action in (None, "list", "join-line", "logins") and names:
        raise CliError(f"{plain(names[0])}: no name is expected here.", "meantime workers --help", USAGE)
    match action:
        case "join-line":
            line = new_line(daemon().home, pools, address, expires)
            if as_json:
                say_json({"joinLine": line.text(), "server": line.server, "expires": line.expires})
            else:
                say_line(line)
        case "add" | "logins" | "revoke":
            from meantime.app.worker_accounts import add_login, list_logins, revoke_login

            home = daemon().home
            if action == "logins":
                _show_logins(list_logins(home), as_json=as_json)
            for name in names:
                done = add_login(home, name, pools) if action == "add" else revoke_login(home, name)
                say_json({"name": name, "text": done}) if as_json else echo(done)
        case _:
            _list(as_json=as_json)


def new_line(home: Home, pools: tuple[str, ...], address: str, expires: float | None) -> JoinLine:
    from meantime.app.worker_accounts import make_join_line

    return make_join_line(home, pools, address, expires)


def first_line(home: Home, listen: str) -> JoinLine | None:
    """For a daemon that has begun to listen; None: it listens on every address, and a line names one."""
    from meantime.app.local_owner import read_listen
    from meantime.carriers.nats.server_accounts import WILDCARDS

    return None if read_listen(listen).host in WILDCARDS else new_line(home, (), "", None)


def say_line(line: JoinLine) -> None:
    """The line alone is on stdout: it can be piped."""
    echo(line.text())
    minutes = (line.expires - time.time()) / 60
    echo(
        f"One worker can join {line.server} with this line, within {minutes:.0f} min:\n"
        "  meantime worker --join -        and paste it, on the other machine\n"
        "  meantime workers join-line      prints another one",
        err=True,
    )


def _list(*, as_json: bool) -> None:
    info = daemon().get("/v1/info")
    workers, key = info.get("workers", []), info.get("ownerKey", "")
    if as_json:
        say_json({"workers": workers, "ownerKey": key})
        return
    if not key:
        echo('no carrier\n  [engine] carrier = "local" in the configuration   start with one')
        return
    rows = [
        (
            plain(one["name"]), plain(one["host"]), plain(one["pool"]), str(one["slots"]),
            str(one["running"]), plain(one["version"]), _heard(one),
        )
        for one in workers
    ]  # fmt: skip
    echo("\n".join(task_format.table(COLUMNS, rows, shrink=1)) if rows else "no workers")
    echo(f'owner_key = "{key}"')


def _heard(one: task_format.Wire) -> str:
    heard = f"{task_format.span(one['silent'])} ago"
    return f"{heard}, draining" if one["draining"] else heard


def _show_logins(found: list[task_format.Wire], *, as_json: bool) -> None:
    if as_json:
        say_json({"logins": found})
        return
    rows = [(one["name"], ", ".join(one["pools"]), one["kind"]) for one in found]
    echo("\n".join(task_format.table(("NAME", "POOLS", "LOGIN"), rows, shrink=1)) if rows else "no logins")
