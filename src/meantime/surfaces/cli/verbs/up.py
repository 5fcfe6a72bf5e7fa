"""`meantime up`: the daemon, if it is not there already."""

from __future__ import annotations

import os
import sys

import click

from meantime.leader import owner
from meantime.ondemand import NoDaemon, answers, ensure
from meantime.surfaces.cli.trouble import NO_DAEMON, Trouble
from meantime.surfaces.cli.verb import as_json, daemon, say_json


@click.command("up")
@click.option("--foreground", is_flag=True, help="Stay here and log to stderr, for a service manager.")
@click.option("--wait", type=click.FloatRange(0.1, 3600), default=30.0, show_default=True, metavar="SECONDS")
@as_json
def command(foreground: bool, wait: float, as_json: bool) -> None:
    """Start the daemon. Every other verb does this when it needs to."""
    with_daemon = daemon()
    home = with_daemon.home
    if foreground:
        program = [sys.executable, "-P", "-m", "meantime.app.daemon", "--foreground"]
        os.execv(sys.executable, program)
    was_up = answers(home)
    try:
        ensure(home, wait=wait)
    except NoDaemon as problem:
        raise Trouble(problem.message, problem.hint, NO_DAEMON) from problem
    leader = owner(home)
    pid = leader.pid if leader else 0
    if as_json:
        say_json({"running": True, "started": not was_up, "pid": pid, "home": str(home.folder)})
        return
    click.echo(f"The daemon is up{' already' if was_up else ''} (pid {pid}).\n  meantime status    how it is")
