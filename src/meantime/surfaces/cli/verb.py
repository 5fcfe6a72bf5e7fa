"""What every verb has: a click command, the daemon it speaks to, and JSON on request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from .speaking import Daemon

_NO_START = "meantime.no_start"
Function = Callable[..., Any]


def verb(name: str, **settings: Any) -> Callable[[Function], click.Command]:
    """A click command that also knows `--no-start`. What it returns is the exit code; None is 0."""

    def made(function: Function) -> click.Command:
        asked = click.option(
            "--no-start", is_flag=True, expose_value=False, callback=_note_no_start,
            help="Do not start the daemon if it is not running (exit 5).",
        )  # fmt: skip
        return click.command(name, **settings)(asked(function))

    return made


def daemon() -> Daemon:
    """The one of this call, closed when it ends."""
    context = click.get_current_context()
    found = Daemon(start=False if context.meta.get(_NO_START) else None)
    context.call_on_close(found.close)
    return found


as_json = click.option("--json", "as_json", is_flag=True, help="JSON, in the shape of the HTTP API.")


def say_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))


def _note_no_start(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        context.meta[_NO_START] = True
