"""`meantime down`: ends the daemon. What it had started goes on, unless it is to stop."""

from __future__ import annotations

import signal

import click

from meantime.leader import Owner, ask_to_end, owner
from meantime.surfaces.cli.trouble import FAILED, NOT_ALLOWED, Trouble
from meantime.surfaces.cli.verb import as_json, daemon, say_json

SIGNALS = {"keep": signal.SIGUSR2, "stop": signal.SIGUSR1}
THEN = {
    "keep": "Commands that run go on; `meantime up` takes them up again.",
    "stop": "Its commands were stopped. Queued work stays queued until `meantime up`.",
}


@click.command("down")
@click.option(
    "--keep", "meaning", flag_value="keep", default=True, help="Commands go on: for an upgrade (the default)."
)
@click.option("--stop", "meaning", flag_value="stop", help="Stop the commands that run, first.")
@click.option("--wait", type=click.FloatRange(0.1, 3600), default=60.0, show_default=True, metavar="SECONDS")
@as_json
def command(meaning: str, wait: float, as_json: bool) -> None:
    """Stop the daemon, and wait until it is gone. Functions end with it, queued work stays queued."""
    home = daemon().home
    leader = owner(home)
    if leader is not None:
        _end(leader, meaning, wait)
    if as_json:
        say_json({"running": False, "ended": leader.pid if leader else None})
    elif leader is None:
        click.echo("The daemon was not running.")
    else:
        click.echo(f"The daemon is down (pid {leader.pid}).\n  {THEN[meaning]}")


def _end(leader: Owner, meaning: str, wait: float) -> None:
    home = daemon().home
    if leader.command and not leader.is_daemon:
        raise Trouble(
            f"{home.ledger} is owned by {leader}, which is not a daemon.",
            "Only its own program can close it.",
            NOT_ALLOWED,
        )
    if not ask_to_end(home, leader.pid, SIGNALS[meaning], wait):
        raise Trouble(
            f"The daemon (pid {leader.pid}) has not ended within {wait:g} seconds.",
            f"See {home.log}. If it hangs: kill -9 {leader.pid}; nothing that was accepted is lost.",
            FAILED,
        )
