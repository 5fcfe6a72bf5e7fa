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
from meantime.surfaces.install.server_lists import server_list, wrapped_change
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
@click.option("--wrap", is_flag=True, help="Send the agent's MCP servers, or those named, through the wrap.")
@click.option("--uninstall", is_flag=True, help="Take it out again.")
@click.option("--print", "only_print", is_flag=True, help="Show the change; write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("names", metavar="[NAME…]", nargs=-1)
def command(
    agent: str, scope: str, wrap: bool, uninstall: bool, only_print: bool, yes: bool, names: tuple[str, ...]
) -> int:
    """Add Meantime to AGENT: its MCP server, and hooks that tell the agent what has ended.

    AGENT is claude-code, codex, opencode, gemini, goose or cursor.

    The change is shown first. Entries of others, comments and the form of the files are kept. A copy of
    each changed file stays beside it until --uninstall takes the change back.

    With --wrap, the MCP servers that AGENT has are started through `meantime mcp --wrap`, which makes their
    slow calls background tasks; --wrap --uninstall takes that back.
    """
    if names and not wrap:
        raise CliError("Names of servers are for --wrap.", f"meantime install {agent} --wrap NAME", USAGE)
    if not (uninstall or only_print) and importlib.util.find_spec("mcp") is None:
        what = "The agent would start `meantime mcp`, which needs mcp, and that is not installed."
        raise CliError(what, "pip install 'meantime[server,mcp]' first; nothing was changed.", FAILED)
    host = AGENTS[agent]
    # A project's files are for others, too: they have it elsewhere. For oneself, an agent may be started
    # with another PATH.
    words = ["meantime"] if scope == "project" else executable.path()
    place = Place(Path.cwd() if scope == "project" else None, Path(os.path.expanduser("~")), os.environ)
    if wrap:
        return _wrap(agent, place, names, words, uninstall, write=not only_print, ask=not yes)
    found = host.changes(place, words, not uninstall)
    ask = not (only_print or yes)
    if uninstall:
        return _taken_out(host, found, write=not only_print, ask=ask)
    return _put_in(host, found, write=not only_print, ask=ask)


def _wrap(
    agent: str,
    place: Place,
    names: Sequence[str],
    words: Sequence[str],
    uninstall: bool,
    *,
    write: bool,
    ask: bool,
) -> int:
    change, made = wrapped_change(server_list(agent, place, Path.cwd()), names, words, wanted=not uninstall)
    for name, why in made.skipped.items():
        click.echo(f"{name} is left as it is: {why}.", err=True)
    if not change.is_one:
        is_empty = not (made.skipped or uninstall)
        click.echo(f"{change.path}: {'there are no MCP servers in it' if is_empty else 'nothing to change'}.")
        return 1 if names else 0
    host, copies = AGENTS[agent], Copies(home(os.environ))
    installed = {one.path for one in host.changes(place, words, False) if one.is_one}
    # The copy may be the one of an installation, or of another wrap, which are still there.
    stays = bool(names) or change.path in installed
    of_ours = copies.needless(change) if stays else copies.ours([change])[0]
    removed = of_ours if uninstall else []
    if not _agreed(_shown([change], removed), ask=ask and write):
        return 1
    if write:
        change.write(copy=not uninstall)
        if not uninstall:
            copies.wrote(change)
        for path in removed:
            copies.remove(path)
        click.echo(f"wrote {change.path}: {', '.join(made.done)}")
        click.echo(host.note)
    if write and not (installed or uninstall):
        click.echo(f"{host.title} is told of an ending by a later tool call. To tell it at once, run:")
        click.echo(f"  meantime install {agent}")
    return 0


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
    elif not _agreed(_shown(changes, removed), ask=ask):
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


def _shown(changes: Sequence[FileChange], removed: Sequence[Path] = ()) -> str:
    copies = "".join(f"- the copy {path}\n" for path in removed)
    return plain_lines("".join(change.shown() for change in changes)) + copies


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
