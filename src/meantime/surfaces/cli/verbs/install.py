"""`meantime install`: adds Meantime to a coding agent's configuration, and takes it out again."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import click

from meantime.surfaces.cli.safe import plain_lines
from meantime.surfaces.cli.trouble import FAILED, USAGE, Trouble
from meantime.surfaces.install.hosts import HOSTS, Place


@click.command("install")
@click.argument("agent", metavar="AGENT", type=click.Choice(list(HOSTS)))
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="For you in every project, or for everybody in this one.",
)
@click.option("--uninstall", is_flag=True, help="Take it out again.")
@click.option("--print", "only_print", is_flag=True, help="Show the change; write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(agent: str, scope: str, uninstall: bool, only_print: bool, yes: bool) -> int:
    """Add Meantime to AGENT: its MCP server, and hooks that tell the agent what has ended.

    AGENT is claude-code, codex, opencode or gemini.

    The change is shown first. Entries of others, comments and the form of the files are kept; a copy of
    each changed file stays beside it, and --uninstall takes the change back.
    """
    if not (uninstall or only_print) and importlib.util.find_spec("mcp") is None:
        what = "The agent would start `meantime mcp`, which needs mcp, and that is not installed."
        raise Trouble(what, "pip install 'meantime[server,mcp]' first; nothing was changed.", FAILED)
    host = HOSTS[agent]
    project = Path.cwd() if scope == "project" else None
    place = Place(project, Path(os.path.expanduser("~")), os.environ)
    changes = host.changes(place, _command(scope), not uninstall)
    changes = [change for change in changes if change.is_one]
    if not changes:
        click.echo(f"{host.title} {'does not have' if uninstall else 'has'} it already; nothing to change.")
        return 0
    click.echo(plain_lines("".join(change.shown() for change in changes)), nl=False)
    if only_print:
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise Trouble("Nothing was changed.", "Say --yes to make this change.", USAGE)
        if not click.confirm("Make this change?", err=True):
            return 1
    for change in changes:
        change.write()
        click.echo(f"{'removed' if change.after is None else 'wrote'} {change.path}")
    if not uninstall:
        click.echo(host.note)
    return 0


def _command(scope: str) -> list[str]:
    """A project's files are for others, too: they have it elsewhere. For oneself, an agent may be started
    with another PATH."""
    if scope == "project":
        return ["meantime"]
    started = Path(sys.argv[0]).absolute()
    if started.name == "meantime" and os.access(started, os.X_OK):
        return [str(started)]
    return [sys.executable, "-m", "meantime.app.main"]
