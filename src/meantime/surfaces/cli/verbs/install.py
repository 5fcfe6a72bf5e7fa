"""`meantime install`: adds Meantime to a coding agent's configuration, and takes it out again."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from meantime.daemon.home import home
from meantime.surfaces.caller import executable
from meantime.surfaces.cli.confirmation import confirmed
from meantime.surfaces.install.agent_configs import AGENTS, AgentConfig, Place
from meantime.surfaces.install.config_copies import Copies
from meantime.surfaces.install.file_change import FileChange
from meantime.surfaces.terminal.errors import FAILED, USAGE, CliError
from meantime.surfaces.terminal.terminal_text import plain_lines


@click.command("install")
@click.argument("agent", metavar="AGENT", type=click.Choice(list(AGENTS)))
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

    AGENT is claude-code, codex, opencode, gemini, goose or cursor.

    The change is shown first. Entries of others, comments and the form of the files are kept. A copy of
    each changed file stays beside it until --uninstall takes the change back.
    """
    if not (uninstall or only_print) and importlib.util.find_spec("mcp") is None:
        what = "The agent would start `meantime mcp`, which needs mcp, and that is not installed."
        raise CliError(what, "pip install 'meantime[server,mcp]' first; nothing was changed.", FAILED)
    host = AGENTS[agent]
    # A project's files are for others, too: they have it elsewhere. For oneself, an agent may be started
    # with another PATH.
    words = ["meantime"] if scope == "project" else executable.path()
    place = Place(Path.cwd() if scope == "project" else None, Path(os.path.expanduser("~")), os.environ)
    found = host.changes(place, words, not uninstall)
    ask = not (only_print or yes)
    if uninstall:
        return _taken_out(host, found, write=not only_print, ask=ask)
    return _put_in(host, found, write=not only_print, ask=ask)


def _put_in(host: AgentConfig, found: Sequence[FileChange], *, write: bool, ask: bool) -> int:
    changes = [change for change in found if change.is_one]
    if not changes:
        click.echo(f"{host.title} has it already; nothing to change.")
    elif _agreed(_shown(changes), ask=ask):
        copies = Copies(home(os.environ))
        for change in changes if write else ():
            change.write()
            copies.wrote(change)
            click.echo(f"wrote {change.path}")
        if write:
            click.echo(host.note)
    else:
        return 1
    _warn_of_shells()
    return 0


def _taken_out(host: AgentConfig, found: Sequence[FileChange], *, write: bool, ask: bool) -> int:
    changes = [change for change in found if change.is_one]
    copies = Copies(home(os.environ))
    removed, kept = copies.ours(found)
    if not changes and not removed:
        click.echo(f"{host.title} does not have it; nothing to change.")
    elif not _agreed(_shown(changes) + "".join(f"- the copy {path}\n" for path in removed), ask=ask):
        return 1
    elif write:
        for change in changes:
            change.write(copy=False)
            click.echo(f"{'removed' if change.after is None else 'wrote'} {change.path}")
        for path in removed:
            copies.remove(path)
            click.echo(f"removed {path}")
    for path in kept:
        click.echo(f"kept {path}: it is not as `meantime install` wrote it. Remove it if you do not need it.")
    return 0


def _shown(changes: Sequence[FileChange]) -> str:
    return plain_lines("".join(change.shown() for change in changes))


def _agreed(text: str, *, ask: bool) -> bool:
    click.echo(text, nl=False)
    if not ask:
        return True
    if not sys.stdin.isatty():
        raise CliError("Nothing was changed.", "Say --yes to make this change.", USAGE)
    return confirmed("Make this change?")


def _warn_of_shells() -> None:
    """The agent itself has our path. Its model, which may run us in a shell, has only the name."""
    path, *module = executable.path()
    if not module and not executable.login_shell_finds(path, os.environ):
        click.echo(
            "Your login shell does not find this `meantime`, and agents run commands in such a shell.\n"
            f"  Let your profile put its folder on the PATH, or let the agent call {shlex.quote(path)}.",
            err=True,
        )
