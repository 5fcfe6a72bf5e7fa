"""`meantime up`: the daemon, if it is not there already."""

from __future__ import annotations

import os
import sys

from meantime.daemon.daemon_autostart import NoDaemon, answers, ensure
from meantime.daemon.owner_process import owner
from meantime.surfaces.cli.parameter_types import Number
from meantime.surfaces.cli.verb import as_json, daemon, option, say_json, verb
from meantime.surfaces.terminal.errors import FAILED, NO_DAEMON, USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.system.process_marks import unmarked


@verb("up", starts=False)
@option("--foreground", is_flag=True, help="Stay here and log to stderr, for a service manager.")
@option("--log-file", is_flag=True, help="With --foreground: log to daemon.log in the home instead.")
@option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="For this daemon: http.port=6000.")
@option("--carrier", metavar="URL", help="Have workers: nats://…, tls://…, postgres://… or local.")
@option("--listen", metavar="ADDR[:PORT]", help="With --carrier local: serve workers of other machines.")
@option("--wait", type=Number(0.1, 3600), default=30.0, show_default=True, metavar="SECONDS")
@as_json
def command(
    foreground: bool,
    log_file: bool,
    settings: tuple[str, ...],
    carrier: str | None,
    listen: str | None,
    wait: float,
    as_json: bool,
) -> None:
    """Start the daemon. Every other verb does this when it needs to.

    With --listen it prints a join line, for `meantime worker --join -` on another machine.
    """
    with_daemon = daemon()
    home = with_daemon.home
    if carrier is not None:
        settings = (*settings, f"engine.carrier={carrier}")
    if listen is not None:
        settings = (*settings, *(() if carrier else ("engine.carrier=local",)), f"engine.listen={listen}")
    variables = dict(map(_variable, settings))
    was_up = answers(home)
    if settings and was_up:
        raise CliError("The daemon is up already, with other settings.", "First: meantime down", FAILED)
    os.environ.update(variables)
    if foreground:
        program = [sys.executable, "-P", "-m", "meantime.app.daemon", "--foreground"]
        program += ["--log-file"] if log_file else []
        os.execve(sys.executable, program, unmarked(os.environ))
    try:
        ensure(home, wait=wait)
    except NoDaemon as problem:
        raise CliError(problem.message, problem.hint, NO_DAEMON) from problem
    leader = owner(home)
    pid = leader.pid if leader else 0
    line = None
    if listen is not None:
        from .worker_list import first_line

        line = first_line(home, listen)
    if as_json:
        said = {"running": True, "started": not was_up, "pid": pid, "home": str(home.folder)}
        say_json(said if line is None else {**said, "joinLine": line.text()})
        return
    echo(f"The daemon is up{' already' if was_up else ''} (pid {pid}).\n  meantime status    how it is")
    if line is not None:
        from .worker_list import say_line

        say_line(line)
    elif listen is not None:
        echo("  meantime workers join-line --address HOST    a line for a worker on another machine")


def _variable(said: str) -> tuple[str, str]:
    """The daemon is given it through its environment, and checks the value there."""
    from meantime.app.config_keys import known

    key, equals, value = said.partition("=")
    if not equals:
        raise CliError(f"--set {said} is not KEY=VALUE.", "`meantime config` lists the keys.", USAGE)
    if key not in known():
        raise CliError(f"--set {said}: there is no key {key!r}.", "`meantime config` lists the keys.", USAGE)
    return known()[key].variable, value
