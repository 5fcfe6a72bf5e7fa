"""`meantime config`: the settings that hold, where each came from, and a file to begin with."""

from __future__ import annotations

import os
from typing import Any, cast

import click

from meantime.app.config_sources import DEFAULT, load
from meantime.app.config_text import beginning, toml
from meantime.daemon.home import Home
from meantime.kernel.errors import InvalidInput
from meantime.surfaces.cli.verb import daemon, say_json
from meantime.surfaces.terminal.errors import FAILED, USAGE, CliError
from meantime.surfaces.terminal.task_format import coloured
from meantime.system.atomic_file import NEW_FILE


@click.group("config", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="JSON: a list of key, value and source.")
@click.option("--changed", is_flag=True, help="Only what is not the default.")
@click.pass_context
def command(context: click.Context, as_json: bool, changed: bool) -> None:
    """The settings that hold, and where each came from: a flag, the environment, the file, or the default.

    A daemon that runs has those that held when it was started.
    """
    if context.invoked_subcommand is not None:
        return
    home = daemon().home
    try:
        rows = [
            (key, discreet(value) if key.name == "mcp.servers" else value, source)
            for key, value, source in load(home).rows()
            if not changed or source != DEFAULT
        ]
    except InvalidInput as problem:
        raise CliError(problem.message, problem.hint, USAGE) from problem
    if as_json:
        say_json([{"key": key.name, "value": value, "source": source} for key, value, source in rows])
        return
    if not rows:
        click.echo("Nothing is changed: every setting is the default.")
    wide = max((len(key.name) for key, *_ in rows), default=0)
    wider = min(max((len(toml(value)) for _, value, _ in rows), default=0), 24)
    for key, value, source in rows:
        line = f"{key.name:{wide}}  {toml(value):{wider}}  {source}"
        click.echo(coloured(line, "2") if source == DEFAULT else line)
    if not home.config.exists():
        click.echo(f"\nThere is no {home.config}. Write one to begin with: meantime config init")


def discreet(servers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Values of variables and headers are secrets, as often as not."""

    def hidden(value: Any) -> Any:
        return dict.fromkeys(cast("dict[str, Any]", value), "…") if isinstance(value, dict) else value

    return {name: {key: hidden(value) for key, value in one.items()} for name, one in servers.items()}


@command.command("path")
def path() -> None:
    """Where the file is looked for."""
    click.echo(daemon().home.config)


@command.command("init")
def init() -> None:
    """Writes a file in which every setting is explained and none is set. Never over another."""
    home = daemon().home
    try:
        _write(home)
    except FileExistsError:
        raise CliError(
            f"{home.config} is there already.", "Edit it, or move it away first.", FAILED
        ) from None
    click.echo(
        f"Wrote {home.config}\n  Take the # from a line to set it; `meantime config` shows what holds."
    )


def _write(home: Home) -> None:
    home.config.parent.mkdir(parents=True, exist_ok=True)
    place = os.open(home.config, NEW_FILE, 0o600)
    with os.fdopen(place, "w", encoding="utf-8") as file:
        file.write(beginning())
